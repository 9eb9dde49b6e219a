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

// As torch.optim.SGD has it.
tr_status tr__nesterov_check(const tr_hyper *hyper, tr_error *err) {
    if (hyper->nesterov && (hyper->momentum <= 0 || hyper->dampening != 0)) {
        return tr_fail(err, TR_USAGE,
                       "optimizer.params.nesterov needs a momentum above 0 and no "
                       "dampening; they are %g and %g",
                       hyper->momentum, hyper->dampening);
    }
    return TR_OK;
}

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    hyper->momentum = tr__optimizer_number(config, "momentum");
    hyper->dampening = tr__optimizer_number(config, "dampening");
    hyper->nesterov = tr__optimizer_bool(config, "nesterov");
    return tr__nesterov_check(hyper, err);
}

int tr__momentum_states(const tr_hyper *hyper) {
    return hyper->momentum != 0;
}

const tr_optimizer_settings tr__optimizer_settings_sgd = {
    .types = types,
    .optimizer = &tr__optimizer_sgd,
    .keys = {"sgd", keys, sizeof keys / sizeof *keys},
    .read = read,
    .states = tr__momentum_states,
};
