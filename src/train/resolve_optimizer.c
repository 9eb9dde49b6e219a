// The optimizer, its parameter groups, its schedule, and clipping.
#include "base/memory.h"
#include "train/run.h"

#include "ckpt/state.h"
#include <math.h>
#include <stdio.h>
#include <strings.h>

static double number(const tr_run *run, const char *key) {
    return tr__config_number(run->config, key);
}

static void read_betas(const tr_run *run, tr_hyper *hyper) {
    hyper->beta1 = tr__config_number_at(run->config, "optimizer.params.betas", 0);
    hyper->beta2 = tr__config_number_at(run->config, "optimizer.params.betas", 1);
}

static tr_status read_adam(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    const char *type = tr__config_text(run->config, "optimizer.type");
    (void)err;
    read_betas(run, hyper);
    hyper->eps = number(run, "optimizer.params.eps");
    hyper->bias_correction =
        tr__config_bool(run->config, "optimizer.params.bias_correction");
    hyper->decoupled = strcasecmp(type, "AdamW") == 0 ||
                       tr__config_bool(run->config, "optimizer.params.adam_w_mode");
    return TR_OK;
}

// As torch.optim.SGD has it.
static tr_status check_nesterov(const tr_hyper *hyper, tr_error *err) {
    if (hyper->nesterov && (hyper->momentum <= 0 || hyper->dampening != 0)) {
        return tr_fail(err, TR_USAGE,
                       "optimizer.params.nesterov needs a momentum above 0 and no "
                       "dampening; they are %g and %g",
                       hyper->momentum, hyper->dampening);
    }
    return TR_OK;
}

static tr_status read_sgd(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    hyper->momentum = number(run, "optimizer.params.momentum");
    hyper->dampening = number(run, "optimizer.params.dampening");
    hyper->nesterov = tr__config_bool(run->config, "optimizer.params.nesterov");
    return check_nesterov(hyper, err);
}

static tr_status read_lion(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    (void)err;
    read_betas(run, hyper);
    return TR_OK;
}

static tr_status read_adagrad(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    (void)err;
    hyper->eps = number(run, "optimizer.params.eps");
    hyper->initial_accumulator =
        number(run, "optimizer.params.initial_accumulator_value");
    hyper->lr_decay = number(run, "optimizer.params.lr_decay");
    return TR_OK;
}

// phi of the paper is the identity: no bounds.
static tr_status read_lamb_form(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    static const char *const bounds[] = {"optimizer.params.max_coeff",
                                         "optimizer.params.min_coeff"};
    const char *form = tr__config_text(run->config, "optimizer.params.form");
    hyper->corrected = strcasecmp(form, "paper") == 0;
    hyper->max_coeff = hyper->corrected ? INFINITY : number(run, bounds[0]);
    hyper->min_coeff = hyper->corrected ? 0 : number(run, bounds[1]);
    for (int i = 0; i < 2; i++) {
        if (hyper->corrected && tr__config_is_given(run->config, bounds[i])) {
            return tr_fail(err, TR_USAGE,
                           "%s is of optimizer.params.form \"deepspeed\"; the paper's "
                           "ratio has no bounds",
                           bounds[i]);
        }
    }
    if (hyper->min_coeff > hyper->max_coeff) {
        return tr_fail(err, TR_USAGE, "%s is %g, below %s, which is %g", bounds[0],
                       hyper->max_coeff, bounds[1], hyper->min_coeff);
    }
    return TR_OK;
}

static tr_status read_lamb(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    read_betas(run, hyper);
    hyper->eps = number(run, "optimizer.params.eps");
    hyper->bias_correction =
        tr__config_bool(run->config, "optimizer.params.bias_correction");
    return read_lamb_form(run, hyper, err);
}

static tr_status read_lars(const tr_run *run, tr_hyper *hyper, tr_error *err) {
    hyper->momentum = number(run, "optimizer.params.momentum");
    hyper->nesterov = tr__config_bool(run->config, "optimizer.params.nesterov");
    hyper->trust_coefficient = number(run, "optimizer.params.trust_coefficient");
    hyper->eps = number(run, "optimizer.params.eps");
    return check_nesterov(hyper, err);
}

