// Pass: flat buffers, the parameters in them, and the buffers that live always.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/plan.h"

#include <string.h>

static int find_tied(const tr_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->flat_count; i++) {
        if (plan->flats[i].tied && strcmp(plan->flats[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int add_flat(tr_plan *plan, tr_flat flat, tr_error *err) {
    if (!tr__grow((void **)&plan->flats, &plan->flat_capacity, plan->flat_count + 1,
                  sizeof *plan->flats)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's flat buffers");
        return -1;
    }
    plan->flats[plan->flat_count] = flat;
    return (int)plan->flat_count++;
}

static int find_param(const tr_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (strcmp(plan->params[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static tr_status add_param(tr_plan *plan, const tr_param_info *info, const char *prefix,
                           int flat, int64_t offset, tr_error *err) {
    if (!tr__grow((void **)&plan->params, &plan->param_capacity, plan->param_count + 1,
                  sizeof *plan->params)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's parameters");
    }
    char *name = tr__format("%s%s", prefix, info->name);
    if (!name) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's parameters");
    }
    if (find_param(plan, name) >= 0) {
        tr_fail(err, TR_USAGE, "the model has two parameters %s", name);
        tr__free(name);
        return TR_USAGE;
    }
    plan->params[plan->param_count++] =
        (tr_plan_param){.name = name,
                        .shape = info->shape,
                        .init = info->init,
                        .flat = flat,
                        .offset = offset,
                        .count = tr_shape_count(info->shape)};
    return TR_OK;
}

static tr_status check_tied(const tr_plan *plan, int flat, const tr_param_info *info,
                            tr_error *err) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (plan->params[i].flat == flat &&
            !tr_shape_equal(plan->params[i].shape, info->shape)) {
            return tr_fail(err, TR_USAGE, "tied tensor %s has two shapes", info->name);
        }
    }
    return TR_OK;
}

static tr_status add_unit(tr_plan *plan, int u, tr_error *err) {
    const tr_model_unit *unit = &plan->request.model->units[u];
    const tr_unit_program *program = plan->units[u].program;
    int64_t elements = tr__round_up(program->flat_elements, 16);
    int own = add_flat(plan, (tr_flat){.name = unit->name, .count = elements}, err);
    if (own < 0) {
        return TR_MEMORY;
    }
    plan->units[u].flats[0] = own;
    for (size_t i = 0; i < program->graph->param_count; i++) {
        const tr_param_info *info = &program->graph->params[i];
        const tr_program_param *where = &program->params[i];
        tr_status status = TR_OK;
        if (!info->shared) {
            status = add_param(plan, info, unit->prefix, own, where->offset, err);
        } else if (find_tied(plan, info->name) >= 0) {
            plan->units[u].flats[where->flat] = find_tied(plan, info->name);
            status = check_tied(plan, plan->units[u].flats[where->flat], info, err);
        } else {
            int64_t count = tr__round_up(tr_shape_count(info->shape), 16);
            int tied = add_flat(
                plan, (tr_flat){.name = info->name, .tied = true, .count = count}, err);
            plan->units[u].flats[where->flat] = tied;
            status = tied < 0 ? TR_MEMORY : add_param(plan, info, "", tied, 0, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static int always(tr_plan *plan, tr_ledger_category category, int64_t bytes,
                  tr_error *err) {
    return tr__plan_buffer(
        plan, (tr_buffer){.category = category, .sequence = -1, .bytes = bytes}, err);
}

static tr_status flat_buffers(tr_plan *plan, tr_flat *flat, tr_error *err) {
    int64_t bytes = flat->count * (int64_t)sizeof(float);
    bool train = !plan->request.inference;
    flat->grad = flat->state[0] = flat->state[1] = -1;
    flat->param = always(plan, TR_LEDGER_parameters, bytes, err);
    bool good = flat->param >= 0;
    if (good && train) {
        flat->grad = always(plan, TR_LEDGER_gradients, bytes, err);
        good = flat->grad >= 0;
    }
    for (int i = 0; good && train && i < plan->request.optimizer_states; i++) {
        flat->state[i] = always(plan, TR_LEDGER_optimizer, bytes, err);
        good = flat->state[i] >= 0;
    }
    return good ? TR_OK : TR_MEMORY;
}

tr_status tr__pass_partition(tr_plan *plan, tr_error *err) {
    for (int u = 0; u < plan->unit_count; u++) {
        tr_status status = add_unit(plan, u, err);
        if (status != TR_OK) {
            return status;
        }
    }
    for (size_t i = 0; i < plan->flat_count; i++) {
        tr_status status = flat_buffers(plan, &plan->flats[i], err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}
