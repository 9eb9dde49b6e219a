// The ops that models may call by name: their operands and attributes. docs/library.md
// has the same table.
#include "graph/call.h"

#define NUMBER(text, value)                                                            \
    { .name = (text), .fallback = (value) }
#define COUNT(text, value)                                                             \
    { .name = (text), .kind = TR_ATTRIBUTE_COUNT, .fallback = (value) }
#define NEEDED(text)                                                                   \
    { .name = (text), .kind = TR_ATTRIBUTE_COUNT, .required = true }
#define SWITCH(text, value)                                                            \
    { .name = (text), .kind = TR_ATTRIBUTE_SWITCH, .fallback = (value) }
#define CHOICE(text, list)                                                             \
    { .name = (text), .kind = TR_ATTRIBUTE_CHOICE, .choices = (list) }

static const char *const forms[] = {"out_in", "in_out", NULL}; // tr_linear_form
static const char *const activations[] = {"none", "relu", NULL};
static const char *const gelus[] = {"none", "tanh", NULL};
static const char *const poolings[] = {"mean", "cls", "last", NULL}; // tr_text_pooling
static const char *const losses[] = {"binary", "square", NULL}; // tr_element_loss_kind
static const char *const functions[] = {
    "sigmoid",     "clamp",     "hardtanh", "leaky_relu", "elu",
    "hardsigmoid", "hardswish", "softplus", "exp",        "log",
    "sqrt",        "power",     "linear",   "abs",        NULL}; // tr_pointwise_kind
static const char *const scopes[] = {"effective_batch", "rank_batch", "micro_batch",
                                     NULL}; // tr_batch_scope
static const char *const scalings[] = {"default", "linear", "llama3", "yarn",
                                       NULL}; // tr_rope_scaling

static void linear(tr_graph *g, const tr_call_given *c, tr_value *out) {
    tr_linear_form form = (tr_linear_form)c->value[0];
    *out = c->value[1] > 0 ? tr_linear_relu(g, form, c->in[0], c->in[1], c->in[2])
                           : tr_linear(g, form, c->in[0], c->in[1], c->in[2]);
}

static void embedding(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_embedding_padded(g, c->in[0], c->in[1], (int64_t)c->value[0],
                               (int64_t)c->value[1], c->in[2], c->in[3]);
}

static void layer_norm(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_layer_norm(g, c->in[0], c->in[1], c->in[2], (float)c->value[0]);
}

static void residual(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_residual(g, c->in[0], c->in[1], (float)c->value[0]);
}

static void residual_norm(tr_graph *g, const tr_call_given *c, tr_value *out) {
    out[0] = tr_residual_norm(g, c->in[0], c->in[1], (float)c->value[0], c->in[2],
                              c->in[3], (float)c->value[1], &out[1]);
}

static void attention(tr_graph *g, const tr_call_given *c, tr_value *out) {
    int heads = (int)c->value[0], shared = (int)c->value[1];
    *out = tr_grouped_attention(g, c->in[0], heads, shared > 0 ? shared : heads,
                                (int)c->value[2], (float)c->value[3]);
}

static void bidirectional(tr_graph *g, const tr_call_given *c, tr_value *out) {
    int heads = (int)c->value[0], shared = (int)c->value[1];
    *out = tr_bidirectional_attention(g, c->in[0], heads, shared > 0 ? shared : heads,
                                      (float)c->value[2]);
}

static void rope(tr_graph *g, const tr_call_given *c, tr_value *out) {
    tr_rope_options options = {.heads = (int)c->value[0],
                               .head_dim = (int)c->value[1],
                               .theta = c->value[2],
                               .scaling = (tr_rope_scaling)c->value[3],
                               .factor = (float)c->value[4],
                               .low = (float)c->value[5],
                               .high = (float)c->value[6],
                               .attention = (float)c->value[7],
                               .original = (int)c->value[8],
                               .truncate = c->value[9] > 0,
                               .kv_heads = (int)c->value[10]};
    *out = tr_rope(g, c->in[0], &options);
}

static void swiglu(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_swiglu(g, c->in[0]);
}

static void gelu(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_gelu(g, c->in[0], c->value[0] > 0);
}

static void relu(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_relu(g, c->in[0]);
}

static void hyperbolic_tangent(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_tanh(g, c->in[0]);
}

static void silu(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_silu(g, c->in[0]);
}

static void multiply(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_multiply(g, c->in[0], c->in[1]);
}

static void pointwise(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_pointwise(g, (tr_pointwise_kind)c->value[0], c->in[0], (float)c->value[1],
                        (float)c->value[2]);
}

static void transpose(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_transpose(g, c->in[0], (int)c->value[0]);
}

static void join_columns(tr_graph *g, const tr_call_given *c, tr_value *out) {
    int count = 0;
    while (count < 4 && c->in[count] != TR_NO_VALUE) {
        count++;
    }
    *out = tr_join_columns(g, c->in, count);
}

static void take_columns(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_take_columns(g, c->in[0], (int)c->value[0], (int)c->value[1]);
}

static void expand(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_expand(g, c->in[0], (int)c->value[0], (float)c->value[1]);
}

