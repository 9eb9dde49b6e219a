#include "models/vocabulary.h"

static int slices_of(const tr_vocabulary_tensors *v) {
    return v->slices > 1 ? v->slices : 1;
}

// Where slice `k` begins; slice k of K ends where k + 1 begins.
static int64_t slice_begin(const tr_vocabulary_tensors *v, int k) {
    return v->tokens * k / slices_of(v);
}

// Slice `k` of a tensor, [rows, width].
static tr_value slice(tr_graph *g, const tr_vocabulary_tensors *v, const char *name,
                      int k) {
    tr_shape shape = TR_SHAPE2(v->tokens, v->width);
    if (slices_of(v) == 1) {
        return v->tied ? tr_graph_shared(g, name, shape, v->init)
                       : tr_graph_param(g, name, shape, v->init);
    }
    int64_t first = slice_begin(v, k), rows = slice_begin(v, k + 1) - first;
    return tr_graph_shared_rows(g, name, shape, first, rows, v->init);
}

tr_value tr__vocabulary_first(tr_graph *graph, const tr_vocabulary_tensors *v) {
    return slice(graph, v, v->embedding, 0);
}

tr_value tr__vocabulary_rest(tr_graph *graph, const tr_vocabulary_tensors *v,
                             tr_value ids, tr_value x) {
    for (int k = 1; k < slices_of(v); k++) {
        tr_graph_segment(graph);
        tr_value tokens = slice(graph, v, v->embedding, k);
        x = tr_embedding_padded(graph, ids, tokens, slice_begin(v, k), v->padding - 1,
                                TR_NO_VALUE, x);
    }
    return x;
}

void tr__vocabulary_head(tr_graph *graph, const tr_vocabulary_tensors *v, tr_value n) {
    const char *name = v->tied ? v->embedding : v->output;
    tr_value targets = tr_graph_data(graph, "labels"); // [B, S]
    if (slices_of(v) == 1) {
        tr_value all = slice(graph, v, name, 0);
        tr_linear_cross_entropy(graph, TR_LINEAR_OUT_IN, n, all, TR_NO_VALUE, targets);
        return;
    }
    tr_linear_cross_entropy_running running = TR_HEAD_BEGIN;
    for (int k = 0; k < slices_of(v); k++) {
        if (k > 0) {
            tr_graph_segment(graph);
        }
        running = tr_linear_cross_entropy_slice(graph, TR_LINEAR_OUT_IN, n,
                                                slice(graph, v, name, k), TR_NO_VALUE,
                                                targets, slice_begin(v, k), running);
    }
    tr_linear_cross_entropy_slice_loss(graph, running, targets);
}
