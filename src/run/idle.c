// What the user has given and nothing obeys: keys that Tranche ignores, and keys that
// do something only beside others. Each is told once, by name, with its reason.
#include "run/idle.h"
#include "base/half.h"
#include "base/log.h"
#include "models/models.h"
#include "ops/optimizers/optimizer_settings.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

// ---- ignored keys

enum { LINE_BYTES = 512, COLUMNS = 110 };

// A list "a, b, c", in several lines where it is long.
static void say_list(const tr_run *run, const char *list) {
    char line[LINE_BYTES] = "ignored (no effect in Tranche):";
    while (*list) {
        int length = (int)strcspn(list, ",");
        bool last = list[length] == '\0';
        size_t used = strlen(line);
        if (used + (size_t)length > COLUMNS) {
            tr__note(&run->log, "%s", line);
            used = (size_t)snprintf(line, sizeof line, "   ");
        }
        snprintf(line + used, sizeof line - used, " %.*s%s", length, list,
                 last ? "" : ",");
        list += last ? length : length + 2;
    }
    tr__note(&run->log, "%s", line);
}

void tr__run_say_ignored(const tr_run *run) {
    const char *list = tr__config_no_meaning(run->config);
    const tr_key *key;
    if (list) {
        say_list(run, list);
    }
    for (size_t i = 0; (key = tr__config_unmet(run->config, i)) != NULL; i++) {
        tr__warn(&run->log, "%s is true, which has no effect in Tranche: %s", key->path,
                 key->doc);
    }
}

// ---- keys that need others

bool tr__idle_no_evaluation(const void *object) {
    const tr_run *run = object;
    return run->has_data && !run->validation;
}

bool tr__idle_no_guard(const void *object) {
    const tr_run *run = object;
    return run->settings.guard.action == TR_GUARD_NONE;
}

bool tr__idle_no_rollback(const void *object) {
    const tr_run *run = object;
    return run->settings.guard.action != TR_GUARD_ROLLBACK;
}

bool tr__idle_no_scaling(const void *object) {
    const tr_run *run = object;
    return run->settings.scaling.rule == TR_SCALING_NONE;
}

bool tr__idle_no_noise(const void *object) {
    const tr_run *run = object;
    return run->request.measure == TR_MEASURE_NEVER;
}

static bool is_chosen(const tr_run *run, tr_dimension_name d) {
    return run->chosen >> d & 1;
}

bool tr__idle_no_nvme(const void *object) {
    const tr_run *run = object;
    const tr_plan_request *r = &run->request;
    return r->optimizer_placement != TR_SPACE_NVME &&
           r->param_placement != TR_SPACE_NVME &&
           !is_chosen(run, TR_DIMENSION_optimizer_placement) &&
           !is_chosen(run, TR_DIMENSION_param_placement);
}

bool tr__idle_state_on_device(const void *object) {
    const tr_run *run = object;
    return run->request.optimizer_placement == TR_SPACE_DEVICE &&
           !is_chosen(run, TR_DIMENSION_optimizer_placement);
}

bool tr__idle_own_attention(const void *object) {
    const tr_run *run = object;
    const tr_plan_request *r = &run->request;
    return r->backend == TR_BACKEND_HOST || !tr__dtype_is_half(r->compute) ||
           r->reproducible;
}

bool tr__idle_no_encoder(const void *object) {
    const tr_run *run = object;
    return !run->own_model || !tr__model_reads_texts(run->own_model);
}

bool tr__idle_no_tensor_ranks(const void *object) {
    const tr_run *run = object;
    return run->request.mesh.size[TR_AXIS_TENSOR] <= 1;
}

// A wave that nobody has chosen is one micro-batch, unless a loss is over all of them.
bool tr__idle_no_turns(const void *object) {
    const tr_run *run = object;
    bool whole = run->own_model && tr__model_group(run->own_model) > 0;
    bool open = run->request.wave == 0 && !is_chosen(run, TR_DIMENSION_wave) && !whole;
    return tr__idle_no_tensor_ranks(object) || run->request.wave == 1 || open;
}

bool tr__idle_on_host(const void *object) {
    const tr_run *run = object;
    return run->request.backend == TR_BACKEND_HOST;
}

bool tr__idle_f32_logits(const void *object) {
    const tr_run *run = object;
    return tr__idle_on_host(object) || run->request.compute != TR_BF16;
}

bool tr__idle_no_embeddings(const void *object) {
    const tr_run *run = object;
    return run->model->embedding_width == 0;
}

