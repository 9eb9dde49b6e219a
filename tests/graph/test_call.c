// Ops by their names are the ops of the functions, with the same attributes and
// operands; what does not fit is an error of the graph that says what there is.
#include "graph/call.h"
#include "graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 8, WIDTH = 12, SIDE = 4, CLASSES = 5, IMAGES = 1 };

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_batch_tensors batch = {
    2,
    {{"input_ids", TR_ROLE_INPUT, {TR_I32, TR_SHAPE1_INIT(LENGTH)}},
     {"labels", TR_ROLE_TARGET, {TR_I32, TR_SHAPE1_INIT(LENGTH)}}}};
static const tr_tensor_desc given[] = {
    {TR_F32, {3, {TR_BATCH, LENGTH, WIDTH}}},
    {TR_F32, {4, {TR_BATCH, SIDE, SIDE, WIDTH}}},
};

static tr_graph *new_graph(void) {
    tr_graph *graph = tr__graph_create(given, 2, &batch, TR_F32);
    assert_non_null(graph);
    return graph;
}

// ---- the same unit in two ways

// What the ops of the unit work on, made alike in both.
typedef struct operands {
    tr_value x, image, ids, targets;
    tr_value square, rows, wide, vector, other, table, places, filter, mean, var, count;
} operands;

static operands make_operands(tr_graph *g) {
    return (operands){
        .x = tr_graph_input(g, 0),
        .image = tr_graph_input(g, IMAGES),
        .ids = tr_graph_data(g, "input_ids"),
        .targets = tr_graph_data(g, "labels"),
        .square = tr_graph_param(g, "square", TR_SHAPE2(WIDTH, WIDTH), zeros),
        .rows = tr_graph_param(g, "rows", TR_SHAPE2(CLASSES, WIDTH), zeros),
        .wide = tr_graph_param(g, "wide", TR_SHAPE2(WIDTH, 3 * WIDTH), zeros),
        .vector = tr_graph_param(g, "vector", TR_SHAPE1(WIDTH), zeros),
        .other = tr_graph_param(g, "other", TR_SHAPE1(8), zeros),
        .table = tr_graph_param(g, "table", TR_SHAPE2(CLASSES, WIDTH), zeros),
        .places = tr_graph_param(g, "places", TR_SHAPE2(LENGTH, WIDTH), zeros),
        .filter = tr_graph_param(g, "filter", TR_SHAPE4(WIDTH, WIDTH, 3, 3), zeros),
        .mean =
            tr_graph_state(g, "mean", (tr_tensor_desc){TR_F32, TR_SHAPE1(WIDTH)}, 0),
        .var = tr_graph_state(g, "var", (tr_tensor_desc){TR_F32, TR_SHAPE1(WIDTH)}, 1),
        .count = tr_graph_state(g, "count", (tr_tensor_desc){TR_I64, {0}}, 0),
    };
}

