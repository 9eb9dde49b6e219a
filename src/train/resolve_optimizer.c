// The optimizer, its parameter groups, its schedule, and clipping.
#include "base/memory.h"
#include "train/run.h"
#include "train/schedule_read.h"

#include "ckpt/state.h"
#include <strings.h>

static double number(const tr_run *run, const char *key) {
    return tr__config_number(run->config, key);
}

static void read_adam(const tr_run *run, const char *type, tr_hyper *hyper) {
    hyper->beta1 = tr__config_number_at(run->config, "optimizer.params.betas", 0);
    hyper->beta2 = tr__config_number_at(run->config, "optimizer.params.betas", 1);
    hyper->eps = number(run, "optimizer.params.eps");
    hyper->bias_correction =
        tr__config_bool(run->config, "optimizer.params.bias_correction");
    hyper->decoupled = strcasecmp(type, "AdamW") == 0 ||
                       tr__config_bool(run->config, "optimizer.params.adam_w_mode");
}

static void read_sgd(const tr_run *run, tr_hyper *hyper) {
    hyper->momentum = number(run, "optimizer.params.momentum");
    hyper->dampening = number(run, "optimizer.params.dampening");
    hyper->nesterov = tr__config_bool(run->config, "optimizer.params.nesterov");
}

// As torch.optim.SGD has it.
static tr_status check_sgd(const tr_hyper *hyper, tr_error *err) {
    if (hyper->nesterov && (hyper->momentum <= 0 || hyper->dampening != 0)) {
        return tr_fail(err, TR_USAGE,
                       "optimizer.params.nesterov needs a momentum above 0 and no "
                       "dampening; they are %g and %g",
                       hyper->momentum, hyper->dampening);
    }
    return TR_OK;
}

static tr_status read_patterns(tr_param_group *group, const json_t *match,
                               tr_error *err) {
    size_t count = json_is_array(match) ? json_array_size(match) : 1;
    group->patterns = tr__calloc(count, sizeof *group->patterns);
    for (size_t i = 0; group->patterns && i < count; i++) {
        const json_t *text = json_is_array(match) ? json_array_get(match, i) : match;
        group->patterns[i] = tr__strdup(json_string_value(text));
        if (!group->patterns[i]) {
            break;
        }
        group->pattern_count++;
    }
    return group->pattern_count == count
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for the parameter groups");
}

static tr_status read_group(const json_t *keys, const tr_hyper *base, size_t index,
                            tr_param_group *group, tr_error *err) {
    const json_t *match = json_object_get(keys, "match");
    const json_t *lr = json_object_get(keys, "lr");
    const json_t *decay = json_object_get(keys, "weight_decay");
    if (!match || json_is_null(match) ||
        (json_is_array(match) && json_array_size(match) == 0)) {
        return tr_fail(err, TR_USAGE,
                       "optimizer.groups[%zu] has no \"match\": a pattern of parameter "
                       "names such as \"*.bias\", or a list of them",
                       index);
    }
    group->hyper = *base;
    if (json_is_number(decay)) {
        group->hyper.weight_decay = json_number_value(decay);
    }
    if (json_is_number(lr)) {
        group->hyper.lr = json_number_value(lr);
    }
    return read_patterns(group, match, err);
}

static tr_status read_groups(tr_run *run, const tr_hyper *base, tr_error *err) {
    tr_settings *settings = &run->settings;
    const json_t *list = tr__config_json(run->config, "optimizer.groups");
    size_t count = json_array_size(list);
    if (count + 1 > TR_STATE_GROUPS_MAX) {
        return tr_fail(err, TR_USAGE, "optimizer.groups: at most %d groups",
                       TR_STATE_GROUPS_MAX - 1);
    }
    settings->groups = tr__calloc(count + 1, sizeof *settings->groups);
    if (!settings->groups) {
        return tr_fail(err, TR_MEMORY, "no memory for the parameter groups");
    }
    settings->group_count = count + 1;
    for (size_t i = 0; i < count; i++) {
        tr_status status =
            read_group(json_array_get(list, i), base, i, &settings->groups[i], err);
        if (status != TR_OK) {
            return status;
        }
    }
    settings->groups[count] = (tr_param_group){.hyper = *base};
    return TR_OK;
}

tr_status tr__run_resolve_optimizer(tr_run *run, tr_error *err) {
    const char *type = tr__config_text(run->config, "optimizer.type");
    tr_settings *settings = &run->settings;
    tr_hyper base = {.lr = number(run, "optimizer.params.lr"),
                     .weight_decay = number(run, "optimizer.params.weight_decay")};
    bool sgd = strcasecmp(type, "SGD") == 0;
    if (sgd) {
        read_sgd(run, &base);
    } else {
        read_adam(run, type, &base);
    }
    settings->optimizer = sgd ? &tr__optimizer_sgd : &tr__optimizer_adam;
    // Without momentum SGD neither reads nor writes its buffer: there is none.
    bool stateless = sgd && base.momentum == 0;
    run->request.optimizer_states = stateless ? 0 : settings->optimizer->state_count;
    settings->clip = number(run, "gradient_clipping");
    tr_status status = sgd ? check_sgd(&base, err) : TR_OK;
    if (status == TR_OK) {
        status = read_groups(run, &base, err);
    }
    if (status == TR_OK) {
        status =
            tr__schedule_read(run->config, settings->steps, &settings->schedule, err);
    }
    return status;
}
