#include "ops/optimizer_settings.h"

static const char *const types[] = {"SGD", NULL};

static const tr_key keys[] = {
    {TR_OPTIMIZER_NUMBER("lr", types, "1e-3"), .allow_auto = true,
     .doc = "learning rate"},
    {TR_OPTIMIZER_SHARE("momentum", types, "0"), .allow_auto = true,
     .doc = "decay of the running sum of gradients"},
    {TR_OPTIMIZER_KEY("dampening", types), .types = TR_KEY_NUMBER, .fallback = "0",
     .max = 1, .doc = "the share of a gradient that does not enter the momentum"},
    {TR_OPTIMIZER_SWITCH("nesterov", types, "false"),
     .doc = "look ahead along the momentum"},
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    hyper->momentum = tr__optimizer_number(config, "momentum");
    hyper->dampening = tr__optimizer_number(config, "dampening");
    hyper->nesterov = tr__optimizer_bool(config, "nesterov");
    return tr__nesterov_check(hyper, err);
}

const tr_optimizer_settings tr__optimizer_settings_sgd = {
    .types = types,
    .optimizer = &tr__optimizer_sgd,
    .keys = {"sgd", keys, sizeof keys / sizeof *keys},
    .read = read,
    .states = tr__momentum_states,
};