static void by_functions(tr_graph *g) {
    operands o = make_operands(g);
    const tr_rope_options turn = {.heads = 3, .head_dim = 4, .theta = 500};
    const tr_rope_options yarn = {.heads = 3,
                                  .head_dim = 4,
                                  .theta = 10000,
                                  .scaling = TR_ROPE_YARN,
                                  .factor = 2,
                                  .low = 1,
                                  .high = 32,
                                  .attention = 1.5f,
                                  .original = 64,
                                  .truncate = true};
    tr_batch_norm_options norm = {.weight = o.vector,
                                  .bias = o.vector,
                                  .running_mean = o.mean,
                                  .running_var = o.var,
                                  .tracked = o.count,
                                  .epsilon = 1e-3f,
                                  .momentum = 0.2f,
                                  .scope = TR_MICRO_BATCH};
    tr_value n;
    tr_value e = tr_embedding_slice(g, o.ids, o.table, 2, o.places, TR_NO_VALUE);
    e = tr_embedding_padded(g, o.ids, o.table, 0, 3, TR_NO_VALUE, e);
    tr_value x = tr_residual(g, o.x, e, 0.25f);
    x = tr_residual_norm(g, x, e, 0.5f, o.vector, o.vector, 1e-4f, &n);
    n = tr_layer_norm(g, n, o.vector, o.vector, 1e-5f);
    tr_value qkv = tr_linear(g, TR_LINEAR_IN_OUT, n, o.wide, TR_NO_VALUE);
    qkv = tr_head_norm(g, qkv, o.other, 4, 3, 3, 1e-6f);
    tr_value a = tr_grouped_attention(g, qkv, 3, 3, 5, 0.125f);
    tr_bidirectional_attention(g, qkv, 3, 3, 0.5f);
    tr_normalize(g, tr_text_pool(g, a, TR_TEXT_CLS, 1));
    a = tr_rope(g, a, &turn);
    a = tr_rope(g, a, &yarn);
    a = tr_rms_norm(g, a, o.vector, 1e-6f);
    a = tr_linear_relu(g, TR_LINEAR_OUT_IN, a, o.square, o.vector);
    a = tr_gelu(g, tr_tanh(g, tr_relu(g, a)), true);
    a = tr_dropout(g, a, 0.75f);
    tr_value h = tr_swiglu(g, a);
    (void)h;
    tr_value i = tr_conv2d(g, o.image, o.filter, o.vector, 1, 1);
    i = tr_batch_norm(g, i, &norm, o.image, true);
    i = tr_max_pool(g, i, 2, 1, 0);
    i = tr_shortcut(g, i, 2, 2 * WIDTH);
    i = tr_average_pool(g, i, 0, 1, 0);
    tr_reshape(g, i, (int64_t[]){2, WIDTH, 0});
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, o.rows, TR_NO_VALUE, o.targets);
}

#define CALL(op, text, ...)                                                            \
    tr_graph_call(g, op, text, (tr_value[]){__VA_ARGS__},                              \
                  (int)(sizeof((tr_value[]){__VA_ARGS__}) / sizeof(tr_value)), NULL,   \
                  0)

static void by_names(tr_graph *g) {
    operands o = make_operands(g);
    tr_value out[2];
    tr_value none = TR_NO_VALUE;
    tr_value e = CALL("embedding", "{\"first\": 2}", o.ids, o.table, o.places);
    e = CALL("embedding", "{\"padding\": 3}", o.ids, o.table, none, e);
    tr_value x = CALL("residual", "{\"dropout\": 0.25}", o.x, e);
    tr_graph_call(g, "residual_norm", "{\"dropout\": 0.5, \"epsilon\": 1e-4}",
                  (tr_value[]){x, e, o.vector, o.vector}, 4, out, 2);
    x = out[0];
    tr_value n = CALL("layer_norm", NULL, out[1], o.vector, o.vector);
    tr_value qkv = CALL("linear", "{\"form\": \"in_out\"}", n, o.wide);
    qkv = CALL("head_norm", "{\"head_dim\": 4, \"queries\": 3, \"keys\": 3}", qkv,
               o.other);
    tr_value a =
        CALL("attention", "{\"heads\": 3, \"window\": 5, \"dropout\": 0.125}", qkv);
    CALL("bidirectional_attention", "{\"heads\": 3, \"dropout\": 0.5}", qkv);
    CALL("normalize", NULL, CALL("text_pool", "{\"pooling\": \"cls\"}", a));
    a = CALL("rope", "{\"heads\": 3, \"head_dim\": 4, \"theta\": 500}", a);
    a = CALL("rope",
             "{\"heads\": 3, \"head_dim\": 4, \"scaling\": \"yarn\", \"factor\": 2, "
             "\"low\": 1, \"high\": 32, \"attention\": 1.5, \"original\": 64, "
             "\"truncate\": true}",
             a);
    a = CALL("rms_norm", "{}", a, o.vector);
    a = CALL("linear", "{\"activation\": \"relu\"}", a, o.square, o.vector);
    a = CALL("gelu", "{\"approximate\": \"tanh\"}",
             CALL("tanh", NULL, CALL("relu", NULL, a)));
    a = CALL("dropout", "{\"p\": 0.75}", a);
    CALL("swiglu", NULL, a);
    tr_value i = CALL("conv2d", "{\"padding\": 1}", o.image, o.filter, o.vector);
    i = CALL("batch_norm",
             "{\"epsilon\": 1e-3, \"momentum\": 0.2, \"scope\": \"micro_batch\", "
             "\"relu\": true}",
             i, o.vector, o.vector, o.image, o.mean, o.var, o.count);
    i = CALL("max_pool", "{\"kernel\": 2}", i);
    i = CALL("shortcut", "{\"stride\": 2, \"channels\": 24}", i);
    i = CALL("average_pool", NULL, i);
    CALL("reshape", "{\"dim1\": 2, \"dim2\": 12}", i);
    assert_int_equal(CALL("linear_cross_entropy", NULL, x, o.rows, o.targets, none) ==
                         TR_NO_VALUE,
                     true);
}

