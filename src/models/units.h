// Putting together the units of an architecture.
#ifndef TR_MODELS_UNITS_H
#define TR_MODELS_UNITS_H

#include "models/architecture.h"

// Everything such a model owns, freed in one go.
typedef struct tr_units {
    tr_model model;
    const tr_architecture *architecture;
    tr_model_unit *units;
    char (*texts)[3][64]; // [units]: name, kind, prefix
    char *config_json;
    json_t *others;        // the keys of a file, for its checkpoints; NULL: none
    void *config;          // the architecture's own numbers
    tr_task_labels labels; // of its task
    struct tr_adapter_config *adapter; // beside its linear layers; NULL: none
    void *parts; // what single units are made from, where that differs
} tr_units;

// `count` units of a model with a copy of `config` [bytes]. NULL: no memory. Destroyed
// as its model (tr_model_destroy).
tr_units *tr__units_create(const tr_architecture *architecture, int count,
                           const void *config, size_t bytes);
// Room for `count` parts of `bytes` each; false: no memory.
bool tr__units_parts(tr_units *units, int count, size_t bytes);
// Unit `index`, with copies of its texts.
void tr__units_set(tr_units *units, int index, tr_model_unit unit);
// Takes `json` (NULL: there was no memory for it) as config.json, and hands the model
// over; destroys it on error.
tr_status tr__units_finish(tr_units *units, json_t *json, tr_model **out,
                           tr_error *err);

// Writes a number into config.json; -1: there is none.
tr_status tr__units_set_key(tr_units *units, const char *key, int64_t value,
                            tr_error *err);

// Sets a key in config.json; takes `value`, NULL: there was no memory for it.
tr_status tr__units_set_json(tr_units *units, const char *key, json_t *value,
                             tr_error *err);

// How weights are drawn.
static inline tr_init tr__init_normal(double deviation) {
    return (tr_init){TR_INIT_NORMAL, 0, (float)deviation};
}
static inline tr_init tr__init_constant(float value) {
    return (tr_init){TR_INIT_CONSTANT, value, 0};
}

#endif
