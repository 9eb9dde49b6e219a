#include "ops/optimizers/lars/lars.h"
#include "ops/optimizers/optimizer_settings.h"

#include <string.h>

static const char *const types[] = {"LARS", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1"),
    {TR_OPTIMIZER_SHARE("momentum", types, "0.9"), .allow_auto = true,
     .doc = "decay of the running sum of steps"},
    {TR_OPTIMIZER_SWITCH("nesterov", types, "false"),
     .doc = "look ahead along the momentum"},
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-8"), .allow_auto = true,
     .doc = "added to the norm of the gradient"},
    {TR_OPTIMIZER_NUMBER("trust_coefficient", types, "0.001"),
     .doc = "a tensor's rate is this times the ratio of its norm and its gradient's"},
    {TR_OPTIMIZER_SWITCH("exclude_1d", types, "true"),
     .doc = "biases and norms keep the plain rate"},
    {TR_OPTIMIZER_SWITCH("decay_1d", types, "false"),
     .doc = "biases and norms have weight decay"},
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_lars_hyper own = {0};
    tr_status status = tr__momentum_read(config, 0, &own.momentum, err);
    own.trust_coefficient = tr__optimizer_number(config, "trust_coefficient");
    own.eps = tr__optimizer_number(config, "eps");
    memcpy(hyper->own, &own, sizeof own);
    return status;
}

static int states(const tr_hyper *hyper) {
    return tr__momentum_states(tr__lars_hyper(hyper).momentum);
}

const tr_optimizer_settings tr__optimizer_settings_lars = {
    .types = types,
    .optimizer = &tr__optimizer_lars,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
    .states = states,
};
