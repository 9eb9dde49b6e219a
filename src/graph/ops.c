// The ops as a model file calls them.
#include <tranche/extend/graph.h>

#include "graph/graph.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/auxiliary_loss/auxiliary_loss.h"
#include "ops/nn/batch_norm/batch_norm.h"
#include "ops/nn/broadcast/broadcast.h"
#include "ops/nn/columns/columns.h"
#include "ops/nn/contrastive/contrastive.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/cross_entropy/cross_entropy.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/element_loss/element_loss.h"
#include "ops/nn/embedding/embedding.h"
#include "ops/nn/gelu/gelu.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"
#include "ops/nn/multiply/multiply.h"
#include "ops/nn/normalize/normalize.h"
#include "ops/nn/pointwise/pointwise.h"
#include "ops/nn/pool/pool.h"
#include "ops/nn/product/product.h"
#include "ops/nn/relu/relu.h"
#include "ops/nn/reshape/reshape.h"
#include "ops/nn/residual/residual.h"
#include "ops/nn/rms_norm/rms_norm.h"
#include "ops/nn/rope/rope.h"
#include "ops/nn/shortcut/shortcut.h"
#include "ops/nn/silu/silu.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/nn/swiglu/swiglu.h"
#include "ops/nn/tanh/tanh.h"
#include "ops/nn/text_pool/text_pool.h"
#include "ops/nn/transpose/transpose.h"

// Where the tokens of a packed batch stand in their documents; TR_NO_VALUE: each sample
// is one document.
static tr_value positions_of(tr_graph *graph) {
    const tr_batch_tensor *positions = tr_batch_positions(&graph->batch);
    return positions ? tr_graph_data(graph, positions->name) : TR_NO_VALUE;
}

// An op of x, and of the positions where there are any.
static tr_value with_positions(tr_graph *graph, const tr_op *op, const void *attr,
                               tr_value x) {
    tr_value places = positions_of(graph);
    return tr_graph_op(graph, op, attr, (tr_value[]){x, places},
                       places == TR_NO_VALUE ? 1 : 2, NULL);
}

static tr_weight_layout layout_of(tr_linear_form form) {
    return form == TR_LINEAR_IN_OUT ? TR_WEIGHT_IN_OUT : TR_WEIGHT_OUT_IN;
}

static tr_value linear(tr_graph *graph, tr_linear_form form, tr_activation activation,
                       tr_value x, tr_value weight, tr_value bias) {
    tr_linear_attr attr = {layout_of(form), activation};
    return tr_graph_op(graph, &tr__op_linear, &attr, (tr_value[]){x, weight, bias}, 3,
                       NULL);
}

tr_value tr_linear(tr_graph *graph, tr_linear_form form, tr_value x, tr_value weight,
                   tr_value bias) {
    return linear(graph, form, TR_ACTIVATION_NONE, x, weight, bias);
}

tr_value tr_linear_relu(tr_graph *graph, tr_linear_form form, tr_value x,
                        tr_value weight, tr_value bias) {
    return linear(graph, form, TR_ACTIVATION_RELU, x, weight, bias);
}

tr_value tr_embedding(tr_graph *graph, tr_value ids, tr_value wte, tr_value wpe) {
    return tr_embedding_slice(graph, ids, wte, 0, wpe, TR_NO_VALUE);
}

tr_value tr_embedding_slice(tr_graph *graph, tr_value ids, tr_value wte, int64_t first,
                            tr_value wpe, tr_value before) {
    return tr_embedding_padded(graph, ids, wte, first, -1, wpe, before);
}

tr_value tr_embedding_padded(tr_graph *graph, tr_value ids, tr_value wte, int64_t first,
                             int64_t padding, tr_value wpe, tr_value before) {
    tr_embedding_attr attr = {.first = first, .padding = padding < 0 ? 0 : padding + 1};
    tr_value places = wpe == TR_NO_VALUE ? TR_NO_VALUE : positions_of(graph);
    return tr_graph_op(graph, &tr__op_embedding, &attr,
                       (tr_value[]){ids, wte, wpe, before, places},
                       places == TR_NO_VALUE ? 4 : 5, NULL);
}

tr_value tr_layer_norm(tr_graph *graph, tr_value x, tr_value weight, tr_value bias,
                       float epsilon) {
    tr_layer_norm_attr attr = {.epsilon = epsilon};
    return tr_graph_op(graph, &tr__op_layer_norm, &attr, (tr_value[]){x, weight, bias},
                       3, NULL);
}

tr_value tr_residual_norm(tr_graph *graph, tr_value r, tr_value x, float dropout,
                          tr_value weight, tr_value bias, float epsilon,
                          tr_value *norm) {
    tr_value out[TR_OP_OUT_MAX] = {TR_NO_VALUE, TR_NO_VALUE};
    tr_layer_norm_attr attr = {
        epsilon, {.probability = dropout, .draw_id = tr__graph_draw(graph)}};
    tr_graph_op(graph, &tr__op_residual_norm, &attr, (tr_value[]){r, x, weight, bias},
                4, out);
    *norm = out[1];
    return out[0];
}

