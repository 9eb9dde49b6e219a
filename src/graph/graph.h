// Inside of a unit's graph, and what is derived from it.
#ifndef TR_GRAPH_GRAPH_H
#define TR_GRAPH_GRAPH_H

#include "base/stride.h"
#include "ops/operand.h"

#include <tranche/extend/graph.h>
#include <tranche/extend/rewrite.h>

enum {
    TR_GRAPH_IO_MAX = 8,
    // Numbers of random draws of a unit are below 2^16. Those of the model's own code
    // are below this; those of rows of rewrites, which stand in the place of a node,
    // follow from the node (rewrite.c).
    TR_GRAPH_DRAWS = 1 << 15,
    TR_GRAPH_CACHES_MAX = 4, // of what a row writes in a node's place
};

typedef enum tr_value_kind {
    TR_VALUE_INPUT, // from the unit before
    TR_VALUE_DATA,  // the batch's
    TR_VALUE_PARAM,
    TR_VALUE_STATE,
    TR_VALUE_NODE,   // an op's output
    TR_VALUE_GRAD,   // derived: gradient storage
    TR_VALUE_TEMP,   // derived: between the rules of one node; or between nodes of an
                     // evaluation that stand in the place of one
    TR_VALUE_LOGITS, // what stands in the place of a loss in inference
    TR_VALUE_CACHE,  // what a node keeps of earlier positions
} tr_value_kind;

typedef struct tr_value_info {
    tr_tensor_desc desc; // shapes may hold TR_BATCH
    tr_value_kind kind;
    int index; // of the input, tensor of the batch, parameter, state, or output of its
               // node
    int node;  // TR_VALUE_NODE: the node
    int segment; // TR_VALUE_NODE: the segment that writes it
    bool part;   // this rank's part of a tensor that ranks share (parameters say it
                 // themselves)
    bool wave;   // one for the whole wave
    bool sums;   // a loss's sums
    bool late;   // training makes it in the backward, and never keeps it
} tr_value_info;

// One op to run: a node of the forward, or a call of the backward.
typedef struct tr_call {
    const tr_op *op;
    _Alignas(8) unsigned char attr[TR_OP_ATTR_BYTES];
    int in_count, out_count;
    tr_value in[TR_OP_IN_MAX];   // TR_NO_VALUE: absent
    tr_value out[TR_OP_OUT_MAX]; // TR_NO_VALUE: not wanted
    uint32_t accumulate;         // bit i: out[i] += always
    // Bit i: out[i] is the program's first contribution to the gradient of a parameter
    // or of a wave tensor: += unless the step is the first to contribute to it.
    uint32_t first;
    int segment;
    // Of a backward: makes gradients of parameters alone, or what only such calls read,
    // and stands behind all that are handed on (derive_weights.c).
    bool weights;
    int origin; // of a node: the model's node that it is, or stands in the place of
} tr_call;

typedef struct tr_param_info {
    char *name; // local, or full when shared
    tr_shape shape;
    // Where it is rows of a tensor: that one's name and shape. Where it is this rank's
    // part of one (`split`): its shape.
    char *whole; // NULL: it is a tensor of its own, or a part of one
    tr_shape whole_shape;
    bool split;
    tr_stride lies;  // which elements of the whole it has
    tr_division cut; // `split`: of the whole's dimension that is cut
    bool by_rows;    // ranks of the tensor axis may share its rows, and no columns
    int64_t room;    // `split`: elements that are set aside for it on each rank
    // `split`: so many ranks that follow each other have the same part, each makes a
    // part of its gradient, and they are summed once a step; 1: it is the rank's own.
    int64_t repeats;
    tr_init init;
    bool shared;
    // Whole on every rank of the tensor axis, each of which makes its tokens' part of
    // the gradient: the parts are summed once a step.
    bool summed;
    bool frozen; // it is not trained: it has no gradient
    bool apart;  // it is trained, and the optimizer keeps other states of it
    // Kept in few bits (base/quantized.h): `shape` is then that of its bytes, as
    // elements of the type that computes. The bits that the whole tensor's values are
    // of; those that lie here; what they stand for, as files have it; in few bits it
    // lies with its rows and columns exchanged.
    tr_quantization quantized, kept;
    tr_shape plain;
    bool transposed;
    bool stacked;   // it lies right behind the parameter before it, whose value it is
                    // part of
    tr_value value; // stacked: TR_NO_VALUE
} tr_param_info;

