#include "graph/derived_unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_tensor_desc rows = {TR_F32, {2, {TR_BATCH, WIDTH}}};
static const tr_batch_tensors batch = {
    2,
    {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(WIDTH)}},
     {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}};

void make_as_asked(derived_unit *unit, builder build, int given,
                   tr_derive_request request) {
    tr_tensor_desc descs[] = {rows, rows, rows};
    *unit = (derived_unit){.status = TR_MEMORY};
    unit->graph = tr__graph_create(descs, given, &batch, TR_F32);
    if (!unit->graph) {
        return;
    }
    build(unit->graph);
    unit->status = tr_graph_status(unit->graph, &unit->err);
    if (unit->status == TR_OK) {
        unit->status = tr__derive(unit->graph, request, &unit->derived, &unit->err);
    }
}

void make(derived_unit *unit, builder build, int given) {
    make_as_asked(
        unit, build, given,
        (tr_derive_request){.recomputed = TR_RECOMPUTE_NORM | TR_RECOMPUTE_ACTIVATION});
}

void clear(derived_unit *unit) {
    tr__derivation_clear(&unit->derived);
    tr__graph_destroy(unit->graph);
}

void assert_backward(builder build, int given, const char *calls, const char *saved,
                     const char *recomputed, bool in_place) {
    derived_unit unit;
    make(&unit, build, given);
    assert_string_equal(unit.err.message, "");
    assert_string_equal(test_describe(unit.graph, &unit.derived, unit.text), calls);
    assert_string_equal(test_describe_values(unit.graph, unit.derived.saved, unit.text),
                        saved);
    assert_string_equal(
        test_describe_values(unit.graph, unit.derived.recomputed, unit.text),
        recomputed);
    assert_int_equal(unit.derived.in_place, in_place);
    clear(&unit);
}

tr_value x0(tr_graph *g) {
    return tr_graph_input(g, 0);
}

tr_value weight(tr_graph *g, const char *name) {
    return tr_graph_param(g, name, TR_SHAPE2(WIDTH, WIDTH), zeros);
}

tr_value vector(tr_graph *g, const char *name) {
    return tr_graph_param(g, name, TR_SHAPE1(WIDTH), zeros);
}

tr_value project(tr_graph *g, tr_value x, const char *name) {
    return tr_linear(g, TR_LINEAR_OUT_IN, x, weight(g, name), TR_NO_VALUE);
}

tr_value norm(tr_graph *g, tr_value x, const char *name_a, const char *name_b) {
    tr_value a = vector(g, name_a), b = vector(g, name_b);
    return tr_layer_norm(g, x, a, b, 1e-5f);
}
