// Rewrites: what stands in a node's place in one variant of a model.
//
// A model's code builds the graph of a unit once. A row (`tr_rewrite`) names an op and
// a variant, and has a function that writes other nodes in the place of a node of that
// op. So a loss gives logits in inference, and a linear layer gets an adapter, while
// the model's code knows of neither. The library has rows for its own ops. A model
// brings rows for its own ops, or others for the library's, with it
// (tr_model.rewrites).
//
// Each variant is one walk over the nodes, in the order of tr_rewrite_variant. A node
// gets the first row that names its op and the variant, of the model's rows or else of
// the library's. The variants that follow see what a row writes; its own variant does
// not.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_REWRITE_H
#define TRANCHE_EXTEND_REWRITE_H

#include <tranche/extend/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tr_rewrite_variant {
    TR_REWRITE_ALWAYS, // in training, evaluation and inference: adapters
    // In training and evaluation, of a node whose work ranks share in a way that
    // expands (tr_split.expands): its operands and attributes are the rank's.
    TR_REWRITE_SPLIT,
    TR_REWRITE_QUANTIZED, // in units whose weights are kept in few bits
    TR_REWRITE_FP8,       // in units that multiply in 8 bits (tr_plan_request.fp8)
    // Where nothing is trained, so that dropout does nothing: in evaluations and in
    // inference. Rows of an evaluation add no parameters and no states.
    TR_REWRITE_ASKED,
    // In an inference with caches (tr_plan_request.cache_positions): the node goes on
    // from what a cache holds of positions before run->position.
    TR_REWRITE_CACHE,
    // In inference, of a loss: result 0 is the logits, [B, classes] f32, of the last
    // position of each sample; it takes the place of the sums.
    TR_REWRITE_LOGITS,
    // The same in an inference that asks for the logits of all positions
    // (tr_plan_request.all_positions).
    TR_REWRITE_ALL_LOGITS,
    TR_REWRITE_VARIANTS
} tr_rewrite_variant;

// A node as a row sees it.
typedef struct tr_rewrite_node {
    tr_rewrite_variant variant;
    const tr_model_unit *unit; // that it is in
    const tr_op *op;
    const void *attr;
    int in_count, out_count;
    const tr_value *in;  // [in_count] tr_graph_desc has their types and shapes
    const tr_value *out; // [out_count] what it would make
    // The names of the operands that are parameters; NULL: another operand. The unit's
    // prefix completes a name, unless the parameter is tied. If several parameters lie
    // in one tensor, it is the name of the first.
    const char *param[TR_OP_IN_MAX];
    // The adapters beside linear layers (the run's "adapter"), for the library's own
    // row; NULL: none.
    const struct tr_adapter *adapter;
    // TR_REWRITE_QUANTIZED, for the library's own row: how weights are kept, and
    // whether the weight of this name is kept so.
    tr_quantization quantization;
    bool (*quantizes)(const void *request, const struct tr_rewrite_node *node,
                      const char *param);
    const void *request;
    // TR_REWRITE_CACHE: the positions of the longest text, and the most of them that
    // are computed at once.
    int64_t cache_positions, cache_piece;
    int64_t ranks, rank; // TR_REWRITE_SPLIT: those that share the work, and this one
    // TR_REWRITE_SPLIT, for the library's own row: bytes of a vocabulary's logits that
    // a rank keeps at once, of each sample of a micro-batch. 0: as the row has it.
    int64_t logits_bytes;
} tr_rewrite_node;

// Writes nodes in the node's place by the functions of tranche/extend/graph.h. Sets
// results [node->out_count] to the values that replace the node's outputs, of the same
// types and shapes. TR_NO_VALUE (their value before the call): the output no longer
// exists, and nothing may read it. Returns false, and writes nothing, if the node
// stays. Errors become the graph's (tr_graph_fail).
//
// The nodes are in the node's segment, and each rank and micro-batch has the same.
// Units of one kind may be rewritten differently. What the row adds (tr_graph_param,
// tr_graph_state) is the unit's, as if the model's code had asked for it. Random draws
// of these nodes have numbers of their own, so they do not change those of other nodes.
// At most 8 draws replace one node.
typedef bool tr_rewrite_function(tr_graph *graph, const tr_rewrite_node *node,
                                 tr_value *results);

typedef struct tr_rewrite {
    tr_rewrite_variant variant;
    const tr_op *op;            // NULL: the op of this name,
    const char *name;           // such as "linear" (tr_op.name)
    tr_rewrite_function *write; // NULL: no row, the table ends
} tr_rewrite;

// ---- in a row's function

// Writes one node: this op, with these attributes (op->attr_bytes bytes), on the node's
// operands. Its outputs become the results, as many as the node has. Returns true.
TR_API bool tr_rewrite_as(tr_graph *graph, const tr_rewrite_node *node, const tr_op *op,
                          const void *attr, tr_value *results);

// TR_REWRITE_SPLIT: x [...], of a real type, summed over the ranks that share the
// node's work. All of them have the result, and the gradient of x is the gradient of
// the result, because all ranks compute the same from there on.
TR_API tr_value tr_graph_sum_over_ranks(tr_graph *graph, tr_value x);

// TR_REWRITE_CACHE: a tensor of the unit that lives from step to step, with room for
// this number of positions. In a cache of fewer than cache_positions later positions
// replace the earliest.
TR_API tr_value tr_graph_cache(tr_graph *graph, tr_tensor_desc desc, int64_t positions);
// The output `made` of a node that the row wrote, which reads the cache, is the cache
// from then on: both share one memory.
TR_API void tr_graph_cache_after(tr_graph *graph, tr_value cache, tr_value made);

#ifdef __cplusplus
}
#endif
#endif
