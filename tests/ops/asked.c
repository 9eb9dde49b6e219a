#include "ops/asked.h"

#include "graph/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// A graph of one node, whose operands are the unit's inputs: in [TR_OP_IN_MAX].
static tr_graph *make_graph(const tr_case *the_case, tr_value *in) {
    static const tr_batch_tensors none;
    tr_tensor_desc given[TR_OP_IN_MAX];
    for (int i = 0; i < the_case->in_count; i++) {
        given[i] = the_case->in[i].desc;
    }
    tr_graph *graph = tr__graph_create(given, the_case->in_count, &none, TR_F32);
    assert_non_null(graph);
    for (int i = 0; i < the_case->in_count; i++) {
        in[i] = given[i].dtype == TR_NONE ? TR_NO_VALUE : tr_graph_input(graph, i);
    }
    tr_graph_op(graph, the_case->op, the_case->attr, in, the_case->in_count, NULL);
    return graph;
}

// Of the case's operands those that the node has.
static void take_operands(const tr_case *the_case, const tr_value *in,
                          const tr_call *node, tr_case *out) {
    out->in_count = node->in_count;
    for (int i = 0; i < node->in_count; i++) {
        for (int k = 0; k < the_case->in_count; k++) {
            if (in[k] == node->in[i]) {
                out->in[i] = the_case->in[k];
            }
        }
    }
}

bool test_asked(const tr_case *the_case, tr_rewrite_variant loss, tr_case *out) {
    const tr_rewrite_variant variants[] = {TR_REWRITE_ASKED, loss};
    bool any = false;
    for (int i = 0; i < 2; i++) {
        any = any || tr__rewrite_row(the_case->rewrites, the_case->op, variants[i]);
    }
    *out = *the_case;
    if (!any) {
        return false;
    }
    tr_error err = {0};
    tr_value in[TR_OP_IN_MAX];
    tr_graph *graph = make_graph(the_case, in);
    for (int i = 0; i < 2; i++) {
        const tr_rewrite_walk walk = {.own = the_case->rewrites,
                                      .variant = variants[i]};
        if (tr__graph_rewrite(graph, &walk, &err) != TR_OK) {
            fail_msg("%s: %s", the_case->name, err.message);
        }
    }
    assert_int_equal(graph->node_count, 1);
    out->op = graph->nodes[0].op;
    take_operands(the_case, in, &graph->nodes[0], out);
    memcpy(out->attr, graph->nodes[0].attr, sizeof out->attr);
    tr__graph_destroy(graph);
    return true;
}
