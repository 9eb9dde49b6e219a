#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/muon/muon.h"
#include "ops/optimizers/optimizer_settings.h"

#include <strings.h>

static const char *const types[] = {"Muon", NULL};
static const char *const methods[] = {"standard", "gram", NULL};
static const char *const formats[] = {"bf16", "f32", NULL};
static const char *const adjusts[] = {"original", "match_rms_adamw", NULL};

static const tr_key keys[] = {
    TR_OPTIMIZER_LR(types, "1e-3"),
    {TR_OPTIMIZER_NUMBER("muon_lr", types, NULL),
     .doc = "learning rate of matrices; left out: lr"},
    {TR_OPTIMIZER_NUMBER("adam_lr", types, NULL),
     .doc = "learning rate of all else, which AdamW updates; left out: lr"},
    {TR_OPTIMIZER_SHARE("momentum", types, "0.95"), .allow_auto = true,
     .doc = "decay of the running mean of gradients"},
    {TR_OPTIMIZER_SWITCH("nesterov", types, "true"),
     .doc = "look ahead along the momentum"},
    {TR_OPTIMIZER_KEY("ns_method", types), .types = TR_KEY_TEXT,
     .status = TR_KEY_NOT_YET, .fallback = "\"standard\"", .choices = methods,
     .doc = "how Newton-Schulz iterations are done"},
    {TR_OPTIMIZER_KEY("ns_dtype", types), .types = TR_KEY_TEXT, .fallback = "\"bf16\"",
     .choices = formats,
     .doc = "the type to which results of the iterations are rounded"},
    {TR_OPTIMIZER_KEY("ns_steps", types), .types = TR_KEY_INT, .fallback = "5",
     .min = 1, .max = 99, .doc = "Newton-Schulz iterations"},
    {TR_OPTIMIZER_KEY("adjust_lr_fn", types), .types = TR_KEY_TEXT,
     .fallback = "\"original\"", .choices = adjusts,
     .doc = "how the rate follows a matrix's sides: sqrt(max(1, rows / columns)), or "
            "0.2 sqrt(max(rows, columns))"},
    {TR_OPTIMIZER_BETAS(types), .doc = "AdamW's: decay of the two running means"},
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-8"), .allow_auto = true,
     .doc = "AdamW's: added to the root of the squares"},
};

static double rate(const tr_config *config, const char *path, double usual) {
    return tr__config_is_given(config, path) ? tr__config_number(config, path) : usual;
}

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_muon_hyper own = {0};
    (void)err;
    tr__optimizer_betas(config, hyper); // whose powers AdamW's updates have
    hyper->lr = rate(config, "optimizer.params.muon_lr", hyper->lr);
    own.momentum = tr__optimizer_number(config, "momentum");
    own.nesterov = tr__optimizer_bool(config, "nesterov");
    own.steps = (int32_t)tr__config_int(config, "optimizer.params.ns_steps");
    own.bf16 =
        strcasecmp(tr__config_text(config, "optimizer.params.ns_dtype"), "bf16") == 0;
    own.adjust = strcasecmp(tr__config_text(config, "optimizer.params.adjust_lr_fn"),
                            "original") == 0
                     ? TR_MUON_ORIGINAL
                     : TR_MUON_MATCH_RMS;
    memcpy(hyper->own, &own, sizeof own);
    return TR_OK;
}

static tr_status read_apart(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    (void)err;
    tr_adam_hyper own = {.eps = tr__optimizer_number(config, "eps"),
                         .decoupled = true,
                         .bias_correction = true};
    tr__optimizer_betas(config, hyper);
    hyper->lr = rate(config, "optimizer.params.adam_lr", hyper->lr);
    memcpy(hyper->own, &own, sizeof own);
    return TR_OK;
}

const tr_optimizer_settings tr__optimizer_settings_muon = {
    .types = types,
    .optimizer = &tr__optimizer_muon,
    .keys = {.keys = keys, .count = sizeof keys / sizeof *keys},
    .read = read,
    .read_apart = read_apart,
    .told = "optimizer.params.ns_method",
};
