#include "ops/optimizers/lamb/lamb.h"
#include "ops/optimizers/optimizer_settings.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const char *const types[] = {"Lamb", NULL};
static const char *const forms[] = {"deepspeed", "paper", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-3"),
    {TR_OPTIMIZER_BETAS(types), .doc = "decay of the two running means"},
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-8"), .allow_auto = true,
     .doc = "added to the root of the squares"},
    {TR_OPTIMIZER_SWITCH("bias_correction", types, "true"),
     .doc = "divide the means by 1 - beta^t"},
    {TR_OPTIMIZER_KEY("form", types), .types = TR_KEY_TEXT, .fallback = "\"deepspeed\"",
     .choices = forms,
     .doc = "\"deepspeed\": the direction is of means without bias correction, which "
            "the rate has; \"paper\": of corrected means, the ratio without bounds"},
    {TR_OPTIMIZER_NUMBER("max_coeff", types, "10"),
     .doc = "largest ratio of norms, of the form deepspeed"},
    {TR_OPTIMIZER_NUMBER("min_coeff", types, "0.01"),
     .doc = "smallest ratio of norms, of the form deepspeed"},
    {TR_OPTIMIZER_SWITCH("exclude_1d", types, "false"),
     .doc = "biases and norms keep the plain rate"},
    {TR_OPTIMIZER_SWITCH("decay_1d", types, "true"),
     .doc = "biases and norms have weight decay"},
    TR_OPTIMIZER_AMSGRAD(types),
    {TR_OPTIMIZER_NOT_YET("eps_inside_sqrt", types, "false"),
     .doc = "eps is added before the root is taken"},
};

// phi of the paper is the identity: no bounds.
static tr_status read_form(const tr_config *config, tr_lamb_hyper *own, tr_error *err) {
    static const char *const bounds[] = {"optimizer.params.max_coeff",
                                         "optimizer.params.min_coeff"};
    const char *form = tr__config_text(config, "optimizer.params.form");
    own->corrected = strcasecmp(form, "paper") == 0;
    own->max_coeff = own->corrected ? INFINITY : tr__config_number(config, bounds[0]);
    own->min_coeff = own->corrected ? 0 : tr__config_number(config, bounds[1]);
    for (int i = 0; i < 2; i++) {
        if (own->corrected && tr__config_is_given(config, bounds[i])) {
            return tr_fail(err, TR_USAGE,
                           "%s is of optimizer.params.form \"deepspeed\"; the paper's "
                           "ratio has no bounds",
                           bounds[i]);
        }
    }
    if (own->min_coeff > own->max_coeff) {
        return tr_fail(err, TR_USAGE, "%s is %g, below %s, which is %g", bounds[0],
                       own->max_coeff, bounds[1], own->min_coeff);
    }
    return TR_OK;
}

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_lamb_hyper own = {0};
    tr__optimizer_betas(config, hyper);
    own.eps = tr__optimizer_number(config, "eps");
    own.bias_correction = tr__optimizer_bool(config, "bias_correction");
    tr_status status = read_form(config, &own, err);
    memcpy(hyper->own, &own, sizeof own);
    return status;
}

const tr_optimizer_settings tr__optimizer_settings_lamb = {
    .types = types,
    .optimizer = &tr__optimizer_lamb,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
};
