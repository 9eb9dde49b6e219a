// Parameters of a unit: by name, shared between units, in rows of one tensor, stacked.
#include "graph/graph.h"

#include "base/memory.h"
#include "base/quantized.h"

#include <string.h>

// Has the unit asked for this parameter before? A shared one is the same again.
static bool find_param(tr_graph *graph, const char *name, tr_shape shape, bool shared,
                       tr_value *value) {
    for (size_t i = 0; i < graph->param_count; i++) {
        const tr_param_info *info = &graph->params[i];
        if (info->shared != shared || strcmp(info->name, name) != 0) {
            continue;
        }
        if (!shared) {
            tr_graph_fail(graph, TR_USAGE, "a unit has two parameters %s", name);
        } else if (!tr_shape_equal(info->shape, shape)) {
            tr_graph_fail(graph, TR_USAGE, "tied tensor %s has two shapes", name);
        } else {
            *value = info->value;
        }
        return true;
    }
    return false;
}

// Adds a parameter that the unit has not asked for before, without a value; takes over
// the info's texts.
static tr_param_info *add_info(tr_graph *graph, tr_param_info info) {
    if (!tr__grow((void **)&graph->params, &graph->param_capacity,
                  graph->param_count + 1, sizeof *graph->params)) {
        tr__free(info.name);
        tr__free(info.whole);
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's parameters");
        return NULL;
    }
    info.value = TR_NO_VALUE;
    graph->params[graph->param_count++] = info;
    return &graph->params[graph->param_count - 1];
}

// The same, with a value of this shape: the parameter's own, or that of all that are
// stacked on it.
static tr_value add_valued(tr_graph *graph, tr_param_info info, tr_shape shape) {
    tr_value_info value = {.desc = {graph->real, shape},
                           .kind = TR_VALUE_PARAM,
                           .index = (int)graph->param_count};
    tr_param_info *added = add_info(graph, info);
    if (!added) {
        return TR_NO_VALUE;
    }
    added->value = tr__graph_value(graph, value);
    return added->value;
}

static tr_value add_param(tr_graph *graph, tr_param_info info) {
    return add_valued(graph, info, info.shape);
}

static tr_value param(tr_graph *graph, const char *name, tr_shape shape, tr_init init,
                      bool shared) {
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    if (tr_shape_count(shape) <= 0) {
        tr_graph_fail(graph, TR_USAGE, "parameter %s has an impossible shape", name);
        return TR_NO_VALUE;
    }
    tr_value same = TR_NO_VALUE;
    if (find_param(graph, name, shape, shared, &same)) {
        return same;
    }
    char *copy = tr__strdup(name);
    if (!copy) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's parameters");
        return TR_NO_VALUE;
    }
    return add_param(
        graph,
        (tr_param_info){.name = copy, .shape = shape, .init = init, .shared = shared});
}

tr_value tr_graph_param(tr_graph *graph, const char *name, tr_shape shape,
                        tr_init init) {
    return param(graph, name, shape, init, false);
}

tr_value tr_graph_shared(tr_graph *graph, const char *name, tr_shape shape,
                         tr_init init) {
    return param(graph, name, shape, init, true);
}

// The slice's own name: "wte.weight[0:100]".
static tr_value add_rows(tr_graph *graph, char *name, const char *whole, tr_shape shape,
                         int64_t first, int64_t rows, tr_init init) {
    tr_shape own = shape;
    tr_value same = TR_NO_VALUE;
    own.dim[0] = rows;
    if (find_param(graph, name, own, true, &same)) {
        tr__free(name);
        return same;
    }
    tr_param_info info = {
        .name = name,
        .shape = own,
        .whole = tr__strdup(whole),
        .whole_shape = shape,
        .lies = {.first = first * (tr_shape_count(shape) / shape.dim[0])},
        .init = init,
        .shared = true};
    if (!info.whole) {
        tr__free(name);
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's parameters");
        return TR_NO_VALUE;
    }
    return add_param(graph, info);
}

tr_value tr_graph_shared_rows(tr_graph *graph, const char *name, tr_shape shape,
                              int64_t first, int64_t rows, tr_init init) {
    if (graph->err.status != TR_OK) {
        return TR_NO_VALUE;
    }
    if (shape.rank < 1 || tr_shape_count(shape) <= 0 || first < 0 || rows < 1 ||
        rows > shape.dim[0] - first) {
        tr_graph_fail(graph, TR_USAGE, "parameter %s has no rows [%lld, +%lld)", name,
                      (long long)first, (long long)rows);
        return TR_NO_VALUE;
    }
    char *own =
        tr__format("%s[%lld:%lld]", name, (long long)first, (long long)first + rows);
    if (!own) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's parameters");
        return TR_NO_VALUE;
    }
    return add_rows(graph, own, name, shape, first, rows, init);
}

// Do the parts' rows make up the whole?
static bool rows_fit(const tr_param_rows *parts, int count, tr_shape shape) {
    int64_t left = shape.rank > 0 ? shape.dim[0] : 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].rows < 1 || parts[i].rows > left) {
            return false;
        }
        left -= parts[i].rows;
    }
    return count > 0 && left == 0 && tr_shape_count(shape) > 0;
}

tr_value tr_graph_stacked(tr_graph *graph, const tr_param_rows *parts, int count,
                          tr_shape shape, tr_init init) {
    tr_value value = TR_NO_VALUE, same;
    if (graph->err.status == TR_OK && !rows_fit(parts, count, shape)) {
        tr_graph_fail(
            graph, TR_USAGE,
            "the rows of the parameters from %s on do not make up their tensor",
            count > 0 ? parts[0].name : "none");
    }
    for (int i = 0; i < count && graph->err.status == TR_OK; i++) {
        tr_param_info info = {.shape = shape, .init = init, .stacked = i > 0};
        info.shape.dim[0] = parts[i].rows;
        if (find_param(graph, parts[i].name, info.shape, false, &same)) {
            break; // an error
        }
        info.name = tr__strdup(parts[i].name);
        if (!info.name) {
            tr_graph_fail(graph, TR_MEMORY, "no memory for a unit's parameters");
        } else if (i == 0) {
            value = add_valued(graph, info, shape);
        } else {
            add_info(graph, info);
        }
    }
    return graph->err.status == TR_OK ? value : TR_NO_VALUE;
}

int64_t tr__graph_quantize(tr_graph *graph, size_t index, tr_quantization kind,
                           bool transposed) {
    tr_param_info *info = &graph->params[index];
    info->quantized = kind;
    info->kept = info->split ? tr__quantization_of_parts(kind) : kind;
    int64_t bytes = tr__quantized_layout(info->kept, tr_shape_count(info->shape)).bytes;
    info->plain = info->shape;
    info->transposed = transposed;
    info->shape = TR_SHAPE1(bytes / (int64_t)tr_dtype_bytes(graph->real));
    info->room = tr_shape_count(info->shape); // parts of few bits are equal
    return bytes / (int64_t)sizeof(uint32_t);
}
