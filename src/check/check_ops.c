#include "check/check_ops.h"

#include "base/memory.h"
#include "base/rng.h"
#include "graph/rewrite.h"
#include "ops/built_in.h"

#include <tranche/extend/op_check.h>

#include <stdio.h>
#include <string.h>

enum {
    DRAWS = 5,      // of values; in one of them no kink should be near
    SEED = 31,      // of the draws
    MOST = 1 << 21, // elements of all operands: more would take minutes
};

// Values are drawn between these. The second is tried where the first makes results
// that are not finite.
static const struct { float low, high; } ranges[] = {{-1.5f, 1.5f}, {0.25f, 1.75f}};
enum { RANGES = sizeof ranges / sizeof *ranges };

// Samples that it is tried with, where the op refuses those before.
static const int64_t batches[] = {3, 2, 4, 1};
enum { BATCHES = sizeof batches / sizeof *batches };

// A node of an own op in the graph of a unit.
typedef struct own_node {
    const tr_model *model;
    const tr_graph *graph;
    const tr_call *call;
    const char *kind; // of the unit
} own_node;

// What has been tried.
typedef struct seen_op {
    const tr_op *op;
    _Alignas(8) unsigned char attr[TR_OP_ATTR_BYTES];
    int in_count;
    tr_tensor_desc in[TR_OP_IN_MAX];
} seen_op;

typedef struct op_list {
    seen_op *seen;
    size_t seen_count, seen_capacity, op_capacity;
    tr_check *check;
} op_list;

// ---- operands

static tr_tensor_desc desc_of(const own_node *node, tr_value value, int64_t batch) {
    tr_tensor_desc desc = tr_graph_desc(node->graph, value);
    if (desc.shape.rank > 0 && desc.shape.dim[0] == TR_BATCH) {
        desc.shape.dim[0] = batch;
    }
    return desc;
}

static int64_t elements(const own_node *node, int64_t batch) {
    int64_t count = 0;
    for (int i = 0; i < node->call->in_count; i++) {
        count += tr_shape_count(desc_of(node, node->call->in[i], batch).shape);
    }
    for (int i = 0; i < node->call->out_count; i++) {
        count += tr_shape_count(desc_of(node, node->call->out[i], batch).shape);
    }
    return count;
}

// Classes, token ids, or positions in documents that are as long as a sample.
static void fill_data(const own_node *node, const tr_batch_tensor *of, int32_t *values,
                      int64_t count) {
    tr_shape sample = of->desc.shape;
    int64_t period = of->role == TR_ROLE_POSITION && sample.rank > 0
                         ? sample.dim[sample.rank - 1]
                         : node->model->classes;
    for (int64_t i = 0; i < count; i++) {
        values[i] = (int32_t)(period > 0 ? i % period : 0);
    }
}

// false: nobody can say which values there may be.
static bool fill(const own_node *node, int i, int64_t count, int range, int draw,
                 void *values) {
    const tr_value_info *info = &node->graph->values[node->call->in[i]];
    tr_dtype type = info->desc.dtype;
    float first =
        info->kind == TR_VALUE_STATE ? node->graph->states[info->index].init : 0;
    if (type == TR_I32 && info->kind == TR_VALUE_DATA) {
        fill_data(node, &node->graph->batch.tensor[info->index], values, count);
    } else if (info->kind == TR_VALUE_STATE && type == TR_I64) {
        for (int64_t k = 0; k < count; k++) {
            ((int64_t *)values)[k] = (int64_t)first;
        }
    } else if (type == TR_F32) {
        tr__fill_uniform(values, 0, count, ranges[range].low, ranges[range].high,
                         SEED + (uint64_t)draw, (uint64_t)i);
    } else {
        return false;
    }
    return true;
}

static void free_inputs(tr_op_check_input *in) {
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        tr__free((void *)(uintptr_t)in[i].values);
    }
}

static tr_status make_inputs(const own_node *node, int64_t batch, int range, int draw,
                             tr_op_check_input *in, tr_error *err) {
    for (int i = 0; i < node->call->in_count; i++) {
        if (node->call->in[i] == TR_NO_VALUE) {
            continue;
        }
        in[i].desc = desc_of(node, node->call->in[i], batch);
        int64_t bytes = tr_tensor_bytes(in[i].desc);
        void *values = tr__calloc((size_t)bytes, 1);
        in[i].values = values;
        if (!values) {
            return tr_fail(err, TR_MEMORY, "no memory to check an op");
        }
        if (!fill(node, i, tr_shape_count(in[i].desc.shape), range, draw, values)) {
            return tr_fail(err, TR_USAGE,
                           "its input %d is of %s, and nobody has said which values "
                           "it may have: try it in a program, by tr_op_check",
                           i, tr_dtype_name(in[i].desc.dtype));
        }
    }
    return TR_OK;
}

// ---- one op

