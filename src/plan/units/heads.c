#include "plan/units/heads.h"

#include "ops/nn/attention/attention.h"
#include "ops/operand.h"

#include <stdio.h>
#include <string.h>

enum { SIZES_TEXT = 128, SIZES_MOST = 1024 };

static bool can_share(int64_t heads, int64_t keys, int64_t ranks) {
    return heads % ranks == 0 && tr__cut_sharers(keys, ranks) > 0;
}

// The first of them: "1, 2, 4, 8".
static void list_sizes(int64_t heads, int64_t keys, char text[SIZES_TEXT]) {
    size_t used = 0;
    for (int64_t ranks = 1; ranks <= heads && ranks <= SIZES_MOST; ranks++) {
        if (can_share(heads, keys, ranks) && used + 24 < SIZES_TEXT) {
            used += (size_t)snprintf(text + used, SIZES_TEXT - used, "%s%lld",
                                     used ? ", " : "", (long long)ranks);
        }
    }
}

tr_status tr__check_heads(const tr_plan_request *request, const tr_graph *graph,
                          const char *unit, tr_error *err) {
    int64_t ranks = request->mesh.size[TR_AXIS_TENSOR];
    for (size_t n = 0; n < graph->node_count; n++) {
        tr_attention_attr attr;
        char sizes[SIZES_TEXT];
        if (graph->nodes[n].op != &tr__op_attention) {
            continue;
        }
        memcpy(&attr, graph->nodes[n].attr, sizeof attr);
        bool grouped = attr.kv_heads > 0 && attr.kv_heads < attr.heads;
        if (grouped && !can_share(attr.heads, attr.kv_heads, ranks)) {
            list_sizes(attr.heads, attr.kv_heads, sizes);
            return tr_fail(
                err, TR_USAGE,
                "tensor_parallel.size is %lld, and so many ranks cannot share the %d "
                "heads of queries and %d of keys of %s: their number divides those "
                "of queries, and divides those of keys or is a multiple of them. "
                "Sizes that can: %s",
                (long long)ranks, (int)attr.heads, (int)attr.kv_heads, unit, sizes);
        }
    }
    return TR_OK;
}