static void sum(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_sum(g, c->in[0], (int)c->value[0], (float)c->value[1]);
}

static void repeat(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_repeat(g, c->in[0], c->in[1], (int)c->value[0]);
}

static void element_loss(tr_graph *g, const tr_call_given *c, tr_value *out) {
    (void)out; // it ends the last unit
    tr_element_loss(g, (tr_element_loss_kind)c->value[0], c->in[0], c->in[1]);
}

static void cross_entropy(tr_graph *g, const tr_call_given *c, tr_value *out) {
    (void)out;
    tr_cross_entropy(g, c->in[0], c->in[1], c->in[2], (float)c->value[0]);
}

static void cross_entropy_each(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_cross_entropy_each(g, c->in[0], c->in[1], c->in[2], (float)c->value[0]);
}

static void dropout(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_dropout(g, c->in[0], (float)c->value[0]);
}

static void text_pool(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_text_pool(g, c->in[0], (tr_text_pooling)c->value[0], (int)c->value[1]);
}

static void normalize(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_normalize(g, c->in[0]);
}

static void contrastive(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = TR_NO_VALUE;
    const tr_contrastive_options options = {.normalize = c->value[0] > 0,
                                            .symmetric = c->value[1] > 0,
                                            .temperature = c->value[2],
                                            .groups = (int64_t)c->value[3],
                                            .mask_equal = c->value[4] > 0};
    tr_contrastive(g, c->in[0], c->in[1], c->in[2], &options);
}

static void rms_norm(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_rms_norm(g, c->in[0], c->in[1], (float)c->value[0]);
}

static void head_norm(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_head_norm(g, c->in[0], c->in[1], (int)c->value[0], (int)c->value[1],
                        (int)c->value[2], (float)c->value[3]);
}

// `stride` and the like are of both sides, `stride_width` of the second if it is given.
static void conv2d(tr_graph *g, const tr_call_given *c, tr_value *out) {
    tr_conv2d_options options = {.groups = (int)c->value[6]};
    int *const pairs[] = {options.stride, options.padding, options.dilation};
    for (int i = 0; i < 3; i++) {
        double width = c->value[2 * i + 1];
        pairs[i][0] = (int)c->value[2 * i];
        pairs[i][1] = width < 0 ? pairs[i][0] : (int)width;
    }
    *out = tr_conv2d_by(g, c->in[0], c->in[1], c->in[2], &options);
}

static void softmax(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_softmax(g, c->in[0], (float)c->value[0]);
}

static void product(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_product(g, c->in[0], c->in[1], c->value[0] > 0);
}

static void average_pool(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_average_pool(g, c->in[0], (int)c->value[0], (int)c->value[1],
                           (int)c->value[2]);
}

static void max_pool(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out =
        tr_max_pool(g, c->in[0], (int)c->value[0], (int)c->value[1], (int)c->value[2]);
}

static void shortcut(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_shortcut(g, c->in[0], (int)c->value[0], (int)c->value[1]);
}

static void reshape(tr_graph *g, const tr_call_given *c, tr_value *out) {
    *out = tr_reshape(
        g, c->in[0],
        (int64_t[]){(int64_t)c->value[0], (int64_t)c->value[1], (int64_t)c->value[2]});
}

static void batch_norm(tr_graph *g, const tr_call_given *c, tr_value *out) {
    tr_batch_norm_options options = {.weight = c->in[1],
                                     .bias = c->in[2],
                                     .running_mean = c->in[4],
                                     .running_var = c->in[5],
                                     .tracked = c->in[6],
                                     .epsilon = (float)c->value[0],
                                     .momentum = (float)c->value[1],
                                     .scope = (tr_batch_scope)c->value[2]};
    *out = tr_batch_norm(g, c->in[0], &options, c->in[3], c->value[3] > 0);
}

static void loss(tr_graph *g, const tr_call_given *c, tr_value *out) {
    (void)out; // it ends the last unit
    tr_linear_cross_entropy(g, (tr_linear_form)c->value[0], c->in[0], c->in[1],
                            c->in[3], c->in[2]);
}

