// Optimizers as run files name them: their keys, and what these say.
//
// An optimizer's folder has a settings.c: its names, a table of the keys that its types
// have, each with the default that it has there, and a function that reads them. The
// build makes the lists of all optimizers from these files (cmake/optimizers.cmake).
#ifndef TR_OPS_OPTIMIZERS_OPTIMIZER_SETTINGS_H
#define TR_OPS_OPTIMIZERS_OPTIMIZER_SETTINGS_H

#include "config/config.h"
#include "ops/optimizers/momentum.h"
#include "ops/optimizers/optimizer.h"

// A key that has no effect where `idle` is true.
typedef struct tr_optimizer_idle {
    const char *key;
    bool (*idle)(const tr_config *config);
    const char *why;
} tr_optimizer_idle;

typedef struct tr_optimizer_settings {
    const char *const *types; // its names in run files, NULL after the last
    const tr_optimizer *optimizer;
    tr_key_table keys; // of optimizer.params
    // What the keys of a type say, but for lr and weight_decay, which *hyper has; its
    // `own` is all zeros. NULL: nothing more. TR_USAGE names the key and what would do.
    tr_status (*read)(const tr_config *config, tr_hyper *hyper, tr_error *err);
    // How many of the optimizer's states an update with these numbers reads or writes;
    // NULL: all.
    int (*states)(const tr_hyper *hyper);
    // The same of `optimizer->apart`, of which *hyper has lr and weight_decay.
    tr_status (*read_apart)(const tr_config *config, tr_hyper *hyper, tr_error *err);
    // A key of optimizer.params that is told at the start where it is left out, because
    // its default is not DeepSpeed's; NULL: none.
    const char *told;
    bool packs; // it has the key state_dtype: in which type its states are kept
    const tr_optimizer_idle *idle; // the last has no key; NULL: none
} tr_optimizer_settings;

// All optimizers by their numbers, their keys, and the names of all types; NULL after
// the last.
extern const tr_optimizer_settings *const tr__optimizers[];
extern const tr_key_table *const tr__optimizer_keys[];
extern const char *const tr__optimizer_types[];

// The optimizer that has a type of this name, in any case of letters; NULL: none.
const tr_optimizer_settings *tr__optimizer_settings_find(const char *type);

// The value of "optimizer.params.<name>".
double tr__optimizer_number(const tr_config *config, const char *name);
bool tr__optimizer_bool(const tr_config *config, const char *name);
// The values of optimizer.params.state_dtype, NULL after the last; and what of a state
// is kept in which type. Those that are apart (tr_apart) are of f32.
extern const char *const tr__state_dtypes[];
void tr__optimizer_states(const tr_config *config, const tr_optimizer_settings *of,
                          tr_optimizer_state states[TR_OPTIMIZER_STATES],
                          tr_apart *apart);
// Both betas.
void tr__optimizer_betas(const tr_config *config, tr_hyper *hyper);

// optimizer.params.momentum and .nesterov. TR_USAGE: Nesterov's momentum lacks a
// momentum, or has dampening.
tr_status tr__momentum_read(const tr_config *config, double dampening, tr_momentum *out,
                            tr_error *err);

// What a row begins with: the key optimizer.params.<name> of the types in `list`.
#define TR_OPTIMIZER_KEY(name, list)                                                   \
    .path = "optimizer.params." name, .where_key = "optimizer.type", .where = (list)
// A number of at least 0.
#define TR_OPTIMIZER_NUMBER(name, list, value)                                         \
    TR_OPTIMIZER_KEY(name, list), .types = TR_KEY_NUMBER, .fallback = (value),         \
                                  .max = TR_KEY_NUMBER_MAX
// The same, below 1.
#define TR_OPTIMIZER_SHARE(name, list, value)                                          \
    TR_OPTIMIZER_KEY(name, list), .types = TR_KEY_NUMBER, .fallback = (value),         \
                                  .max = 1, .max_excluded = true
#define TR_OPTIMIZER_SWITCH(name, list, value)                                         \
    TR_OPTIMIZER_KEY(name, list), .types = TR_KEY_BOOL, .fallback = (value)
// What nothing here does yet, where it asks for something else than the value.
#define TR_OPTIMIZER_NOT_YET(name, list, value)                                        \
    TR_OPTIMIZER_SWITCH(name, list, value), .status = TR_KEY_NOT_YET
// Rows that several have.
#define TR_OPTIMIZER_LR(list, value)                                                   \
    {                                                                                  \
        TR_OPTIMIZER_NUMBER("lr", list, value), .allow_auto = true,                    \
                                                .doc = "learning rate"                 \
    }
#define TR_OPTIMIZER_F32_STATES(list)                                                  \
    {                                                                                  \
        TR_OPTIMIZER_NOT_YET("fp32_optimizer_states", list, "true"),                   \
            .doc = "optimizer state is fp32"                                           \
    }
// Of an optimizer that `packs`: optimizer.params.state_dtype.
#define TR_OPTIMIZER_STATE_DTYPE(list)                                                 \
    {                                                                                  \
        TR_OPTIMIZER_KEY("state_dtype", list),                                         \
            .types = TR_KEY_TEXT, .fallback = "\"f32\"", .choices = tr__state_dtypes,  \
            .doc = "how states are kept: \"f32\", \"bf16\" or \"int8\" (in blocks of " \
                   "256 that share a scale; embeddings and small tensors in f32)"      \
    }
#define TR_OPTIMIZER_AMSGRAD(list)                                                     \
    {                                                                                  \
        TR_OPTIMIZER_NOT_YET("amsgrad", list, "false"),                                \
            .doc = "keep the largest second mean"                                      \
    }
#define TR_OPTIMIZER_BETAS(list)                                                       \
    TR_OPTIMIZER_KEY("betas", list),                                                   \
        .types = TR_KEY_LIST, .elements = TR_KEY_NUMBER, .length = 2,                  \
        .allow_auto = true, .fallback = "[0.9, 0.999]", .max = 1, .max_excluded = true

#endif
