// Ops of a graph as functions of C, and ops of the caller's own.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_GRAPH_H
#define TRANCHE_EXTEND_GRAPH_H

#include <tranche/extend/op.h>
#include <tranche/extend/rope.h>
#include <tranche/model.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- ops

// What tr_graph_op calls.
TR_API tr_value tr_graph_built_op(tr_graph *graph, const tr_built_op *built,
                                  const void *attr, const tr_value *in, int in_count,
                                  tr_value *out);

// Adds any op, also one of the caller's own. attr: op->attr_bytes bytes, copied. in:
// [in_count], TR_NO_VALUE for an operand that is left out. out: [the op's outputs], may
// be NULL. Returns output 0.
// TR_USAGE, as the graph's error: the op was compiled with headers of another version.
static inline tr_value tr_graph_op(tr_graph *graph, const tr_op *op, const void *attr,
                                   const tr_value *in, int in_count, tr_value *out) {
    const tr_built_op built = {op, TRANCHE_EXTEND_VERSION};
    return tr_graph_built_op(graph, &built, attr, in, in_count, out);
}

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
// The same, where the look-ups of one id, `padding`, give its row no gradient (the
// padding_idx of PyTorch's embeddings); negative: each row takes some.
TR_API tr_value tr_embedding_padded(tr_graph *graph, tr_value ids, tr_value wte,
                                    int64_t first, int64_t padding, tr_value wpe,
                                    tr_value before);
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
// The same both ways: a query sees all keys of its document, before it and behind it.
// It sees no padding where each token of that is a document of its own.
TR_API tr_value tr_bidirectional_attention(tr_graph *graph, tr_value qkv, int heads,
                                           int kv_heads, float dropout);
TR_API tr_value tr_gelu(tr_graph *graph, tr_value x, bool tanh_form);
TR_API tr_value tr_relu(tr_graph *graph, tr_value x);
TR_API tr_value tr_tanh(tr_graph *graph, tr_value x);
TR_API tr_value tr_silu(tr_graph *graph, tr_value x);
// a b, element by element; both of one shape.
TR_API tr_value tr_multiply(tr_graph *graph, tr_value a, tr_value b);

// A function of each element alone, with the numbers a and b where it has any.
typedef enum tr_pointwise_kind {
    TR_POINTWISE_SIGMOID,     // 1 / (1 + e^-x)
    TR_POINTWISE_CLAMP,       // x in [a, b]; its slope is 1 at a and b
    TR_POINTWISE_HARDTANH,    // the same; its slope is 0 there
    TR_POINTWISE_LEAKY_RELU,  // x > 0 ? x : a x
    TR_POINTWISE_ELU,         // x > 0 ? x : a (e^x - 1)
    TR_POINTWISE_HARDSIGMOID, // x + 3 in [0, 6], divided by 6
    TR_POINTWISE_HARDSWISH,   // x times that
    TR_POINTWISE_SOFTPLUS,    // log(1 + e^(a x)) / a; x where a x > b
    TR_POINTWISE_EXP,
    TR_POINTWISE_LOG,
    TR_POINTWISE_SQRT,
    TR_POINTWISE_POWER,  // x^a
    TR_POINTWISE_LINEAR, // a x + b
    TR_POINTWISE_ABS,
    TR_POINTWISE_KINDS // how many there are
} tr_pointwise_kind;
TR_API tr_value tr_pointwise(tr_graph *graph, tr_pointwise_kind kind, tr_value x,
                             float a, float b);
TR_API tr_value tr_rms_norm(tr_graph *graph, tr_value x, tr_value weight,
                            float epsilon);
// Over the last dimension: e^(scale x), divided by the sum of these.
TR_API tr_value tr_softmax(tr_graph *graph, tr_value x, float scale);
// Of matrices: a [B, N, M, K] by b [B, N, K, O], or with `b_transposed` [B, N, O, K] ->
// [B, N, M, O]
TR_API tr_value tr_product(tr_graph *graph, tr_value a, tr_value b, bool b_transposed);
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
typedef struct tr_conv2d_options {
    // Along the height, the width. Strides and dilations of 0 are 1.
    int stride[2], padding[2], dilation[2];
    // The channels of x and of the result are in so many groups. Each group of the
    // result sees only its own group of x. 0: 1.
    int groups;
} tr_conv2d_options;
// The same with weight [O, C / groups, P, Q].
TR_API tr_value tr_conv2d_by(tr_graph *graph, tr_value x, tr_value weight,
                             tr_value bias, const tr_conv2d_options *options);
// The average over windows of `kernel`, or (kernel 0) over the whole image -> [B, C].
TR_API tr_value tr_average_pool(tr_graph *graph, tr_value x, int kernel, int stride,
                                int padding);
TR_API tr_value tr_max_pool(tr_graph *graph, tr_value x, int kernel, int stride,
                            int padding);
// Every stride-th pixel, with channels of zeros after those of x -> [.., channels].
TR_API tr_value tr_shortcut(tr_graph *graph, tr_value x, int stride, int channels);