// One micro-batch goes forward once.
bool tr__idle_one_pass(const void *object) {
    const tr_run *run = object;
    return !run->own_model || tr__model_group(run->own_model) == 0 ||
           run->request.accumulation_steps == 1;
}

bool tr__idle_one_stage(const void *object) {
    const tr_run *run = object;
    return run->request.mesh.size[TR_AXIS_PIPELINE] == 1;
}

bool tr__idle_no_labels(const void *object) {
    const tr_run *run = object;
    return run->model->label_kind == TR_LABELS_NONE;
}

// Masks are drawn for texts; windows of ids have their labels.
bool tr__idle_no_masks(const void *object) {
    const tr_run *run = object;
    return !run->own_model || !tr__model_is_masked(run->own_model) ||
           strcmp(tr__config_text(run->config, "data.format"), "tokens") == 0;
}

bool tr__idle_nothing_recomputed(const void *object) {
    const tr_run *run = object;
    return run->request.recomputed_units == 0 &&
           tr__config_bool(run->config, "activation_checkpointing.cpu_checkpointing");
}

bool tr__idle_all_recomputed(const void *object) {
    const tr_run *run = object;
    const tr_plan_request *r = &run->request;
    bool all = r->recomputed_units < 0 ||
               (r->model && r->recomputed_units >= r->model->unit_count - 1);
    return all && tr__config_bool(run->config, "activation_checkpointing.cpu_saved");
}

bool tr__idle_first_units_of_nothing(const void *object) {
    const tr_run *run = object;
    const tr_plan_request *r = &run->request;
    int64_t first = tr__config_int(run->config, "execution.recompute_units");
    bool ops = r->recomputed_ops != TR_RECOMPUTE_NOTHING && r->recomputed_ops_units > 0;
    return first > 0 && !ops && r->recomputed_units != first;
}

bool tr__idle_no_schedule(const void *object) {
    const tr_run *run = object;
    return run->settings.schedule.kind == TR_SCHEDULE_CONSTANT;
}

bool tr__idle_prints_by_steps(const void *object) {
    const tr_run *run = object;
    return run->settings.log_steps > 0;
}

bool tr__idle_no_decay(const void *object) {
    const tr_run *run = object;
    return run->settings.schedule.decay_size == 0;
}

bool tr__idle_no_decay_rates(const void *object) {
    const tr_run *run = object;
    const tr_schedule *s = &run->settings.schedule;
    return s->decay_lr == 0 && (s->decay_momentum == 0 || !s->cycle_momentum);
}

bool tr__idle_no_betas(const void *object) {
    const tr_run *run = object;
    return !run->settings.optimizer->has_betas;
}

bool tr__idle_no_cycle_of_betas(const void *object) {
    const tr_run *run = object;
    return !run->settings.schedule.cycle_momentum || tr__idle_no_betas(run);
}

bool tr__idle_fixed_scale(const void *object) {
    const tr_run *run = object;
    return run->request.compute == TR_F16 && !run->settings.scale.dynamic;
}

// The schedule goes from rate to rate by numbers of its own.
static bool own_rates(const tr_run *run) {
    const tr_schedule *s = &run->settings.schedule;
    double lr = tr__config_number(run->config, "optimizer.params.lr");
    bool warmup = s->kind == TR_SCHEDULE_WARMUP || s->kind == TR_SCHEDULE_WARMUP_DECAY;
    bool cycle = s->kind == TR_SCHEDULE_ONE_CYCLE;
    return s->kind == TR_SCHEDULE_RANGE_TEST ||
           ((warmup || cycle) && !s->max_is_own && s->max_lr != lr);
}

static void say_idle(const tr_run *run, const char *key, const char *why) {
    tr__warn(&run->log, "%s has no effect: %s", key, why);
}

void tr__run_say_idle(const tr_run *run) {
    const tr_optimizer_settings *optimizer =
        tr__optimizer_settings_find(tr__config_text(run->config, "optimizer.type"));
    const tr_key *key;
    for (size_t i = 0; (key = tr__config_idle(run->config, run, i)) != NULL; i++) {
        say_idle(run, key->path, key->why);
    }
    if (tr__config_is_said(run->config, "optimizer.params.lr") && own_rates(run)) {
        say_idle(run, "optimizer.params.lr",
                 "the scheduler has learning rates of its own (scheduler.params)");
    }
    for (const tr_optimizer_idle *r = optimizer->idle; r && r->key; r++) {
        if (tr__config_is_said(run->config, r->key) && r->idle(run->config)) {
            say_idle(run, r->key, r->why);
        }
    }
}
