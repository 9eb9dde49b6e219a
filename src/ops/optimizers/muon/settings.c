#include "ops/optimizers/adam/adam.h"
#include "ops/optimizers/muon/muon.h"
#include "ops/optimizers/optimizer_settings.h"

#include <strings.h>

static const char *const types[] = {"Muon", NULL};
static const char *const methods[] = {"standard", "gram", NULL};
static const char *const formats[] = {"bf16", "fp16", "f32", NULL};
static const tr_dtype format_types[] = {TR_BF16, TR_F16, TR_F32};
static const char *const adjusts[] = {"original", "match_rms_adamw",
                                      "spectral_unclamped", NULL}; // tr_muon_adjust

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
     .fallback = "\"standard\"", .choices = methods,
     .doc = "how Newton-Schulz iterations are done: on the matrix, or (gram) on the "
            "product of its rows, where it is at least twice as long as wide"},
    {TR_OPTIMIZER_KEY("ns_dtype", types), .types = TR_KEY_TEXT, .choices = formats,
     .doc = "to which type results of the iterations are rounded; left out: bf16, with "
            "gram fp16"},
    {TR_OPTIMIZER_KEY("ns_steps", types), .types = TR_KEY_INT, .fallback = "5",
     .min = 1, .max = 99, .doc = "Newton-Schulz iterations"},
    {TR_OPTIMIZER_KEY("adjust_lr_fn", types), .types = TR_KEY_TEXT,
     .fallback = "\"original\"", .choices = adjusts,
     .doc = "how the rate follows a matrix's sides: sqrt(max(1, rows / columns)), or "
            "0.2 sqrt(max(rows, columns)), or sqrt(rows / columns)"},
    {TR_OPTIMIZER_BETAS(types), .doc = "AdamW's: decay of the two running means"},
    {TR_OPTIMIZER_NUMBER("eps", types, "1e-8"), .allow_auto = true,
     .doc = "AdamW's: added to the root of the squares"},
};

static double rate(const tr_config *config, const char *path, double usual) {
    return tr__config_is_given(config, path) ? tr__config_number(config, path) : usual;
}

static int choice(const tr_config *config, const char *path,
                  const char *const *choices) {
    const char *given = tr__config_text(config, path);
    int at = 0;
    while (choices[at + 1] && strcasecmp(given, choices[at]) != 0) {
        at++;
    }
    return at;
}

static tr_status read(const tr_config *config, tr_hyper *hyper, tr_error *err) {
    tr_muon_hyper own = {0};
    (void)err;
    tr__optimizer_betas(config, hyper); // whose powers AdamW's updates have
    hyper->lr = rate(config, "optimizer.params.muon_lr", hyper->lr);
    own.momentum = tr__optimizer_number(config, "momentum");
    own.nesterov = tr__optimizer_bool(config, "nesterov");
    own.steps = (int32_t)tr__config_int(config, "optimizer.params.ns_steps");
    static const char method[] = "optimizer.params.ns_method",
                      format[] = "optimizer.params.ns_dtype",
                      adjust[] = "optimizer.params.adjust_lr_fn";
    own.gram = choice(config, method, methods) == 1;
    own.type = tr__config_is_given(config, format)
                   ? format_types[choice(config, format, formats)]
               : own.gram ? TR_F16
                          : TR_BF16;
    own.adjust = (tr_muon_adjust)choice(config, adjust, adjusts);
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