typedef struct tr_state_info {
    char *name; // local
    float init;
    tr_value value;
} tr_state_info;

// While a row of rewrites writes in the place of a node.
typedef struct tr_writing {
    bool on;
    tr_rewrite_variant variant;
    int segment, origin; // of the nodes that it writes
    uint32_t axes;       // TR_REWRITE_SPLIT: over whose ranks sums are
    uint32_t draw,
        draw_end; // the number of its next draw, and the first that is not its
    // The caches that it made, and the results that are these from then on.
    tr_value cache[TR_GRAPH_CACHES_MAX], cache_after[TR_GRAPH_CACHES_MAX];
    int cache_count;
} tr_writing;

struct tr_graph {
    tr_error err;
    uint32_t draw_count; // random draws of the model's code so far: their numbers
    tr_writing writing;
    tr_dtype real; // of parameters, and so of what is made of them
    tr_tensor_desc inputs[TR_GRAPH_IO_MAX]; // of the unit: outputs of the one before
    int input_count;
    bool input_fixed[TR_GRAPH_IO_MAX]; // nothing trained leads to it: no gradient
    // Each rank of the tensor axis has its tokens of it (tr_cut.tokens).
    bool input_cut[TR_GRAPH_IO_MAX], output_cut[TR_GRAPH_IO_MAX];
    tr_batch_tensors batch; // of the model
    tr_value data_value[TR_BATCH_TENSORS_MAX];
    tr_value data_seen[TR_BATCH_TENSORS_MAX]; // the same, in the type it computes in
    tr_value input_value[TR_GRAPH_IO_MAX];
    tr_value_info *values;
    size_t value_count, value_capacity;
    tr_call *nodes;
    size_t node_count, node_capacity;
    tr_call *asked; // the nodes of an evaluation, of the same segments
    size_t asked_count;
    int64_t cache_room; // positions of its smallest cache; INT64_MAX: there is none
    tr_param_info *params;
    size_t param_count, param_capacity;
    tr_state_info *states;
    size_t state_count, state_capacity;
    tr_value output[TR_GRAPH_IO_MAX];
    int output_count;
    int segment_count;
    bool *barriers; // [segment_count] from 1: a batch barrier lies before the segment
    size_t barrier_capacity;
    bool has_loss; // as the model's code made it: inference has logits in its place
    bool cut;      // the next node begins a new segment
};

// A new graph for a unit with these inputs [input_count] (shapes with TR_BATCH) and
// the model's batch. NULL when there is no memory.
// real: f32, bf16 or f16, what it computes in; f32 data are cast to it.
tr_graph *tr__graph_create(const tr_tensor_desc *inputs, int input_count,
                           const tr_batch_tensors *batch, tr_dtype real);
void tr__graph_destroy(tr_graph *graph); // NULL-safe

// Makes parameter `index` one in few bits; returns how many words of 32 bits it takes.
int64_t tr__graph_quantize(tr_graph *graph, size_t index, tr_quantization kind,
                           bool transposed);

// The number of the next random draw of an op.
uint32_t tr__graph_draw(tr_graph *graph);

// How many of the segments [first, end), first >= 1, begin behind a batch barrier:
// every micro-batch of the wave must have done the segment before. (Others begin where
// the unit was cut.)
int tr__graph_barriers(const tr_graph *graph, int first, int end);

// Is the value one of those that the unit hands on?
bool tr__graph_hands_on(const tr_graph *graph, tr_value value);

// tr_graph_op, of an op that is known to be of this version.
tr_value tr__graph_op(tr_graph *graph, const tr_op *op, const void *attr,
                      const tr_value *in, int in_count, tr_value *out);
// tr_linear_cross_entropy of x, weight, bias and targets, where a share of the rows is
// expected to have a target.
void tr__graph_head(tr_graph *graph, tr_linear_form form, const tr_value in[4],
                    double share);
// A loss beside the one that ends the unit, right before it: the cross-entropy of
// logits x [..., classes] and targets [...] i32, each times its weight [...] f32
// (ops/nn/auxiliary_loss). Inference leaves it out.
void tr__graph_auxiliary_loss(tr_graph *graph, tr_value x, tr_value targets,
                              tr_value weights);
// A value of any kind; TR_NO_VALUE (and the graph's error) when there is no memory.
tr_value tr__graph_value(tr_graph *graph, tr_value_info info);

#endif
