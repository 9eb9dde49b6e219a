// How large the values of a unit are with this micro-batch, and where those lie that
// are handed in, handed on or kept in a cache.
#include "plan/units/compiler.h"

#include "base/checked.h"

tr_tensor_desc tr__concrete_desc(tr_tensor_desc desc, int64_t micro_batch) {
    for (int i = 0; i < desc.shape.rank; i++) {
        if (desc.shape.dim[i] == TR_BATCH) {
            desc.shape.dim[i] = micro_batch;
        }
    }
    return desc;
}

static int64_t room(tr_tensor_desc desc, int64_t micro_batch) {
    return tr__round_up(tr_tensor_bytes(tr__concrete_desc(desc, micro_batch)),
                        TR_ALIGNMENT);
}

tr_tensor_desc tr__value_desc(const tr_compiler *c, tr_value value) {
    return tr__concrete_desc(tr_graph_desc(c->graph, value), c->request->micro_batch);
}

int64_t tr__value_bytes(const tr_compiler *c, tr_value value) {
    return tr_tensor_bytes(tr__value_desc(c, value));
}

int64_t tr__input_offset(const tr_compiler *c, int index) {
    int64_t offset = 0;
    for (int i = 0; i < index; i++) {
        offset += room(c->graph->inputs[i], c->request->micro_batch);
    }
    return offset;
}

int64_t tr__graph_output_offset(const tr_graph *graph, int64_t micro_batch, int index) {
    int64_t offset = 0;
    for (int i = 0; i < index; i++) {
        offset += room(tr_graph_desc(graph, graph->output[i]), micro_batch);
    }
    return offset;
}

int64_t tr__output_offset(const tr_compiler *c, int index) {
    return tr__graph_output_offset(c->graph, c->request->micro_batch, index);
}

int64_t tr__cache_offset(const tr_compiler *c, tr_value value) {
    int64_t offset = 0;
    for (tr_value v = 0; v < value; v++) {
        if (c->graph->values[v].kind == TR_VALUE_CACHE) {
            offset += tr__round_up(tr__value_bytes(c, v), TR_ALIGNMENT);
        }
    }
    return offset;
}
