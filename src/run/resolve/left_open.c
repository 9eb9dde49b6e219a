// Which keys a run leaves to the planner.
#include "models/models.h"
#include "planner/settings.h"
#include "run/run.h"

// "auto" in the file; it may have been resolved since.
static bool given_auto(const tr_run *run, const char *key) {
    tr_origin origin = tr__config_origin(run->config, key);
    return tr__config_is_given(run->config, key) &&
           (tr__config_is_auto(run->config, key) || origin == TR_ORIGIN_AUTO ||
            origin == TR_ORIGIN_DERIVED);
}

static bool given(const tr_run *run, const char *key) {
    return tr__config_is_given(run->config, key) && !given_auto(run, key);
}

static const char *key_of(tr_dimension_name d) {
    return tr__plan_settings[d].key;
}

// Tensor ranks or stages.
static bool is_mesh_open(const tr_run *run) {
    return given_auto(run, key_of(TR_DIMENSION_tensor_ranks)) ||
           given_auto(run, key_of(TR_DIMENSION_pipeline_stages));
}

// May the planner have a say in it at all?
static bool can_choose(const tr_run *run, tr_dimension_name d) {
    const char *const *old = tr__plan_settings[d].old_keys;
    for (int i = 0; i < TR_OLD_KEYS_MAX && old[i]; i++) {
        if (given(run, old[i])) {
            return false;
        }
    }
    if (d == TR_DIMENSION_micro_batch) { // T and g give m
        return given(run, "train_batch_size") &&
               !given(run, "gradient_accumulation_steps");
    }
    switch (d) {
    case TR_DIMENSION_vocabulary_slices:
        return run->own_model && tr__model_type_reads_tokens(run->own_model->type);
    case TR_DIMENSION_passes:
        return run->own_model && tr__model_group(run->own_model) > 0;
    case TR_DIMENSION_stage: // one rank has nothing to share out
        return tr__data_ranks(&run->request) > 1;
    case TR_DIMENSION_grad_placement:
        return tr__run_nvme_folder(run) != NULL;
    case TR_DIMENSION_alternating: // only tensor ranks exchange inside of units
        return run->request.mesh.size[TR_AXIS_TENSOR] > 1 || is_mesh_open(run);
    default:
        return true;
    }
}

// The mesh is chosen where that is asked for; what goes with the stages, also where the
// file says nothing of it and the stages are chosen.
static bool is_mesh_free(const tr_run *run, tr_dimension_name d) {
    const char *stages = key_of(TR_DIMENSION_pipeline_stages),
               *order = key_of(TR_DIMENSION_pipeline_order);
    bool open = given_auto(run, stages),
         several = open || tr__has_stages(&run->request),
         orders = several && (given_auto(run, order) || (open && !given(run, order)));
    switch (d) {
    case TR_DIMENSION_pipeline_order:
        return orders;
    case TR_DIMENSION_virtual_stages:
        return (orders || open) && !given(run, key_of(d));
    default:
        return given_auto(run, key_of(d));
    }
}

// Free is what is "auto", and, where there are budgets, what nobody has said. The
// micro-batch goes with the mesh.
static bool is_free(const tr_run *run, tr_dimension_name d) {
    const tr_plan_setting *setting = &tr__plan_settings[d];
    const char *other = setting->also_said_by;
    if (setting->of_mesh) {
        return is_mesh_free(run, d);
    }
    if (given_auto(run, setting->key)) {
        return can_choose(run, d);
    }
    bool asked = tr__run_has_budget(run) || (other && given_auto(run, other)) ||
                 (d == TR_DIMENSION_micro_batch && is_mesh_open(run));
    bool said = given(run, setting->key) || (other && given(run, other));
    return asked && !said && can_choose(run, d) &&
           !(run->request.reproducible && setting->changes_bits);
}

unsigned tr__run_left_open(const tr_run *run) {
    unsigned free = 0;
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        free |= (unsigned)is_free(run, (tr_dimension_name)d) << d;
    }
    return free;
}