static void assert_good(const tr_graph *graph) {
    tr_error err = {0};
    if (tr_graph_status(graph, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
}

static void names_are_functions(void **state) {
    tr_graph *a = new_graph(), *b = new_graph();
    (void)state;
    by_functions(a);
    by_names(b);
    assert_good(a);
    assert_good(b);
    assert_int_equal(a->node_count, b->node_count);
    for (size_t i = 0; i < a->node_count; i++) {
        const tr_call *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->op != y->op || memcmp(x->attr, y->attr, sizeof x->attr) != 0 ||
            x->in_count != y->in_count ||
            memcmp(x->in, y->in, (size_t)x->in_count * sizeof *x->in) != 0) {
            fail_msg("node %d: %s by functions, %s by names, or its attributes or "
                     "operands, are not the same",
                     (int)i, x->op->name, y->op->name);
        }
    }
    tr__graph_destroy(a);
    tr__graph_destroy(b);
}

// The table of the documentation has each op, with its inputs and attributes.
static void every_op_is_documented(void **state) {
    static char page[1 << 17];
    const tr_call_row *row;
    int missing = 0;
    (void)state;
    FILE *file = fopen(TR_SOURCE_DIR "/docs/library.md", "rb");
    assert_non_null(file);
    assert_true(fread(page, 1, sizeof page - 1, file) > 0);
    fclose(file);
    for (size_t i = 0; (row = tr__call_row(i)); i++) {
        char want[1024];
        int used = snprintf(want, sizeof want, "\n| `%s` | ", row->name);
        for (int k = 0; k < TR_CALL_INPUTS && row->inputs[k]; k++) {
            used += snprintf(want + used, sizeof want - (size_t)used, "%s`%s`",
                             k ? ", " : "", row->inputs[k]);
            used += snprintf(want + used, sizeof want - (size_t)used, "%s",
                             k < row->required ? "" : "?");
        }
        used += snprintf(want + used, sizeof want - (size_t)used, " | ");
        for (const tr_attribute *a = row->attributes; a->name; a++) {
            used += snprintf(want + used, sizeof want - (size_t)used, "%s`%s`",
                             a == row->attributes ? "" : ", ", a->name);
            if (!a->required && a->choices) {
                used += snprintf(want + used, sizeof want - (size_t)used, " \"%s\"",
                                 a->choices[0]);
            } else if (!a->required && a->kind == TR_ATTRIBUTE_SWITCH) {
                used += snprintf(want + used, sizeof want - (size_t)used, " false");
            } else if (!a->required) {
                used += snprintf(want + used, sizeof want - (size_t)used, " %g",
                                 a->fallback);
            }
        }
        snprintf(want + used, sizeof want - (size_t)used, " |\n");
        if (!strstr(page, want)) {
            print_error("docs/library.md has no line%s", want);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

// ---- what does not fit

static void refuse(const char *op, const char *attributes, int inputs, int outputs,
                   const char *words) {
    tr_graph *g = new_graph();
    operands o = make_operands(g);
    tr_value in[] = {o.x, o.square, o.vector, o.vector, o.vector, o.x, o.x, o.x, o.x};
    tr_value out[4] = {7, 7, 7, 7};
    tr_error err = {0};
    assert_int_equal(tr_graph_call(g, op, attributes, in, inputs, out, outputs),
                     TR_NO_VALUE);
    assert_int_equal(tr_graph_status(g, &err), TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    }
    for (int i = 0; i < outputs; i++) {
        assert_int_equal(out[i], TR_NO_VALUE);
    }
    // The first error stays, and later calls do nothing.
    tr_error later = {0};
    tr_graph_call(g, "relu", NULL, in, 1, out, 1);
    assert_int_equal(out[0], TR_NO_VALUE);
    tr_graph_status(g, &later);
    assert_string_equal(later.message, err.message);
    tr__graph_destroy(g);
}

static void bad_calls_say_what_there_is(void **state) {
    (void)state;
    refuse("liner", NULL, 2, 1, "did you mean \"linear\"?");
    refuse("liner", NULL, 2, 4, "there is no op");
    refuse("", NULL, 2, 1, "there is no op");
    refuse(NULL, NULL, 2, 1, "name is NULL");
    refuse("linear", "{\"from\": \"in_out\"}", 2, 1, "did you mean \"form\"?");
    refuse("linear", "{\"form\": \"outin\"}", 2, 1, "one of \"out_in\", \"in_out\"");
    refuse("linear", "{\"form\": 1}", 2, 1, "one of");
    refuse("linear", "[]", 2, 1, "no JSON object");
    refuse("linear", "{", 2, 1, "no JSON object");
    refuse("linear", "{\"form\": \"in_out\", \"form\": \"in_out\"}", 2, 1, "JSON");
    refuse("linear", NULL, 1, 1, "needs input 1, \"weight\"");
    refuse("linear", NULL, 0, 1, "needs input 0, \"x\"");
    refuse("linear", NULL, 4, 1, "takes 2 to 3 inputs, not 4");
    refuse("linear", NULL, -1, 1, "not -1");
    refuse("linear", NULL, 2, 2, "has 1 outputs, not 2");
    refuse("attention", NULL, 1, 1, "needs the attribute \"heads\"");
    refuse("attention", "{\"heads\": -3}", 1, 1, "whole number of 0 or more");
    refuse("attention", "{\"heads\": 1e9}", 1, 1, "whole number of 0 or more");
    refuse("attention", "{\"heads\": 99999999999}", 1, 1, "whole number");
    refuse("dropout", "{\"p\": \"half\"}", 1, 1, "is a number");
    refuse("batch_norm", "{\"relu\": 1}", 3, 1, "true or false");
}

static void values_of_no_graph(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        static const tr_value wrong[] = {1000, -2, INT32_MAX};
        tr_graph *g = new_graph();
        tr_error err = {0};
        tr_value in[] = {wrong[i]};
        assert_int_equal(tr_graph_call(g, "relu", NULL, in, 1, NULL, 0), TR_NO_VALUE);
        assert_int_equal(tr_graph_status(g, &err), TR_USAGE);
        assert_non_null(strstr(err.message, "no value of this graph"));
        tr__graph_destroy(g);
    }
    assert_int_equal(tr_graph_call(NULL, "relu", NULL, NULL, 0, NULL, 0), TR_NO_VALUE);
    tr_graph *g = new_graph();
    tr_graph_call(g, "relu", NULL, NULL, 1, NULL, 0);
    assert_int_equal(tr_graph_status(g, NULL), TR_USAGE);
    tr__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_functions),
        cmocka_unit_test(every_op_is_documented),
        cmocka_unit_test(bad_calls_say_what_there_is),
        cmocka_unit_test(values_of_no_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
