// What the parts of the derivation share: derive (the walk as a whole), derive_rules
// (one node's rules), derive_values (gradients' storage, values made available),
// derive_weights (gradients of weights that come later), derive_exchanges (those that
// are computed while ranks exchange).
#ifndef TR_GRAPH_DERIVE_WALK_H
#define TR_GRAPH_DERIVE_WALK_H

#include "graph/derive.h"

// What the walk knows about the forward's values, while it goes.
typedef struct tr_walk {
    tr_graph *graph;
    tr_derivation *out;
    size_t forward_count; // values of the forward; derived ones come after
    bool *wants;          // [forward] depends on what is trained
    bool *consumed;       // [forward] its gradient has been passed on
    tr_value *storage;    // [forward] where its gradient lies, TR_NO_VALUE: none yet
    bool weights_later;   // as asked for, where the unit allows it
    bool params_come;     // as asked for
} tr_walk;

tr_value_info *tr__walk_info(tr_walk *w, tr_value value);
// Is the value handed on by the unit, and as which?
bool tr__walk_output(const tr_graph *graph, tr_value value, int *index);
// Is there one gradient of it for all micro-batches?
bool tr__walk_collected(tr_walk *w, tr_value value);

// Appends a call to the backward.
void tr__walk_emit(tr_walk *w, const tr_call *call);
void tr__walk_copy(tr_walk *w, tr_value from, tr_value to, bool accumulate, bool first,
                   int segment);

// New storage for a gradient of `value`.
tr_value tr__walk_gradient(tr_walk *w, tr_value value);
// Storage for one more contribution to the gradient of `value`: `*accumulate` when
// there is one already, `*first` when the step decides.
tr_value tr__walk_contribute(tr_walk *w, tr_value value, int segment, bool *accumulate,
                             bool *first);
// Makes a forward value available to the backward call that is about to be emitted.
void tr__walk_need(tr_walk *w, tr_value value, int segment);

// Does a call that comes later read the gradient that lies there? Then no other call
// may change it.
bool tr__walk_held(const tr_walk *w, tr_value storage);
// Makes the call gradients of parameters, and nothing else? Or does it make again what
// the backward needs? (Neither reads the micro-batch's data, or is an exchange.)
bool tr__walk_makes_weights(const tr_walk *w, const tr_call *call);
bool tr__walk_recomputes(const tr_walk *w, const tr_call *call);
// Is it the gradient of a parameter? Does the call make anything else?
bool tr__walk_is_of_param(const tr_walk *w, tr_value value);
bool tr__walk_makes_others(const tr_walk *w, const tr_call *call);
// Does a call that makes gradients of weights read the micro-batch's data?
bool tr__walk_weights_read_data(const tr_walk *w);
// Puts gradients of weights behind all other calls. false: no memory.
bool tr__walk_part_weights(tr_walk *w);
// Puts gradients of weights behind the exchange of their input's gradient. false: no
// memory.
bool tr__walk_hide_exchanges(tr_walk *w);

// Emits the backward of node `index`.
void tr__walk_node(tr_walk *w, size_t index);

#endif
