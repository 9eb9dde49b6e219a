// Ops that may have been compiled with other headers than the library.
#include "graph/graph.h"

#include <tranche/extend/graph.h>

tr_value tr_graph_built_op(tr_graph *graph, const tr_built_op *built, const void *attr,
                           const tr_value *in, int in_count, tr_value *out) {
    if (built->version != TRANCHE_EXTEND_VERSION) {
        // Where its name lies is not known, then.
        tr_graph_fail(graph, TR_USAGE,
                      "tr_graph_op: an op was compiled with the headers of version %d, "
                      "and the library is of version %d: compile it again",
                      built->version, TRANCHE_EXTEND_VERSION);
        return TR_NO_VALUE;
    }
    return tr__graph_op(graph, built->op, attr, in, in_count, out);
}
