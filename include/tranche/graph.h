// The graph of one unit. A model's code builds it as if for one micro-batch on one
// device.
//
// After the first error, every function except tr_graph_status returns at once, with
// TR_NO_VALUE. So the model's code needs no checks, and the caller asks for the error
// once, at the end. tr_value is an index that is valid in its own graph only. Nothing
// here is collective.
#ifndef TRANCHE_GRAPH_H
#define TRANCHE_GRAPH_H

#include <tranche/batch.h>
#include <tranche/op.h>
#include <tranche/rope.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_graph tr_graph;
typedef int32_t tr_value;
#define TR_NO_VALUE ((tr_value)-1)

// How a parameter is drawn before training.
typedef enum tr_init_kind {
    TR_INIT_CONSTANT, // a everywhere
    TR_INIT_NORMAL,   // mean a, standard deviation b
    TR_INIT_UNIFORM,  // [a, b)
} tr_init_kind;

typedef struct tr_init {
    tr_init_kind kind;
    float a, b;
} tr_init;

// ---- what comes in and goes out

// The tensor that the unit before gave to its tr_graph_output number `index`.
TR_API tr_value tr_graph_input(tr_graph *graph, int index);
// The tensor of the batch with this name in the model's list (tr_model.batch): its
// first dimension is TR_BATCH, the others are the sample's. F32 becomes the type that
// the run computes in.
TR_API tr_value tr_graph_data(tr_graph *graph, const char *name);
// A parameter of this unit, of the type that the run computes in. Its full name is the
// unit's prefix and `name`.
TR_API tr_value tr_graph_param(tr_graph *graph, const char *name, tr_shape shape,
                               tr_init init);
// A parameter that several units use (tied weights). `name` is the full name. The
// `init` of its first user is used.
TR_API tr_value tr_graph_shared(tr_graph *graph, const char *name, tr_shape shape,
                                tr_init init);
// The same for rows [first, first + rows) of a tied tensor of `shape` that is used in
// slices. Each slice is a parameter with a flat buffer of its own; folders and
// checkpoints have the one tensor. Together the slices must be the whole tensor.
TR_API tr_value tr_graph_shared_rows(tr_graph *graph, const char *name, tr_shape shape,
                                     int64_t first, int64_t rows, tr_init init);
// Several parameters of this unit that lie one after the other as rows of one tensor.
// One product then does the work of several, while folders and checkpoints have each
// parameter under its own name. `shape` is that of the whole tensor; the rows of the
// parts add up to its first dimension.
typedef struct tr_param_rows {
    const char *name; // completed by the unit's prefix
    int64_t rows;
} tr_param_rows;
TR_API tr_value tr_graph_stacked(tr_graph *graph, const tr_param_rows *parts, int count,
                                 tr_shape shape, tr_init init);
// A state of this unit: a tensor that lives from step to step and is not a parameter,
// such as a running mean. Ops write it after each step that is applied (tr_op.track)
// and read it outside of training. It is the same on all ranks. F32 or I64; `value` is
// its first value everywhere.
TR_API tr_value tr_graph_state(tr_graph *graph, const char *name, tr_tensor_desc desc,
                               float value);
// Begins a new segment of the unit with the next op. Segments use different parameters,
// which need not be in memory at the same time.
TR_API void tr_graph_segment(tr_graph *graph);
// Makes `value` an input of the next unit. The first call is its input 0, the next its
// input 1, and so on.
TR_API void tr_graph_output(tr_graph *graph, tr_value value);

// ---- ops

// Adds any op, also one of the caller's own. attr: op->attr_bytes bytes, copied. in:
// [in_count], TR_NO_VALUE for an operand that is left out. out: [the op's outputs], may
// be NULL. Returns output 0.
TR_API tr_value tr_graph_op(tr_graph *graph, const tr_op *op, const void *attr,
                            const tr_value *in, int in_count, tr_value *out);

// Adds an op by its name ("linear"): all ops below may be called so, which is what
// bindings of other languages need. attributes: a JSON object ({"form": "in_out"});
// NULL: none. inputs: [input_count], TR_NO_VALUE for one that is left out, as are those
// after the last. outputs: [output_count], gets the first results; may be NULL. Returns
// result 0, TR_NO_VALUE of a loss. docs/library.md lists names, inputs and attributes.
// An unknown name, an attribute or an input that does not fit becomes the graph's
// error, TR_USAGE, and the message says what there is.
TR_API tr_value tr_graph_call(tr_graph *graph, const char *op, const char *attributes,
                              const tr_value *inputs, int input_count,
                              tr_value *outputs, int output_count);

typedef enum tr_linear_form {
    TR_LINEAR_OUT_IN, // weight [out, in], torch.nn.Linear
    TR_LINEAR_IN_OUT, // weight [in, out], GPT-2's Conv1D
} tr_linear_form;

// x [..., in] -> [..., out]; bias [out] or TR_NO_VALUE.
TR_API tr_value tr_linear(tr_graph *graph, tr_linear_form form, tr_value x,
                          tr_value weight, tr_value bias);
TR_API tr_value tr_linear_relu(tr_graph *graph, tr_linear_form form, tr_value x,
                               tr_value weight, tr_value bias);
// In a packed batch (tr_batch_positions), embeddings of positions, attention and rotary
// embeddings start again with each document. The model's code does not change for this.
// ids [B, S], wte [V, C], wpe [P, C] -> [B, S, C]
TR_API tr_value tr_embedding(tr_graph *graph, tr_value ids, tr_value wte, tr_value wpe);
// The same with some rows of the table: those of the ids from `first` on. `before` [B,
// S, C] is the sum over the slices so far, TR_NO_VALUE: none.
TR_API tr_value tr_embedding_slice(tr_graph *graph, tr_value ids, tr_value wte,
                                   int64_t first, tr_value wpe, tr_value before);
