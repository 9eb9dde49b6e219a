// The stage between a unit's graph and its programs: rows of tables
// (tranche/extend/rewrite.h) put other nodes in the place of nodes.
#ifndef TR_GRAPH_REWRITE_H
#define TR_GRAPH_REWRITE_H

#include "graph/graph.h"

// The library's own rows: of each file of graph/rewrites one table, which
// cmake/rewrites lists; NULL at the end.
extern const tr_rewrite *const tr__rewrites[];

// One walk over a unit's nodes.
typedef struct tr_rewrite_walk {
    const tr_rewrite *own;            // the model's rows; NULL: none
    const struct tr_adapter *adapter; // beside its linear layers; NULL: none
    const tr_model_unit *unit;
    tr_rewrite_variant variant;
    // See tr_rewrite_node.
    tr_quantization quantization;
    bool (*quantizes)(const void *request, const tr_rewrite_node *node,
                      const char *param);
    const void *request;
    int64_t cache_positions, cache_piece; // see tr_rewrite_node
    int64_t ranks, rank;                  // TR_REWRITE_SPLIT
    uint32_t axes;                        // and those whose ranks sum
    int64_t logits_bytes;                 // see tr_rewrite_node
    int64_t tokens; // of a sample: nodes that share no work are cut along them; 0: not
    bool hands_out; // what the unit hands on goes to the caller: it is whole
} tr_rewrite_walk;

// The row of an op in a variant; NULL: there is none.
const tr_rewrite *tr__rewrite_row(const tr_rewrite *own, const tr_op *op,
                                  tr_rewrite_variant variant);

// Of a parameter that a node reads as this input, and that ranks are to cut along `dim`
// before the rows of TR_REWRITE_QUANTIZED keep it in few bits: no part cuts a block of
// these where parts are multiples of so many elements. 0: it is not kept so.
int64_t tr__few_bits_grain(const tr_graph *graph, const tr_rewrite_walk *walk,
                           const tr_call *product, int input, int dim);

// Puts what rows write in the places of nodes. A node's outputs keep their values, so
// that what reads them stays as it is; values that are new come behind the others. The
// error is the graph's.
tr_status tr__graph_rewrite(tr_graph *graph, const tr_rewrite_walk *walk,
                            tr_error *err);
// Takes the nodes out, so that a pass can write them anew, into an empty list. What it
// returns [*count] is the caller's, to free.
tr_call *tr__graph_take_nodes(tr_graph *graph, size_t *count);
// Writes one node behind those of the graph: as it is; or what its row writes, if it
// has one; or one that is new, of the segment and origin of `like`, which makes `out`
// from in[in_count]. `attr` is of the op's attr_bytes, or NULL if the op has none.
void tr__graph_keep_node(tr_graph *graph, const tr_call *node);
void tr__graph_put_node(tr_graph *graph, const tr_call *like, const tr_op *op,
                        const void *attr, const tr_value *in, int in_count,
                        tr_value out);
void tr__graph_rewrite_node(tr_graph *graph, const tr_rewrite_walk *walk,
                            const tr_call *node);
// The same for an evaluation beside the training: the graph's nodes stay, and those of
// the evaluation are put beside them (tr_graph.asked).
tr_status tr__graph_rewrite_asked(tr_graph *graph, const tr_rewrite_walk *walk,
                                  tr_error *err);

// Builds a unit's graph behind these inputs [count], by the model's code and the rows
// that always apply. `model` may be NULL: only the library's rows apply. The caller
// destroys *out. TR_MEMORY, or the model's own errors.
tr_status tr__graph_of_unit(const tr_model *model, const tr_model_unit *unit,
                            const tr_tensor_desc *inputs, int count,
                            const tr_batch_tensors *batch, tr_dtype real,
                            tr_graph **out, tr_error *err);

// Values say which node makes them: after nodes have come, gone or moved.
void tr__graph_number_nodes(tr_graph *graph);

// A hash of nodes, parameters and states. Two graphs with one hash compute the same.
uint64_t tr__graph_hash(const tr_graph *graph);

#endif