tr_value tr_residual(tr_graph *graph, tr_value r, tr_value x, float dropout) {
    tr_dropout_attr attr = {.probability = dropout, .draw_id = tr__graph_draw(graph)};
    return tr_graph_op(graph, &tr__op_residual, &attr, (tr_value[]){r, x}, 2, NULL);
}

tr_value tr_attention(tr_graph *graph, tr_value qkv, int heads, float dropout) {
    return tr_grouped_attention(graph, qkv, heads, heads, 0, dropout);
}

tr_value tr_grouped_attention(tr_graph *graph, tr_value qkv, int heads, int kv_heads,
                              int window, float dropout) {
    tr_attention_attr attr = {.heads = heads,
                              .dropout = dropout,
                              .draw_id = tr__graph_draw(graph),
                              .kv_heads = kv_heads,
                              .window = window};
    return with_positions(graph, &tr__op_attention, &attr, qkv);
}

tr_value tr_bidirectional_attention(tr_graph *graph, tr_value qkv, int heads,
                                    int kv_heads, float dropout) {
    tr_attention_attr attr = {.heads = heads,
                              .dropout = dropout,
                              .draw_id = tr__graph_draw(graph),
                              .kv_heads = kv_heads,
                              .both = 1};
    return with_positions(graph, &tr__op_attention, &attr, qkv);
}

tr_value tr_rope(tr_graph *graph, tr_value x, const tr_rope_options *o) {
    tr_rope_attr attr = {.depth = o->head_dim,
                         .heads = o->heads,
                         .keys = o->kv_heads,
                         .theta = o->theta,
                         .scaling = o->scaling,
                         .factor = o->factor,
                         .low = o->low,
                         .high = o->high,
                         .attention = o->attention,
                         .original = o->original,
                         .whole = o->truncate};
    return with_positions(graph, &tr__op_rope, &attr, x);
}

tr_value tr_swiglu(tr_graph *graph, tr_value h) {
    return tr_graph_op(graph, &tr__op_swiglu, NULL, &h, 1, NULL);
}

tr_value tr_gelu(tr_graph *graph, tr_value x, bool tanh_form) {
    tr_gelu_attr attr = {tanh_form ? TR_GELU_TANH : TR_GELU_ERF};
    return tr_graph_op(graph, &tr__op_gelu, &attr, &x, 1, NULL);
}

tr_value tr_relu(tr_graph *graph, tr_value x) {
    return tr_graph_op(graph, &tr__op_relu, NULL, &x, 1, NULL);
}

tr_value tr_silu(tr_graph *graph, tr_value x) {
    return tr_graph_op(graph, &tr__op_silu, NULL, &x, 1, NULL);
}

tr_value tr_multiply(tr_graph *graph, tr_value a, tr_value b) {
    return tr_graph_op(graph, &tr__op_multiply, NULL, (tr_value[]){a, b}, 2, NULL);
}

tr_value tr_pointwise(tr_graph *graph, tr_pointwise_kind kind, tr_value x, float a,
                      float b) {
    tr_pointwise_attr attr = {(int32_t)kind, a, b};
    return tr_graph_op(graph, &tr__op_pointwise, &attr, &x, 1, NULL);
}

tr_value tr_softmax(tr_graph *graph, tr_value x, float scale) {
    tr_softmax_attr attr = {scale};
    return tr_graph_op(graph, &tr__op_softmax, &attr, &x, 1, NULL);
}

tr_value tr_product(tr_graph *graph, tr_value a, tr_value b, bool b_transposed) {
    tr_product_attr attr = {.b_transposed = b_transposed};
    return tr_graph_op(graph, &tr__op_product, &attr, (tr_value[]){a, b}, 2, NULL);
}

tr_value tr_transpose(tr_graph *graph, tr_value x, int rows) {
    tr_transpose_attr attr = {rows};
    return tr_graph_op(graph, &tr__op_transpose, &attr, &x, 1, NULL);
}

tr_value tr_join_columns(tr_graph *graph, const tr_value *x, int count) {
    return tr_graph_op(graph, &tr__op_join_columns, NULL, x, count, NULL);
}

tr_value tr_take_columns(tr_graph *graph, tr_value x, int first, int count) {
    tr_columns_attr attr = {.first = first, .count = count, .scale = 1};
    return tr_graph_op(graph, &tr__op_take_columns, &attr, &x, 1, NULL);
}

static tr_value repeated(tr_graph *graph, const tr_op *op, const tr_value *in,
                         int count, int times, float scale) {
    tr_broadcast_attr attr = {times, scale};
    return tr_graph_op(graph, op, &attr, in, count, NULL);
}

