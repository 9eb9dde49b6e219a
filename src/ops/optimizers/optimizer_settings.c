#include "ops/optimizers/optimizer_settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool has_type(const tr_optimizer_settings *settings, const char *type) {
    for (const char *const *name = settings->types; *name; name++) {
        if (strcasecmp(*name, type) == 0) {
            return true;
        }
    }
    return false;
}

const tr_optimizer_settings *tr__optimizer_settings_find(const char *type) {
    for (size_t i = 0; tr__optimizers[i]; i++) {
        if (has_type(tr__optimizers[i], type)) {
            return tr__optimizers[i];
        }
    }
    return NULL;
}

static const char *path_of(const char *name, char path[TR_CONFIG_PATH_MAX]) {
    snprintf(path, TR_CONFIG_PATH_MAX, "optimizer.params.%s", name);
    return path;
}

double tr__optimizer_number(const tr_config *config, const char *name) {
    char path[TR_CONFIG_PATH_MAX];
    return tr__config_number(config, path_of(name, path));
}

bool tr__optimizer_bool(const tr_config *config, const char *name) {
    char path[TR_CONFIG_PATH_MAX];
    return tr__config_bool(config, path_of(name, path));
}

const char *const tr__state_dtypes[] = {"f32", "bf16", "int8", NULL};

void tr__optimizer_states(const tr_config *config, const tr_optimizer_settings *of,
                          tr_optimizer_state states[TR_OPTIMIZER_STATES],
                          tr_apart *apart) {
    const char *dtype =
        of->packs ? tr__config_text(config, "optimizer.params.state_dtype") : "f32";
    bool bf16 = strcasecmp(dtype, "bf16") == 0, int8 = strcasecmp(dtype, "int8") == 0;
    memcpy(states, of->optimizer->states, sizeof of->optimizer->states);
    for (int s = 0; s < of->optimizer->state_count; s++) {
        states[s].type = bf16                 ? TR_STATE_BF16
                         : !int8              ? TR_STATE_F32
                         : states[s].positive ? TR_STATE_U8
                                              : TR_STATE_I8;
    }
    *apart = of->optimizer->matrices ? TR_APART_NO_MATRIX
             : int8                  ? TR_APART_SMALL
                                     : TR_APART_NOTHING;
}

void tr__optimizer_betas(const tr_config *config, tr_hyper *hyper) {
    hyper->beta1 = tr__config_number_at(config, "optimizer.params.betas", 0);
    hyper->beta2 = tr__config_number_at(config, "optimizer.params.betas", 1);
}

// As torch.optim.SGD has it.
tr_status tr__momentum_read(const tr_config *config, double dampening, tr_momentum *out,
                            tr_error *err) {
    out->decay = tr__optimizer_number(config, "momentum");
    out->nesterov = tr__optimizer_bool(config, "nesterov");
    if (out->nesterov && (out->decay <= 0 || dampening != 0)) {
        return tr_fail(err, TR_USAGE,
                       "optimizer.params.nesterov needs a momentum above 0 and no "
                       "dampening; they are %g and %g",
                       out->decay, dampening);
    }
    return TR_OK;
}
