// A model: a list of units, each a function that builds its graph.
#ifndef TRANCHE_MODEL_H
#define TRANCHE_MODEL_H

#include <tranche/batch.h>
#include <tranche/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

// A unit is sharded, gathered, recomputed and offloaded as a whole. Units of the same
// `kind` must build the same graph; they share one compiled program.
typedef struct tr_model_unit {
    const char *name;   // "h.3"
    const char *kind;   // "block"
    const char *prefix; // put before its parameters' names: "transformer.h.3."
    void (*build)(tr_graph *graph, const void *config);
    const void *config; // handed to `build`
} tr_model_unit;

struct tr_rewrite;

typedef struct tr_model {
    const char *type;           // "gpt2", "mlp", or a name of the caller's
    int unit_count;             // in order; the last one ends with the loss
    const tr_model_unit *units; // [unit_count]
    // The tensors of a batch that the model reads. Units ask for them by name
    // (tr_graph_data). A data set must have tensors of the same names, types and
    // shapes, and no others.
    tr_batch_tensors batch;
    int64_t classes; // targets and, for tokens, inputs lie in [0, classes)
    // The names, in files, of tensors that have one row for each token; NULL at the
    // end. NULL: there are none. In files they have `padded_classes` rows (0:
    // `classes`). Rows from `classes` on are zeros that nothing reads.
    const char *const *token_tensors;
    int64_t padded_classes;
    bool classifier; // accuracy is worth telling
    // Rows that say what stands in the place of ops of its units (tranche/rewrite.h),
    // the last one without a function; they come before the library's own. NULL: none.
    const struct tr_rewrite *rewrites;
    const char *config_json; // written to checkpoints as config.json; NULL: {}
    void *owned;             // the maker's; freed by `release`
    void (*release)(struct tr_model *model); // NULL: the caller keeps it all
} tr_model;

// The largest number of targets of one sample.
TR_API int64_t tr_model_targets(const tr_model *model);
TR_API void tr_model_destroy(tr_model *model); // NULL-safe

#ifdef __cplusplus
}
#endif
#endif