tr_value tr_expand(tr_graph *graph, tr_value x, int times, float scale) {
    return repeated(graph, &tr__op_expand, &x, 1, times, scale);
}

tr_value tr_sum(tr_graph *graph, tr_value x, int times, float scale) {
    return repeated(graph, &tr__op_sum, &x, 1, times, scale);
}

tr_value tr_repeat(tr_graph *graph, tr_value p, tr_value x, int times) {
    return repeated(graph, &tr__op_repeat, (tr_value[]){p, x}, 2, times, 1);
}

tr_value tr_tanh(tr_graph *graph, tr_value x) {
    return tr_graph_op(graph, &tr__op_tanh, NULL, &x, 1, NULL);
}

tr_value tr_dropout(tr_graph *graph, tr_value x, float probability) {
    tr_dropout_attr attr = {.probability = probability,
                            .draw_id = tr__graph_draw(graph)};
    if (probability == 0) {
        return x;
    }
    return tr_graph_op(graph, &tr__op_dropout, &attr, &x, 1, NULL);
}

tr_value tr_text_pool(tr_graph *graph, tr_value x, tr_text_pooling kind, int texts) {
    tr_text_pool_attr attr = {(int32_t)kind, texts};
    return with_positions(graph, &tr__op_text_pool, &attr, x);
}

tr_value tr_normalize(tr_graph *graph, tr_value x) {
    return tr_graph_op(graph, &tr__op_normalize, NULL, &x, 1, NULL);
}

void tr_contrastive(tr_graph *graph, tr_value x, tr_value targets, tr_value scale,
                    const tr_contrastive_options *o) {
    const tr_contrastive_attr attr = {o->normalize, o->symmetric, o->mask_equal, 0,
                                      o->temperature};
    const tr_contrastive_pool_attr pool = {o->groups};
    const tr_value texts[] = {x, targets};
    tr_value all = o->groups > 0 ? tr_graph_op(graph, &tr__op_contrastive_pool, &pool,
                                               texts, 2, NULL)
                                 : TR_NO_VALUE;
    tr_graph_op(graph, &tr__op_contrastive, &attr, (tr_value[]){x, targets, all, scale},
                4, NULL);
}

void tr_element_loss(tr_graph *graph, tr_element_loss_kind kind, tr_value x,
                     tr_value targets) {
    tr_element_loss_attr attr = {(int32_t)kind};
    tr_graph_op(graph, &tr__op_element_loss, &attr, (tr_value[]){x, targets}, 2, NULL);
}

void tr_cross_entropy(tr_graph *graph, tr_value x, tr_value targets, tr_value weight,
                      float smoothing) {
    tr_cross_entropy_attr attr = {smoothing};
    tr_graph_op(graph, &tr__op_cross_entropy, &attr, (tr_value[]){x, targets, weight},
                3, NULL);
}

tr_value tr_cross_entropy_each(tr_graph *graph, tr_value x, tr_value targets,
                               tr_value weight, float smoothing) {
    tr_cross_entropy_attr attr = {smoothing};
    return tr_graph_op(graph, &tr__op_cross_entropy_each, &attr,
                       (tr_value[]){x, targets, weight}, 3, NULL);
}

void tr__graph_auxiliary_loss(tr_graph *graph, tr_value x, tr_value targets,
                              tr_value weights) {
    tr_graph_op(graph, &tr__op_auxiliary_loss, NULL, (tr_value[]){x, targets, weights},
                3, NULL);
}

tr_value tr_rms_norm(tr_graph *graph, tr_value x, tr_value weight, float epsilon) {
    tr_rms_norm_attr attr = {.epsilon = epsilon};
    return tr_graph_op(graph, &tr__op_rms_norm, &attr, (tr_value[]){x, weight}, 2,
                       NULL);
}

tr_value tr_head_norm(tr_graph *graph, tr_value qkv, tr_value weight, int head_dim,
                      int queries, int keys, float epsilon) {
    tr_rms_norm_attr attr = {epsilon, head_dim, queries, keys};
    return tr_graph_op(graph, &tr__op_rms_norm, &attr, (tr_value[]){qkv, weight}, 2,
                       NULL);
}

tr_value tr_conv2d(tr_graph *graph, tr_value x, tr_value weight, tr_value bias,
                   int stride, int padding) {
    const tr_conv2d_options options = {.stride = {stride, stride},
                                       .padding = {padding, padding}};
    return tr_conv2d_by(graph, x, weight, bias, &options);
}

static int one_for_none(int number) {
    return number ? number : 1;
}

