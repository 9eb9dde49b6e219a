// The backward of a unit, derived from the rules of its ops.
//
// Walks the nodes from last to first. Gradients of values with several uses are summed
// in place by the ops' own `accumulate`; a copy of a gradient is an alias as long as
// nobody needs the original when the alias is added to. Values of the classes that the
// caller names are recomputed before their first use (recompute.h); other values that
// the backward reads are `saved`.
#ifndef TR_GRAPH_DERIVE_H
#define TR_GRAPH_DERIVE_H

#include "graph/recompute.h"

typedef struct tr_derivation {
    size_t forward_values; // the graph's values before those that are derived
    tr_call *backward; // in order, segments from last to first; the caller's to free
    size_t backward_count, backward_capacity;
    bool *read; // [values] what the forward makes or reads as an input, and the rules
                // of the backward read
    bool *dropped; // [values] recomputed if they are needed
    bool *saved;   // [values] kept from the forward for the backward, per micro-batch
    bool *recomputed; // [values] recomputed in the backward
    bool *needed;     // [nodes] run again when the unit is recomputed from its boundary
    // There is a backward: the unit has a loss or trained parameters, or something that
    // is trained leads to its inputs.
    bool exists;
    bool reads_input[TR_GRAPH_IO_MAX];  // the backward reads the tensor handed in
    bool reads_output[TR_GRAPH_IO_MAX]; // ... the tensor handed on
    // Storage of the gradients handed in, and of those handed on. TR_NO_VALUE: of a
    // tensor that nothing trained leads to.
    tr_value output_grad[TR_GRAPH_IO_MAX], input_grad[TR_GRAPH_IO_MAX];
    // The gradient of the one input lies where that of the one output lay.
    bool in_place;
    // The calls from here on make gradients of weights that may come later: they read
    // what no call changes once it is there. backward_count: there are none.
    size_t weights;
} tr_derivation;

// What a derivation is asked for.
typedef struct tr_derive_request {
    // The classes of values (tr_recompute_class) that are dropped where that saves
    // memory.
    uint32_t recomputed;
    // Gradients of weights may come later than those that the unit hands on: all of
    // them, or none.
    bool weights_later;
    // Parameters come for a while: those that are computed with are not read later.
    bool params_come;
} tr_derive_request;

// Adds the derived values to the graph. Frees nothing on error but its own.
tr_status tr__derive(tr_graph *graph, tr_derive_request request, tr_derivation *out,
                     tr_error *err);
void tr__derivation_clear(tr_derivation *derivation); // NULL-safe

#endif