// The same elements of each sample in another shape: x [B, ...] -> [B, dim...], with
// the dimensions of dim [3] up to the first 0. It takes the place of x where nothing
// reads that any more.
TR_API tr_value tr_reshape(tr_graph *graph, tr_value x, const int64_t *dim);

// Exchanges of a group of the mesh: the ranks that differ on `axes` alone (a bit for
// each tr_axis). tr_all_reduce gives the sum of x over these ranks, of which each has a
// part. tr_all_reduce_gradient gives x itself, which is the same on all of them; its
// gradient is the sum of their gradients. x is no parameter.
TR_API tr_value tr_all_reduce(tr_graph *graph, tr_value x, uint32_t axes);
TR_API tr_value tr_all_reduce_gradient(tr_graph *graph, tr_value x, uint32_t axes);

// [B, outer rows, columns, inner] -> [B, outer columns, rows, inner]: rows and columns
// exchanged.
TR_API tr_value tr_transpose(tr_graph *graph, tr_value x, int rows);
// One to four tensors side by side: they differ in the last dimension alone.
TR_API tr_value tr_join_columns(tr_graph *graph, const tr_value *x, int count);
// The `count` columns of x [..., W] from `first` on.
TR_API tr_value tr_take_columns(tr_graph *graph, tr_value x, int first, int count);
// y[b, o, n, i] = scale x[b, o, i]: x [B, outer, inner] -> [B, outer, times, inner]
TR_API tr_value tr_expand(tr_graph *graph, tr_value x, int times, float scale);
// scale times the sums over the third dimension: x [B, outer, times, inner] -> [B,
// outer, inner]
TR_API tr_value tr_sum(tr_graph *graph, tr_value x, int times, float scale);
// A parameter, `times` times for each sample that x has: p [...] of W elements -> [B,
// times, W]. Of x nothing but its first dimension is looked at.
TR_API tr_value tr_repeat(tr_graph *graph, tr_value p, tr_value x, int times);

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

// Which of a text's tokens stand for it.
typedef enum tr_text_pooling {
    TR_TEXT_MEAN,
    TR_TEXT_CLS,
    TR_TEXT_LAST
} tr_text_pooling;
// x [B, S, C] -> [B, texts, C]: a row for each of the first `texts` documents of a
// sample, zeros where there is none. Without positions a sample is one text.
TR_API tr_value tr_text_pool(tr_graph *graph, tr_value x, tr_text_pooling kind,
                             int texts);
// x [..., C] -> rows of length 1.
TR_API tr_value tr_normalize(tr_graph *graph, tr_value x);
typedef struct tr_contrastive_options {
    bool normalize;     // inference gives rows of length 1
    bool symmetric;     // half the loss is that of positives among anchors
    bool mask_equal;    // equal texts are not each other's negatives
    double temperature; // that products are divided by; with a scale it is not read
    // T, the largest number of groups in an optimizer step, over all ranks. All its
    // micro-batches are then in memory at once. 0: the model is not trained, and its
    // loss is that of each micro-batch alone.
    int64_t groups;
} tr_contrastive_options;
// Ends the last unit of a model that embeds texts. x: [B, texts, C] f32. targets: [B,
// texts], numbers of texts, which equal texts share. In training, a sample is a group
// of 2 or 3 texts: an anchor, its positive and perhaps a negative. The loss is the
// cross-entropy of the positive among the positives and negatives of all groups. scale:
// [] f32, a parameter, log(1 / temperature); or TR_NO_VALUE. Inference gives x in its
// place.
TR_API void tr_contrastive(tr_graph *graph, tr_value x, tr_value targets,
                           tr_value scale, const tr_contrastive_options *options);
// A loss of numbers one by one.
typedef enum tr_element_loss_kind {
    TR_ELEMENTS_BINARY, // the cross-entropy of 1 / (1 + e^-x) and a share in [0, 1]
    TR_ELEMENTS_SQUARE, // (x - target)^2
} tr_element_loss_kind;
// Ends the last unit: the mean over all elements of x [...] whose target [...] f32 is
// not NAN. Inference gives x.
TR_API void tr_element_loss(tr_graph *graph, tr_element_loss_kind kind, tr_value x,
                            tr_value targets);
// Ends the last unit: the cross-entropy of logits x [..., classes] and targets [...]
// i32, TR_NO_TARGET where there is none. weight [classes] (or TR_NO_VALUE): what a
// target of each class counts as. smoothing: the share of a target that all classes get
// alike. Inference gives x.
TR_API void tr_cross_entropy(tr_graph *graph, tr_value x, tr_value targets,
                             tr_value weight, float smoothing);
// The same of each row [...] f32, a value that a caller makes its own loss of (as
// reduction="none" in PyTorch); 0 where there is no target. It ends no unit.
TR_API tr_value tr_cross_entropy_each(tr_graph *graph, tr_value x, tr_value targets,
                                      tr_value weight, float smoothing);
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

#ifdef __cplusplus
}
#endif
#endif
