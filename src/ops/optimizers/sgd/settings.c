#include "ops/optimizers/optimizer_settings.h"
#include "ops/optimizers/sgd/sgd.h"

#include <string.h>

static const char *const types[] = {"SGD", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-3"),
    {TR_OPTIMIZER_SHARE("momentum", types, "0"), .allow_auto = true,
     .doc = "decay of the running sum of gradients"},
    {TR_OPTIMIZER_KEY("dampening", types), .types = TR_KEY_NUMBER, .fallback = "0",
     .max = 1, .doc = "the share of a gradient that is left out of the momentum"},
    {TR_OPTIMIZER_SWITCH("nesterov", types, "false"),
     .doc = "look ahead along the momentum"},
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_sgd_hyper own = {0};
    own.dampening = tr__optimizer_number(config, "dampening");
    tr_status status = tr__momentum_read(config, own.dampening, &own.momentum, err);
    memcpy(hyper->own, &own, sizeof own);
    return status;
}

static int states(const tr_hyper *hyper) {
    return tr__momentum_states(tr__sgd_hyper(hyper).momentum);
}

static bool no_momentum(const tr_config *config) {
    return tr__optimizer_number(config, "momentum") == 0;
}

static const tr_optimizer_idle idle[] = {
    {"optimizer.params.dampening", no_momentum, "optimizer.params.momentum is 0"},
    {0},
};

const tr_optimizer_settings tr__optimizer_settings_sgd = {
    .types = types,
    .optimizer = &tr__optimizer_sgd,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
    .states = states,
    .idle = idle,
};
