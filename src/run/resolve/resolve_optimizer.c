// The optimizer, what it trains, its parameter groups, its schedule, and clipping.
#include "base/memory.h"
#include "ops/optimizers/optimizer_settings.h"
#include "run/run.h"

#include "files/checkpoint/state.h"

#include <string.h>

static double number(const tr_run *run, const char *key) {
    return tr__config_number(run->config, key);
}

// All that the type's keys say.
static tr_status read_hyper(const tr_run *run, const tr_optimizer_settings *of,
                            tr_hyper *hyper, tr_error *err) {
    *hyper = (tr_hyper){.lr = number(run, "optimizer.params.lr"),
                        .weight_decay = number(run, "optimizer.params.weight_decay")};
    return of->read ? of->read(run->config, hyper, err) : TR_OK;
}

// The same of the optimizer that updates what is apart.
static tr_status read_apart(const tr_run *run, const tr_optimizer_settings *of,
                            tr_hyper *hyper, tr_error *err) {
    *hyper = (tr_hyper){.lr = number(run, "optimizer.params.lr"),
                        .weight_decay = number(run, "optimizer.params.weight_decay")};
    return of->read_apart ? of->read_apart(run->config, hyper, err) : TR_OK;
}

static tr_status read_group(const json_t *keys, const tr_param_group *base,
                            size_t index, tr_param_group *group, tr_error *err) {
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
    *group = *base;
    if (json_is_number(decay)) {
        group->hyper.weight_decay = group->apart.weight_decay =
            json_number_value(decay);
    }
    if (json_is_number(lr)) {
        group->hyper.lr = group->apart.lr = json_number_value(lr);
    }
    return tr__patterns_read(match, &group->match, err);
}

// Which of the group's matrices Muon updates.
static tr_status read_rule(tr_run *run, const json_t *keys, size_t index,
                           tr_error *err) {
    const json_t *use = json_object_get(keys, "use_muon");
    const tr_patterns *match = &run->settings.groups[index].match;
    run->settings.apart_rules[index] =
        (tr_apart_rule){.patterns = (const char *const *)match->globs,
                        .count = match->count,
                        .says = json_is_boolean(use),
                        .apart = json_is_false(use)};
    return !json_is_boolean(use) || run->request.matrices
               ? TR_OK
               : tr_fail(
                     err, TR_USAGE,
                     "optimizer.groups[%zu].use_muon is of optimizer.type \"Muon\", "
                     "and the run's is \"%s\"",
                     index, tr__config_text(run->config, "optimizer.type"));
}

static tr_status read_groups(tr_run *run, const tr_param_group *base, tr_error *err) {
    tr_settings *settings = &run->settings;
    const json_t *list = tr__config_json(run->config, "optimizer.groups");
    size_t count = json_array_size(list);
    if (count + 1 > TR_STATE_GROUPS_MAX) {
        return tr_fail(err, TR_USAGE, "optimizer.groups: at most %d groups",
                       TR_STATE_GROUPS_MAX - 1);
    }
    settings->groups = tr__calloc(count + 1, sizeof *settings->groups);
    settings->apart_rules = tr__calloc(count + 1, sizeof *settings->apart_rules);
    if (!settings->groups || !settings->apart_rules) {
        return tr_fail(err, TR_MEMORY, "no memory for the parameter groups");
    }
    settings->group_count = count + 1;
    for (size_t i = 0; i < count; i++) {
        tr_status status =
            read_group(json_array_get(list, i), base, i, &settings->groups[i], err);
        if (status == TR_OK) {
            status = read_rule(run, json_array_get(list, i), i, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    run->request.apart_rules = settings->apart_rules;
    run->request.apart_rule_count = count;
    settings->groups[count] = *base;
    return TR_OK;
}

tr_status tr__run_resolve_optimizer(tr_run *run, tr_error *err) {
    const tr_optimizer_settings *of =
        tr__optimizer_settings_find(tr__config_text(run->config, "optimizer.type"));
    tr_settings *settings = &run->settings;
    tr_param_group base = {0};
    tr_status status = read_hyper(run, of, &base.hyper, err);
    status = status == TR_OK ? read_apart(run, of, &base.apart, err) : status;
    status = status == TR_OK ? tr__run_check_updates(run, of->optimizer, err) : status;
    if (status != TR_OK) {
        return status;
    }
    settings->optimizer = of->optimizer;
    settings->exclude_1d = of->optimizer->adaptation &&
                           tr__config_bool(run->config, "optimizer.params.exclude_1d");
    settings->decay_1d = !of->optimizer->adaptation ||
                         tr__config_bool(run->config, "optimizer.params.decay_1d");
    run->request.tensor_norms = of->optimizer->adaptation != NULL;
    run->request.optimizer_states =
        of->states ? of->states(&base.hyper) : of->optimizer->state_count;
    const tr_optimizer *apart =
        of->optimizer->apart ? of->optimizer->apart : of->optimizer;
    memcpy(run->request.apart_states, apart->states, sizeof run->request.apart_states);
    run->request.apart_state_count =
        of->optimizer->apart ? apart->state_count : run->request.optimizer_states;
    run->request.matrices = of->optimizer->matrices != NULL;
    tr__optimizer_states(run->config, of, run->request.states, &run->request.apart);
    settings->clip = number(run, "gradient_clipping");
    status = read_groups(run, &base, err);
    status = status == TR_OK ? tr__run_resolve_freeze(run, err) : status;
    return status == TR_OK ? tr__run_resolve_schedule(run, err) : status;
}
