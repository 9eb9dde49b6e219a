// Putting together the units of an architecture that comes with Tranche.
#ifndef TR_MODELS_UNITS_H
#define TR_MODELS_UNITS_H

#include "models/fields.h"
#include "models/models.h"

// Everything such a model owns, freed in one go.
typedef struct tr_units {
    tr_model model;
    tr_model_unit *units;
    char (*texts)[3][64]; // [units]: name, kind, prefix
    char *config_json;
    tr_gpt2_config gpt2;
    tr_mlp_layer *layers;
    tr_resnet_config resnet;
    tr_resnet_block *blocks;
} tr_units;

// NULL: no memory. Destroyed as its model (tr_model_destroy).
tr_units *tr__units_create(int count);
// Room for the blocks of a residual network.
bool tr__units_blocks(tr_units *units, int count);
// Unit `index`, with copies of its texts.
void tr__units_set(tr_units *units, int index, tr_model_unit unit);
// Takes `json` (NULL: there was no memory for it) as config.json, and hands the model
// over; destroys it on error.
tr_status tr__units_finish(tr_units *units, json_t *json, tr_model **out,
                           tr_error *err);

// json_resnet.c: a residual network from its keys (tr__model_from_json).
tr_status tr__resnet_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                               tr_error *err);

#endif