// An optimizer by its name in run files. lr, eps, momentum: its own defaults; 0: the
// key's.
typedef struct kind {
    const char *type;
    const tr_optimizer *optimizer;
    tr_status (*read)(const tr_run *run, tr_hyper *hyper, tr_error *err);
    double lr, eps, momentum;
    bool exclude_1d; // by default
} kind;

static const kind kinds[] = {
    {"Adam", &tr__optimizer_adam, read_adam, .lr = 0},
    {"AdamW", &tr__optimizer_adam, read_adam, .lr = 0},
    {"SGD", &tr__optimizer_sgd, read_sgd, .lr = 0},
    {"Lion", &tr__optimizer_lion, read_lion, .lr = 0},
    {"Adagrad", &tr__optimizer_adagrad, read_adagrad, .lr = 1e-2, .eps = 1e-10},
    {"Lamb", &tr__optimizer_lamb, read_lamb, .lr = 0},
    {"LARS", &tr__optimizer_lars, read_lars, .lr = 1, .momentum = 0.9,
     .exclude_1d = true},
};

static const kind *find_kind(const tr_run *run) {
    const char *type = tr__config_text(run->config, "optimizer.type");
    const kind *found = kinds;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        found = strcasecmp(type, kinds[i].type) == 0 ? &kinds[i] : found;
    }
    return found;
}

static tr_status own_default(tr_run *run, const char *key, double value,
                             const char *type, tr_error *err) {
    char why[64];
    snprintf(why, sizeof why, "the default of %s", type);
    return value > 0 ? tr__config_resolve_number(run->config, key, value,
                                                 TR_ORIGIN_AUTO, why, err)
                     : TR_OK;
}

static tr_status own_defaults(tr_run *run, const kind *of, tr_error *err) {
    tr_status status = own_default(run, "optimizer.params.lr", of->lr, of->type, err);
    if (status == TR_OK) {
        status = own_default(run, "optimizer.params.eps", of->eps, of->type, err);
    }
    if (status == TR_OK) {
        status =
            own_default(run, "optimizer.params.momentum", of->momentum, of->type, err);
    }
    if (status == TR_OK && of->exclude_1d) {
        status =
            tr__config_resolve_bool(run->config, "optimizer.params.exclude_1d", true,
                                    TR_ORIGIN_AUTO, "the default of LARS", err);
    }
    return status == TR_OK && of->exclude_1d
               ? tr__config_resolve_bool(run->config, "optimizer.params.decay_1d",
                                         false, TR_ORIGIN_AUTO, "the default of LARS",
                                         err)
               : status;
}

// All that the type's keys say.
static tr_status read_hyper(tr_run *run, const kind *of, tr_hyper *hyper,
                            tr_error *err) {
    tr_status status = own_defaults(run, of, err);
    if (status != TR_OK) {
        return status;
    }
    *hyper = (tr_hyper){.lr = number(run, "optimizer.params.lr"),
                        .weight_decay = number(run, "optimizer.params.weight_decay")};
    return of->read(run, hyper, err);
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
    const kind *of = find_kind(run);
    tr_settings *settings = &run->settings;
    tr_hyper base;
    tr_status status = read_hyper(run, of, &base, err);
    if (status != TR_OK) {
        return status;
    }
    settings->optimizer = of->optimizer;
    settings->exclude_1d = of->optimizer->adaptation &&
                           tr__config_bool(run->config, "optimizer.params.exclude_1d");
    settings->decay_1d = !of->optimizer->adaptation ||
                         tr__config_bool(run->config, "optimizer.params.decay_1d");
    run->request.tensor_norms = of->optimizer->adaptation != NULL;
    // Without momentum SGD and LARS neither read nor write their buffer: there is none.
    bool has_momentum = of->read == read_sgd || of->read == read_lars;
    bool stateless = has_momentum && base.momentum == 0;
    run->request.optimizer_states = stateless ? 0 : of->optimizer->state_count;
    settings->clip = number(run, "gradient_clipping");
    status = read_groups(run, &base, err);
    return status == TR_OK ? tr__run_resolve_schedule(run, err) : status;
}
