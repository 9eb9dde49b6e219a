// Linear layers with adapters (graph/adapter.h). A layer may be some rows of a stacked
// product (queries, keys, values): then only these columns of its result get more.
#include "graph/adapter.h"

#include "graph/rewrite.h"
#include "ops/nn/bias/bias.h"
#include "ops/nn/columns/columns.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/magnitude/magnitude.h"
#include "ops/nn/relu/relu.h"
#include "ops/nn/row_squares/row_squares.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256 };
static const char weight[] = "weight";

// One of the layers that a product is of.
typedef struct layer {
    char module[NAME_BYTES]; // its name in the whole model
    char local[NAME_BYTES];  // in the unit, up to "weight"
    int64_t first, rows;     // of the product's columns
    tr_value down, up;       // A, B
} layer;

bool tr__is_adapter_tensor(const char *name) {
    return strstr(name, "." TR_LORA_A) || strstr(name, "." TR_LORA_B) ||
           strstr(name, "." TR_DORA_M);
}

// False: it is no layer by its name.
static bool name_layer(const tr_model_unit *unit, const char *param, layer *out) {
    size_t length = strlen(param), tail = strlen(weight);
    if (length <= tail || strcmp(param + length - tail, weight) != 0 ||
        length >= NAME_BYTES) {
        return false;
    }
    memcpy(out->local, param, length - tail);
    out->local[length - tail] = '\0';
    int used = snprintf(out->module, sizeof out->module, "%s%.*s", unit->prefix,
                        (int)(length - tail - 1), param);
    return used > 0 && (size_t)used < sizeof out->module;
}

// Were B cut along the adapter's rank r, tensor ranks would sum a tensor as wide as the
// layer's result, and share next to no work.
static void keep_columns(tr_graph *graph, tr_value param) {
    for (size_t i = 0; i < graph->param_count; i++) {
        tr_param_info *info = &graph->params[i];
        info->by_rows = info->by_rows || info->value == param;
    }
}

static tr_value low_rank(tr_graph *graph, const tr_adapter *adapter, tr_value x,
                         layer *to) {
    char a[NAME_BYTES + sizeof TR_LORA_A], b[NAME_BYTES + sizeof TR_LORA_B];
    tr_shape shape = tr_graph_desc(graph, x).shape;
    int64_t in = shape.dim[shape.rank - 1];
    float bound = (float)(1 / sqrt((double)in)); // kaiming uniform with a = sqrt(5)
    const tr_init drawn = {TR_INIT_UNIFORM, -bound, bound};
    const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
    snprintf(a, sizeof a, "%s" TR_LORA_A, to->local);
    snprintf(b, sizeof b, "%s" TR_LORA_B, to->local);
    to->down = tr_graph_param(graph, a, TR_SHAPE2(adapter->rank, in), drawn);
    to->up = tr_graph_param(graph, b, TR_SHAPE2(to->rows, adapter->rank), zeros);
    keep_columns(graph, to->up);
    x = adapter->dropout > 0 ? tr_dropout(graph, x, adapter->dropout) : x;
    x = tr_linear(graph, TR_LINEAR_OUT_IN, x, to->down, TR_NO_VALUE);
    return tr_linear(graph, TR_LINEAR_OUT_IN, x, to->up, TR_NO_VALUE);
}

static tr_value add(tr_graph *graph, const tr_adapter *adapter, tr_value y, tr_value x,
                    layer *to) {
    const tr_columns_attr attr = {.first = (int32_t)to->first,
                                  .count = (int32_t)to->rows,
                                  .scale = adapter->scale};
    const tr_value in[] = {y, low_rank(graph, adapter, x, to)};
    return tr_graph_op(graph, &tr__op_add_columns, &attr, in, 2, NULL);
}

// The product itself, its activation left for what comes behind, and its bias, too,
// where there are magnitudes.
static tr_value product(tr_graph *graph, const tr_rewrite_node *node) {
    tr_linear_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.activation = TR_ACTIVATION_NONE;
    const tr_value in[] = {
        node->in[0], node->in[1],
        node->in_count > 2 && !node->adapter->magnitudes ? node->in[2] : TR_NO_VALUE};
    return tr_graph_op(graph, node->op, &attr, in, node->in_count, NULL);
}

// ---- magnitudes

