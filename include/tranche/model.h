// A model: a list of units, each a function that builds its graph.
#ifndef TRANCHE_MODEL_H
#define TRANCHE_MODEL_H

#include <tranche/batch.h>
#include <tranche/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

// The grain of sharding, gathering, recomputing and offloading. Units of the same
// `kind` must build the same graph; they share one compiled program.
typedef struct tr_model_unit {
    const char *name;   // "h.3"
    const char *kind;   // "block"
    const char *prefix; // put before its parameters' names: "transformer.h.3."
    void (*build)(tr_graph *graph, const void *config);
    const void *config; // handed to `build`
} tr_model_unit;

typedef struct tr_model {
    const char *type;           // "gpt2", "mlp", or a name of the caller's
    int unit_count;             // in order; the last one ends with the loss
    const tr_model_unit *units; // [unit_count]
    // What it takes of a batch: units ask for these by name (tr_graph_data), and the
    // data set has to have tensors of the same names, types and shapes, and no others.
    tr_batch_tensors batch;
    int64_t classes; // targets and, for tokens, inputs lie in [0, classes)
    // Tensors whose rows are tokens, by their names in files, NULL at the end; NULL:
    // none. Files have `padded_classes` rows of them (0: `classes`), of which those
    // beyond `classes` are zeros that nothing reads.
    const char *const *token_tensors;
    int64_t padded_classes;
    bool classifier;         // accuracy is worth telling
    const char *config_json; // written to checkpoints as config.json; NULL: {}
    void *owned;             // the maker's; freed by `release`
    void (*release)(struct tr_model *model); // NULL: the caller keeps it all
} tr_model;

// Targets that one sample has at most.
int64_t tr_model_targets(const tr_model *model);
void tr_model_destroy(tr_model *model); // NULL-safe

#ifdef __cplusplus
}
#endif
#endif
