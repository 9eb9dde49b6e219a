#include "ops/optimizers/lion/lion.h"
#include "ops/optimizers/optimizer_settings.h"

static const char *const types[] = {"Lion", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-3"),
    {TR_OPTIMIZER_BETAS(types), .doc = "the mean's share of the direction, its decay"},
    TR_OPTIMIZER_F32_STATES(types),
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    (void)err;
    tr__optimizer_betas(config, hyper);
    return TR_OK;
}

const tr_optimizer_settings tr__optimizer_settings_lion = {
    .types = types,
    .optimizer = &tr__optimizer_lion,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
};
