#include "ops/optimizers/adagrad/adagrad.h"
#include "ops/optimizers/optimizer_settings.h"

#include <string.h>

static const char *const types[] = {"Adagrad", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-2"),
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-10"), .allow_auto = true,
     .doc = "added to the root of the sums of squares"},
    {TR_OPTIMIZER_NUMBER("initial_accumulator_value", types, "0"),
     .doc = "first value of the sums of squares"},
    {TR_OPTIMIZER_NUMBER("lr_decay", types, "0"),
     .doc = "the rate is divided by 1 + lr_decay times the number of updates so far"},
    TR_OPTIMIZER_AMSGRAD(types),
    TR_OPTIMIZER_F32_STATES(types),
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_adagrad_hyper own = {0};
    (void)err;
    own.eps = tr__optimizer_number(config, "eps");
    own.initial_accumulator = tr__optimizer_number(config, "initial_accumulator_value");
    own.lr_decay = tr__optimizer_number(config, "lr_decay");
    memcpy(hyper->own, &own, sizeof own);
    return TR_OK;
}

const tr_optimizer_settings tr__optimizer_settings_adagrad = {
    .types = types,
    .optimizer = &tr__optimizer_adagrad,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
};
