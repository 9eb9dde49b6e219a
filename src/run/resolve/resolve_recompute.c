// What is recomputed, and where the inputs of recomputed units wait.
#include "run/run.h"

#include <string.h>

static uint32_t class_of(const char *name) {
    for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL; bit <<= 1) {
        if (strcmp(tr_recompute_name((tr_recompute_class)bit), name) == 0) {
            return bit;
        }
    }
    return TR_RECOMPUTE_NEVER;
}

// "none", "unit", and classes of tensors, one or a list.
static tr_status read_classes(const tr_run *run, uint32_t *classes, bool *units,
                              tr_error *err) {
    size_t count = tr__config_count(run->config, "execution.recompute");
    bool none = false;
    for (size_t i = 0; i < count; i++) {
        const char *name = tr__config_text_at(run->config, "execution.recompute", i);
        none = none || strcmp(name, "none") == 0;
        *units = *units || strcmp(name, "unit") == 0;
        *classes |= class_of(name);
    }
    if (none && count > 1) {
        return tr_fail(err, TR_USAGE,
                       "execution.recompute: \"none\" cannot be combined with "
                       "anything else");
    }
    if (*classes == 0 && !*units) { // also of an empty list
        *classes = TR_RECOMPUTE_NOTHING;
    }
    return TR_OK;
}

tr_status tr__run_resolve_recompute(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    const char *checkpoints = "activation_checkpointing.number_checkpoints";
    int64_t first = tr__config_int(run->config, "execution.recompute_units");
    uint32_t classes = 0;
    bool units = false;
    if (tr__config_is_decided(run->config, "execution.recompute")) {
        tr_status status = read_classes(run, &classes, &units, err);
        if (status != TR_OK) {
            return status;
        }
    }
    if (units && r->recomputed_units == 0) {
        r->recomputed_units = first > 0 ? first : -1;
    }
    r->recomputed_ops = classes;
    r->recomputed_ops_units = units ? 0 : first;
    bool is_open = !tr__config_is_given(run->config, checkpoints) ||
                   tr__config_is_auto(run->config, checkpoints);
    if (r->boundary_placement == TR_SPACE_HOST && is_open && r->recomputed_units == 0) {
        r->recomputed_units = -1; // DeepSpeed's switch alone turns it on
    }
    return tr__config_explain_auto(run->config, "execution.recompute",
                                   "norm and activation", err);
}
