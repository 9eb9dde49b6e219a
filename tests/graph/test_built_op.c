// An op that was compiled with the headers of another version is refused.
#include "graph/graph.h"
#include "ops/nn/relu/relu.h"

#include <tranche/extend/graph.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const tr_batch_tensors batch = {
    2,
    {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(3)}},
     {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}};

static tr_value add(tr_graph *graph, int version) {
    const tr_built_op built = {&tr__op_relu, version};
    tr_value x = tr_graph_data(graph, "features");
    return tr_graph_built_op(graph, &built, NULL, &x, 1, NULL);
}

static void another_version_is_refused(void **state) {
    static const int versions[] = {TRANCHE_EXTEND_VERSION, TRANCHE_EXTEND_VERSION - 1,
                                   TRANCHE_EXTEND_VERSION + 1, 0};
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        tr_error err = {0};
        tr_graph *graph = tr__graph_create(NULL, 0, &batch, TR_F32);
        assert_non_null(graph);
        tr_value y = add(graph, versions[i]);
        tr_status status = tr_graph_status(graph, &err);
        if (i == 0) {
            assert_int_equal(status, TR_OK);
            assert_int_not_equal(y, TR_NO_VALUE);
        } else {
            assert_int_equal(status, TR_USAGE);
            assert_int_equal(y, TR_NO_VALUE);
            assert_non_null(strstr(err.message, "compile it again"));
        }
        tr__graph_destroy(graph);
    }
}

static void tr_graph_op_gives_its_own(void **state) {
    tr_error err = {0};
    tr_graph *graph = tr__graph_create(NULL, 0, &batch, TR_F32);
    (void)state;
    assert_non_null(graph);
    tr_value x = tr_graph_data(graph, "features");
    tr_graph_op(graph, &tr__op_relu, NULL, &x, 1, NULL);
    assert_int_equal(tr_graph_status(graph, &err), TR_OK);
    tr__graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(tr_graph_op_gives_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