static tr_value magnitude(tr_graph *graph, const layer *of) {
    char name[NAME_BYTES + sizeof TR_DORA_M];
    const tr_init ones = {TR_INIT_CONSTANT, 1, 0}; // until the base is read
    snprintf(name, sizeof name, "%s" TR_DORA_M, of->local);
    return tr_graph_param(graph, name, TR_SHAPE1(of->rows), ones);
}

// The squared lengths of the layer's rows.
static tr_value squares(tr_graph *graph, const tr_rewrite_node *node, const layer *of) {
    tr_linear_attr linear;
    memcpy(&linear, node->attr, sizeof linear);
    const tr_row_squares_attr attr = {.in_out = linear.layout == TR_WEIGHT_IN_OUT,
                                      .first = (int32_t)of->first,
                                      .rows = (int32_t)of->rows,
                                      .scale = node->adapter->scale};
    const tr_value in[] = {node->in[1], of->down, of->up};
    return tr_graph_op(graph, &tr__op_row_squares, &attr, in, 3, NULL);
}

// As many layers at once as the op takes; behind them comes the bias.
static tr_value scale(tr_graph *graph, const tr_rewrite_node *node, tr_value y,
                      const layer *layers, int count) {
    for (int at = 0; at < count; at += TR_MAGNITUDE_LAYERS) {
        int most = count - at < TR_MAGNITUDE_LAYERS ? count - at : TR_MAGNITUDE_LAYERS;
        tr_magnitude_attr attr = {.layers = most};
        tr_value in[1 + 2 * TR_MAGNITUDE_LAYERS] = {y};
        for (int i = 0; i < most; i++) {
            const layer *of = &layers[at + i];
            attr.first[i] = (int32_t)of->first;
            attr.count[i] = (int32_t)of->rows;
            in[1 + 2 * i] = magnitude(graph, of);
            in[2 + 2 * i] = squares(graph, node, of);
        }
        y = tr_graph_op(graph, &tr__op_magnitude, &attr, in, 1 + 2 * most, NULL);
    }
    const tr_value in[] = {y, node->in_count > 2 ? node->in[2] : TR_NO_VALUE};
    return in[1] == TR_NO_VALUE ? y
                                : tr_graph_op(graph, &tr__op_bias, NULL, in, 2, NULL);
}

// Of the layers that are stacked in the product's weight, those that have adapters go
// to out [most]; returns how many.
static int find_layers(const tr_graph *graph, const tr_rewrite_node *node, layer *out,
                       int most) {
    const tr_tensor_desc y = graph->values[node->out[0]].desc;
    int64_t width = y.shape.dim[y.shape.rank - 1], first = 0;
    size_t i = 0, begin;
    int count = 0;
    while (i < graph->param_count && graph->params[i].value != node->in[1]) {
        i++;
    }
    for (begin = i; i < graph->param_count && count < most; i++) {
        const tr_param_info *info = &graph->params[i];
        if (i > begin && !info->stacked) {
            break;
        }
        bool alone = i + 1 >= graph->param_count || !graph->params[i + 1].stacked;
        layer *to = &out[count];
        *to = (layer){.first = first,
                      .rows = i == begin && alone ? width : info->shape.dim[0]};
        first += to->rows;
        count += !info->shared && !info->whole &&
                 name_layer(node->unit, info->name, to) &&
                 node->adapter->adapts(node->adapter, to->module);
    }
    return count;
}

static bool adapt(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    enum { LAYERS = 8 }; // as many draws as a node's place has
    layer layers[LAYERS];
    tr_linear_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    int count =
        node->adapter && node->param[1] ? find_layers(graph, node, layers, LAYERS) : 0;
    if (count == 0) {
        return false;
    }
    tr_value y = product(graph, node);
    for (int i = 0; i < count; i++) {
        y = add(graph, node->adapter, y, node->in[0], &layers[i]);
    }
    if (node->adapter->magnitudes) {
        y = scale(graph, node, y, layers, count);
    }
    results[0] = attr.activation == TR_ACTIVATION_RELU ? tr_relu(graph, y) : y;
    return true;
}

const tr_rewrite tr__rewrites_adapter[] = {
    {TR_REWRITE_ALWAYS, &tr__op_linear, NULL, adapt},
    {0},
};