TR_API tr_value tr_layer_norm(tr_graph *graph, tr_value x, tr_value weight,
                              tr_value bias, float epsilon);
// y = r + dropout(x); the normalized y goes to `*norm`.
TR_API tr_value tr_residual_norm(tr_graph *graph, tr_value r, tr_value x, float dropout,
                                 tr_value weight, tr_value bias, float epsilon,
                                 tr_value *norm);
TR_API tr_value tr_residual(tr_graph *graph, tr_value r, tr_value x, float dropout);
// qkv [B, S, 3 C] -> [B, S, C]
TR_API tr_value tr_attention(tr_graph *graph, tr_value qkv, int heads, float dropout);
// The same, where heads / kv_heads heads of queries share one head of keys and values:
// qkv [B, S, (heads + 2 kv_heads) D] -> [B, S, heads D]. A query sees `window` keys,
// its own included (0: all up to its own).
TR_API tr_value tr_grouped_attention(tr_graph *graph, tr_value qkv, int heads,
                                     int kv_heads, int window, float dropout);
TR_API tr_value tr_gelu(tr_graph *graph, tr_value x, bool tanh_form);
TR_API tr_value tr_relu(tr_graph *graph, tr_value x);
TR_API tr_value tr_rms_norm(tr_graph *graph, tr_value x, tr_value weight,
                            float epsilon);
// The same for each head of queries and of keys in qkv [B, S, (queries + 2 keys)
// head_dim]; values stay as they are. weight [2 head_dim]: of queries, then of keys.
TR_API tr_value tr_head_norm(tr_graph *graph, tr_value qkv, tr_value weight,
                             int head_dim, int queries, int keys, float epsilon);
// h [..., 2 I], a gate and as many values -> silu(gate) * values [..., I]
TR_API tr_value tr_swiglu(tr_graph *graph, tr_value h);

// Rotary embeddings, x [B, S, W]: rotates the halves of each head by its position in S;
// the rest of a row stays as it is.
TR_API tr_value tr_rope(tr_graph *graph, tr_value x, const tr_rope_options *options);

// Images: [B, H, W, C], channels last.
// x by weight [O, C, P, Q] -> [B, H', W', O]; bias [O] or TR_NO_VALUE.
TR_API tr_value tr_conv2d(tr_graph *graph, tr_value x, tr_value weight, tr_value bias,
                          int stride, int padding);
// The average over windows of `kernel`, or (kernel 0) over the whole image -> [B, C].
TR_API tr_value tr_average_pool(tr_graph *graph, tr_value x, int kernel, int stride,
                                int padding);
TR_API tr_value tr_max_pool(tr_graph *graph, tr_value x, int kernel, int stride,
                            int padding);
// Every stride-th pixel, with channels of zeros after those of x -> [.., channels].
TR_API tr_value tr_shortcut(tr_graph *graph, tr_value x, int stride, int channels);

// Over which samples batch norm takes its statistics in training.
typedef enum tr_batch_scope {
    TR_EFFECTIVE_BATCH, // all samples of the optimizer step
    TR_RANK_BATCH,      // those of them that the rank has
    TR_MICRO_BATCH,     // each micro-batch's
} tr_batch_scope;

typedef struct tr_batch_norm_options {
    tr_value weight, bias; // [C]
    // States, [C], [C] and an i64: running_mean, running_var and num_batches_tracked of
    // torch.nn.BatchNorm2d. TR_NO_VALUE each: the model is never evaluated.
    tr_value running_mean, running_var, tracked;
    float epsilon, momentum;
    // Except with TR_MICRO_BATCH, every micro-batch of the step must be in memory at
    // once.
    tr_batch_scope scope;
} tr_batch_norm_options;
// y = norm(x) + residual [B, H, W, C] (or TR_NO_VALUE), and with `relu` max(0, y).
TR_API tr_value tr_batch_norm(tr_graph *graph, tr_value x,
                              const tr_batch_norm_options *options, tr_value residual,
                              bool relu);
TR_API tr_value tr_dropout(tr_graph *graph, tr_value x, float probability);
// The loss: product and cross-entropy in one op. It ends the last unit.
TR_API void tr_linear_cross_entropy(tr_graph *graph, tr_linear_form form, tr_value x,
                                    tr_value weight, tr_value bias, tr_value targets);

// The same in slices of the classes. This is the running result over the slices so far:
typedef struct tr_linear_cross_entropy_running {
    tr_value sums, best;
} tr_linear_cross_entropy_running;
#define TR_HEAD_BEGIN ((tr_linear_cross_entropy_running){TR_NO_VALUE, TR_NO_VALUE})
// The slice with the classes from `first` on: their weight and bias (or TR_NO_VALUE).
TR_API tr_linear_cross_entropy_running tr_linear_cross_entropy_slice(
    tr_graph *graph, tr_linear_form form, tr_value x, tr_value weight, tr_value bias,
    tr_value targets, int64_t first, tr_linear_cross_entropy_running before);
// The loss, after the last slice; ends the last unit.
TR_API void tr_linear_cross_entropy_slice_loss(tr_graph *graph,
                                               tr_linear_cross_entropy_running last,
                                               tr_value targets);

// ---- asking

TR_API tr_tensor_desc tr_graph_desc(const tr_graph *graph, tr_value value);
// Stops the graph with an error of the model's code.
TR_API void tr_graph_fail(tr_graph *graph, tr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
TR_API tr_status tr_graph_status(const tr_graph *graph, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