tr_value tr_conv2d_by(tr_graph *graph, tr_value x, tr_value weight, tr_value bias,
                      const tr_conv2d_options *o) {
    tr_conv2d_attr attr = {
        .stride = {one_for_none(o->stride[0]), one_for_none(o->stride[1])},
        .padding = {o->padding[0], o->padding[1]},
        .dilation = {one_for_none(o->dilation[0]), one_for_none(o->dilation[1])},
        .groups = one_for_none(o->groups)};
    return tr_graph_op(graph, &tr__op_conv2d, &attr, (tr_value[]){x, weight, bias}, 3,
                       NULL);
}

tr_value tr_average_pool(tr_graph *graph, tr_value x, int kernel, int stride,
                         int padding) {
    tr_pool_attr attr = {TR_POOL_AVERAGE, kernel, stride, padding};
    return tr_graph_op(graph, &tr__op_pool, &attr, &x, 1, NULL);
}

tr_value tr_max_pool(tr_graph *graph, tr_value x, int kernel, int stride, int padding) {
    tr_pool_attr attr = {TR_POOL_MAX, kernel, stride, padding};
    return tr_graph_op(graph, &tr__op_pool, &attr, &x, 1, NULL);
}

tr_value tr_shortcut(tr_graph *graph, tr_value x, int stride, int channels) {
    tr_shortcut_attr attr = {.stride = stride, .channels = channels};
    return tr_graph_op(graph, &tr__op_shortcut, &attr, &x, 1, NULL);
}

tr_value tr_reshape(tr_graph *graph, tr_value x, const int64_t *dim) {
    tr_reshape_attr attr = {{dim[0], dim[1], dim[2]}};
    return tr_graph_op(graph, &tr__op_reshape, &attr, &x, 1, NULL);
}

tr_value tr_all_reduce(tr_graph *graph, tr_value x, uint32_t axes) {
    tr_all_reduce_attr attr = {.axes = axes};
    return tr_graph_op(graph, &tr__op_all_reduce, &attr, &x, 1, NULL);
}

tr_value tr_all_reduce_gradient(tr_graph *graph, tr_value x, uint32_t axes) {
    tr_all_reduce_attr attr = {.axes = axes};
    return tr_graph_op(graph, &tr__op_all_reduce_gradient, &attr, &x, 1, NULL);
}

tr_value tr_batch_norm(tr_graph *graph, tr_value x, const tr_batch_norm_options *o,
                       tr_value residual, bool relu) {
    tr_batch_stat_attr stat_attr = {.momentum = o->momentum};
    tr_batch_norm_attr attr = {.epsilon = o->epsilon, .relu = relu};
    tr_value stat_in[] = {x, o->running_mean, o->running_var, o->tracked};
    static const tr_op *const ops[] = {[TR_EFFECTIVE_BATCH] = &tr__op_batch_stat,
                                       [TR_RANK_BATCH] = &tr__op_batch_stat_rank,
                                       [TR_MICRO_BATCH] = &tr__op_batch_stat_own};
    tr_value stat = tr_graph_op(graph, ops[o->scope], &stat_attr, stat_in, 4, NULL);
    tr_value in[] = {
        x, stat, o->weight, o->bias, residual, o->running_mean, o->running_var};
    return tr_graph_op(graph, &tr__op_batch_norm, &attr, in, 7, NULL);
}

void tr__graph_head(tr_graph *graph, tr_linear_form form, const tr_value in[4],
                    double share) {
    tr_lce_attr attr = {.layout = layout_of(form), .share = share};
    tr_graph_op(graph, &tr__op_linear_cross_entropy, &attr, in, 4, NULL);
}

void tr_linear_cross_entropy(tr_graph *graph, tr_linear_form form, tr_value x,
                             tr_value weight, tr_value bias, tr_value targets) {
    tr__graph_head(graph, form, (tr_value[]){x, weight, bias, targets}, 0);
}

tr_linear_cross_entropy_running
tr_linear_cross_entropy_slice(tr_graph *graph, tr_linear_form form, tr_value x,
                              tr_value weight, tr_value bias, tr_value targets,
                              int64_t first, tr_linear_cross_entropy_running before) {
    tr_lce_slice_attr attr = {.head = {.layout = layout_of(form)}, .first = first};
    tr_value in[] = {x, weight, bias, targets, before.sums, before.best};
    tr_value out[TR_OP_OUT_MAX] = {TR_NO_VALUE, TR_NO_VALUE};
    tr_graph_op(graph, &tr__op_linear_cross_entropy_slice, &attr, in, 6, out);
    return (tr_linear_cross_entropy_running){out[0], out[1]};
}

void tr_linear_cross_entropy_slice_loss(tr_graph *graph,
                                        tr_linear_cross_entropy_running last,
                                        tr_value targets) {
    tr_graph_op(graph, &tr__op_linear_cross_entropy_slice_loss, NULL,
                (tr_value[]){last.sums, last.best, targets}, 3, NULL);
}
