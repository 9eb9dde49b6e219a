#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/optimizer_settings.h"

#include <string.h>
#include <strings.h>

static const char *const types[] = {"Adam", "AdamW", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-3"),
    {TR_OPTIMIZER_BETAS(types), .doc = "decay of the two running means"},
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-8"), .allow_auto = true,
     .doc = "added to the root of the squares"},
    {TR_OPTIMIZER_SWITCH("bias_correction", types, "true"),
     .doc = "divide the means by 1 - beta^t"},
    {TR_OPTIMIZER_SWITCH("adam_w_mode", types, "true"),
     .doc = "with type Adam: false adds the weight decay to the gradient"},
    TR_OPTIMIZER_STATE_DTYPE(types),
    TR_OPTIMIZER_AMSGRAD(types),
    TR_OPTIMIZER_F32_STATES(types),
    {TR_OPTIMIZER_KEY("torch_adam", types), .types = TR_KEY_BOOL,
     .status = TR_KEY_NO_MEANING, .doc = "there is one implementation"},
};

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    const char *type = tr__config_text(config, "optimizer.type");
    (void)err;
    tr_adam_hyper own = {0};
    tr__optimizer_betas(config, hyper);
    own.eps = tr__optimizer_number(config, "eps");
    own.bias_correction = tr__optimizer_bool(config, "bias_correction");
    own.decoupled =
        strcasecmp(type, "AdamW") == 0 || tr__optimizer_bool(config, "adam_w_mode");
    memcpy(hyper->own, &own, sizeof own);
    return TR_OK;
}

static bool is_adamw(const tr_config *config) {
    return strcasecmp(tr__config_text(config, "optimizer.type"), "AdamW") == 0 &&
           !tr__optimizer_bool(config, "adam_w_mode");
}

static const tr_optimizer_idle idle[] = {
    {"optimizer.params.adam_w_mode", is_adamw,
     "optimizer.type is \"AdamW\"; for weight decay in the gradient set it to "
     "\"Adam\""},
    {0},
};

const tr_optimizer_settings tr__optimizer_settings_adam = {
    .types = types,
    .optimizer = &tr__optimizer_adam,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
    .packs = true,
    .idle = idle,
};