static tr_status try_once(const own_node *node, int64_t batch, int range, int draw,
                          tr_error *err) {
    tr_op_check_input in[TR_OP_IN_MAX] = {{{0}, NULL}};
    tr_status status = make_inputs(node, batch, range, draw, in, err);
    if (status == TR_OK) {
        status = tr_op_check(node->call->op, node->call->attr, in, node->call->in_count,
                             0, err);
    }
    free_inputs(in);
    return status;
}

// A mistake shows in every draw, and a kink in few of them. The message is that of the
// last draw.
static tr_status try_draws(const own_node *node, int64_t batch, int range,
                           tr_error *err) {
    tr_status status = TR_DIFFERENT;
    for (int draw = 0; draw < DRAWS && status == TR_DIFFERENT; draw++) {
        *err = (tr_error){0};
        status = try_once(node, batch, range, draw, err);
    }
    return status;
}

static tr_status try_batches(const own_node *node, tr_error *err) {
    tr_status status = TR_USAGE;
    for (int b = 0; b < BATCHES && status == TR_USAGE; b++) {
        if (elements(node, batches[b]) > MOST) {
            tr_fail(err, TR_USAGE,
                    "its operands have more than %d elements: try it on smaller ones "
                    "in a program, by tr_op_check",
                    (int)MOST);
            continue;
        }
        status = TR_NUMBERS;
        for (int range = 0; range < RANGES && status == TR_NUMBERS; range++) {
            status = try_draws(node, batches[b], range, err);
        }
    }
    return status;
}

static tr_status try_op(op_list *list, const own_node *node, tr_error *err) {
    tr_check *check = list->check;
    tr_error mine = {0};
    if (!tr__grow((void **)&check->ops, &list->op_capacity, check->op_count + 1,
                  sizeof *check->ops)) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    tr_check_op *op = &check->ops[check->op_count++];
    *op = (tr_check_op){.tried = true};
    snprintf(op->name, sizeof op->name, "%s", node->call->op->name);
    snprintf(op->kind, sizeof op->kind, "%s", node->kind);
    tr_status status = try_batches(node, &mine);
    op->passed = status == TR_OK;
    op->tried = status == TR_OK || status == TR_DIFFERENT;
    if (status != TR_OK) {
        snprintf(op->message, sizeof op->message, "%s", mine.message);
    }
    return status == TR_MEMORY ? tr_fail(err, status, "%s", mine.message) : TR_OK;
}

// ---- all of them

static seen_op describe(const own_node *node) {
    seen_op it = {.op = node->call->op, .in_count = node->call->in_count};
    memcpy(it.attr, node->call->attr, sizeof it.attr);
    for (int i = 0; i < it.in_count; i++) {
        it.in[i] = tr_graph_desc(node->graph, node->call->in[i]);
    }
    return it;
}

static bool is_same(const seen_op *a, const seen_op *b) {
    bool same = a->op == b->op && a->in_count == b->in_count &&
                memcmp(a->attr, b->attr, sizeof a->attr) == 0;
    for (int i = 0; i < a->in_count && same; i++) {
        same = a->in[i].dtype == b->in[i].dtype &&
               tr_shape_equal(a->in[i].shape, b->in[i].shape);
    }
    return same;
}

static tr_status try_new(op_list *list, const own_node *node, tr_error *err) {
    seen_op it = describe(node);
    for (size_t i = 0; i < list->seen_count; i++) {
        if (is_same(&list->seen[i], &it)) {
            return TR_OK;
        }
    }
    if (!tr__grow((void **)&list->seen, &list->seen_capacity, list->seen_count + 1,
                  sizeof *list->seen)) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    list->seen[list->seen_count++] = it;
    return try_op(list, node, err);
}

// The graph stands behind outputs of the unit before, `count` of them in `desc`, and
// leaves its own there.
static tr_status try_unit(op_list *list, const tr_model *model, int unit,
                          tr_tensor_desc *desc, int *count, tr_error *err) {
    const tr_model_unit *of = &model->units[unit];
    tr_graph *graph = NULL;
    tr_status status =
        tr__graph_of_unit(model, of, desc, *count, &model->batch, TR_F32, &graph, err);
    for (size_t i = 0; i < graph->node_count && status == TR_OK; i++) {
        own_node node = {model, graph, &graph->nodes[i], of->kind};
        if (!tr__op_is_built_in(node.call->op)) {
            status = try_new(list, &node, err);
        }
    }
    *count = status == TR_OK ? graph->output_count : 0;
    for (int i = 0; i < *count; i++) {
        desc[i] = tr_graph_desc(graph, graph->output[i]);
    }
    tr__graph_destroy(graph);
    return status;
}

tr_status tr__check_ops(const tr_model *model, tr_check *check, bool *right,
                        tr_error *err) {
    tr_tensor_desc desc[TR_GRAPH_IO_MAX];
    op_list list = {.check = check};
    tr_status status = TR_OK;
    int count = 0;
    for (int u = 0; u < model->unit_count && status == TR_OK; u++) {
        status = try_unit(&list, model, u, desc, &count, err);
    }
    tr__free(list.seen);
    *right = true;
    for (size_t i = 0; i < check->op_count; i++) {
        *right = *right && (check->ops[i].passed || !check->ops[i].tried);
    }
    return status;
}