static const tr_call_row rows[] = {
    {"linear",
     {"x", "weight", "bias"},
     2,
     1,
     {CHOICE("form", forms), CHOICE("activation", activations)},
     linear},
    {"embedding",
     {"ids", "table", "positions", "before"},
     2,
     1,
     {COUNT("first", 0), COUNT("padding", -1)},
     embedding},
    {"layer_norm",
     {"x", "weight", "bias"},
     3,
     1,
     {NUMBER("epsilon", 1e-5)},
     layer_norm},
    {"residual", {"r", "x"}, 2, 1, {NUMBER("dropout", 0)}, residual},
    {"residual_norm",
     {"r", "x", "weight", "bias"},
     4,
     2,
     {NUMBER("dropout", 0), NUMBER("epsilon", 1e-5)},
     residual_norm},
    {"attention",
     {"qkv"},
     1,
     1,
     {NEEDED("heads"), COUNT("kv_heads", 0), COUNT("window", 0), NUMBER("dropout", 0)},
     attention},
    {"bidirectional_attention",
     {"qkv"},
     1,
     1,
     {NEEDED("heads"), COUNT("kv_heads", 0), NUMBER("dropout", 0)},
     bidirectional},
    {"rope",
     {"x"},
     1,
     1,
     {NEEDED("heads"), NEEDED("head_dim"), NUMBER("theta", 10000),
      CHOICE("scaling", scalings), NUMBER("factor", 0), NUMBER("low", 0),
      NUMBER("high", 0), NUMBER("attention", 0), COUNT("original", 0),
      SWITCH("truncate", 0), COUNT("kv_heads", 0)},
     rope},
    {"swiglu", {"h"}, 1, 1, {{0}}, swiglu},
    {"gelu", {"x"}, 1, 1, {CHOICE("approximate", gelus)}, gelu},
    {"relu", {"x"}, 1, 1, {{0}}, relu},
    {"tanh", {"x"}, 1, 1, {{0}}, hyperbolic_tangent},
    {"silu", {"x"}, 1, 1, {{0}}, silu},
    {"multiply", {"a", "b"}, 2, 1, {{0}}, multiply},
    {"pointwise",
     {"x"},
     1,
     1,
     {CHOICE("function", functions), NUMBER("a", 0), NUMBER("b", 0)},
     pointwise},
    {"transpose", {"x"}, 1, 1, {NEEDED("rows")}, transpose},
    {"join_columns", {"x1", "x2", "x3", "x4"}, 1, 1, {{0}}, join_columns},
    {"take_columns", {"x"}, 1, 1, {COUNT("first", 0), NEEDED("count")}, take_columns},
    {"expand", {"x"}, 1, 1, {NEEDED("times"), NUMBER("scale", 1)}, expand},
    {"sum", {"x"}, 1, 1, {NEEDED("times"), NUMBER("scale", 1)}, sum},
    {"repeat", {"p", "x"}, 2, 1, {NEEDED("times")}, repeat},
    {"dropout",
     {"x"},
     1,
     1,
     {{.name = "p", .kind = TR_ATTRIBUTE_NUMBER, .required = true}},
     dropout},
    {"text_pool",
     {"x"},
     1,
     1,
     {CHOICE("pooling", poolings), COUNT("texts", 1)},
     text_pool},
    {"normalize", {"x"}, 1, 1, {{0}}, normalize},
    {"contrastive",
     {"x", "targets", "scale"},
     2,
     0,
     {SWITCH("normalize", 0), SWITCH("symmetric", 0), NUMBER("temperature", 0.05),
      COUNT("groups", 0), SWITCH("mask_equal", 0)},
     contrastive},
    {"element_loss", {"x", "targets"}, 2, 0, {CHOICE("kind", losses)}, element_loss},
    {"cross_entropy",
     {"x", "targets", "weight"},
     2,
     0,
     {NUMBER("smoothing", 0)},
     cross_entropy},
    {"cross_entropy_each",
     {"x", "targets", "weight"},
     2,
     1,
     {NUMBER("smoothing", 0)},
     cross_entropy_each},
    {"rms_norm", {"x", "weight"}, 2, 1, {NUMBER("epsilon", 1e-6)}, rms_norm},
    {"head_norm",
     {"qkv", "weight"},
     2,
     1,
     {NEEDED("head_dim"), NEEDED("queries"), NEEDED("keys"), NUMBER("epsilon", 1e-6)},
     head_norm},
    {"conv2d",
     {"x", "weight", "bias"},
     2,
     1,
     {COUNT("stride", 1), COUNT("stride_width", -1), COUNT("padding", 0),
      COUNT("padding_width", -1), COUNT("dilation", 1), COUNT("dilation_width", -1),
      COUNT("groups", 1)},
     conv2d},
    {"softmax", {"x"}, 1, 1, {NUMBER("scale", 1)}, softmax},
    {"product", {"a", "b"}, 2, 1, {SWITCH("b_transposed", 0)}, product},
    {"average_pool",
     {"x"},
     1,
     1,
     {COUNT("kernel", 0), COUNT("stride", 1), COUNT("padding", 0)},
     average_pool},
    {"max_pool",
     {"x"},
     1,
     1,
     {NEEDED("kernel"), COUNT("stride", 1), COUNT("padding", 0)},
     max_pool},
    {"shortcut", {"x"}, 1, 1, {COUNT("stride", 1), NEEDED("channels")}, shortcut},
    {"reshape",
     {"x"},
     1,
     1,
     {COUNT("dim1", 0), COUNT("dim2", 0), COUNT("dim3", 0)},
     reshape},
    {"batch_norm",
     {"x", "weight", "bias", "residual", "running_mean", "running_var", "tracked"},
     3,
     1,
     {NUMBER("epsilon", 1e-5), NUMBER("momentum", 0.1), CHOICE("scope", scopes),
      SWITCH("relu", 0)},
     batch_norm},
    {"linear_cross_entropy",
     {"x", "weight", "targets", "bias"},
     3,
     0,
     {CHOICE("form", forms)},
     loss},
};

const tr_call_row *tr__call_row(size_t index) {
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}
