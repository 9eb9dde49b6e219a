// Rewrites of a unit's graph: what rows of a model put in the places of nodes, and what
// they may not.
#include "base/memory.h"
#include "graph/batch_center.h"
#include "graph/derive.h"
#include "graph/rewrite.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/residual/residual.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 4, RANK = 2 };

static const tr_init from_zero = {TR_INIT_CONSTANT, 0, 0};

// linear, dropout, residual
static void build(tr_graph *graph, const void *config) {
    (void)config;
    tr_value x = tr_graph_input(graph, 0);
    tr_value w =
        tr_graph_param(graph, "layer.weight", TR_SHAPE2(WIDTH, WIDTH), from_zero);
    tr_value y = tr_linear(graph, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE);
    tr_graph_output(graph, tr_residual(graph, x, tr_dropout(graph, y, 0.5f), 0.25f));
}

static const tr_model_unit unit = {"block.0", "block", "block.0.", build, NULL};
static const tr_tensor_desc given = {TR_F32, TR_SHAPE2_INIT(TR_BATCH, WIDTH)};
static const tr_batch_tensors no_data;

static tr_status make(const tr_rewrite *rows, tr_graph **out, tr_error *err) {
    const tr_model model = {.type = "test", .rewrites = rows};
    return tr__graph_of_unit(&model, &unit, &given, 1, &no_data, TR_F32, out, err);
}

static tr_graph *make_well(const tr_rewrite *rows) {
    tr_graph *graph = NULL;
    tr_error err = {0};
    if (make(rows, &graph, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return graph;
}

// ---- an adapter

// y = x W^T + dropout(x A^T) B^T
static bool adapt(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    assert_int_equal(node->variant, TR_REWRITE_ALWAYS);
    assert_string_equal(node->unit->prefix, "block.0.");
    assert_null(node->param[0]);
    assert_string_equal(node->param[1], "layer.weight");
    tr_value base[1];
    tr_rewrite_as(graph, node, node->op, node->attr, base);
    tr_value a =
        tr_graph_param(graph, "layer.lora_A", TR_SHAPE2(RANK, WIDTH), from_zero);
    tr_value b =
        tr_graph_param(graph, "layer.lora_B", TR_SHAPE2(WIDTH, RANK), from_zero);
    tr_value down = tr_linear(graph, TR_LINEAR_OUT_IN, node->in[0], a, TR_NO_VALUE);
    down = tr_dropout(graph, down, 0.5f);
    tr_value up = tr_linear(graph, TR_LINEAR_OUT_IN, down, b, TR_NO_VALUE);
    results[0] = tr_residual(graph, base[0], up, 0);
    return true;
}

static const tr_rewrite adapters[] = {
    {TR_REWRITE_ALWAYS, NULL, "linear", adapt},
    {0},
};

static uint32_t draw_of(const tr_call *node) {
    tr_dropout_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    return attr.draw_id;
}

static void check_values(const tr_graph *graph) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const tr_call *node = &graph->nodes[n];
        for (int i = 0; i < node->out_count; i++) {
            assert_true((size_t)node->out[i] < graph->value_count);
            assert_int_equal(graph->values[node->out[i]].node, n);
            assert_int_equal(graph->values[node->out[i]].index, i);
        }
    }
    for (size_t i = 0; i < graph->param_count; i++) {
        const tr_value_info *info = &graph->values[graph->params[i].value];
        assert_int_equal(info->kind, TR_VALUE_PARAM);
        assert_int_equal(info->index, i);
        assert_true(tr_shape_equal(info->desc.shape, graph->params[i].shape));
    }
}

static void nodes_stand_in_the_place_of_one(void **state) {
    static const char *const want[] = {"linear",   "linear",  "dropout", "linear",
                                       "residual", "dropout", "residual"};
    (void)state;
    tr_graph *plain = make_well(NULL), *graph = make_well(adapters);
    assert_int_equal(plain->node_count, 3);
    assert_int_equal(graph->node_count, 7);
    for (size_t n = 0; n < graph->node_count; n++) {
        assert_string_equal(graph->nodes[n].op->name, want[n]);
    }
    check_values(graph);
    // The layer's value is that of the sum now: who read it need not know.
    assert_int_equal(graph->nodes[4].out[0], plain->nodes[0].out[0]);
    assert_int_equal(graph->nodes[5].in[0], plain->nodes[0].out[0]);
    assert_int_equal(graph->output[0], plain->output[0]);
    assert_int_equal(graph->param_count, 3);
    assert_int_equal(graph->value_count, plain->value_count + 2 + 4);
    // Draws of the model's code keep their numbers, that of the row has one of its own.
    assert_int_equal(draw_of(&graph->nodes[5]), draw_of(&plain->nodes[1]));
    assert_int_equal(draw_of(&graph->nodes[6]), draw_of(&plain->nodes[2]));
    assert_true(draw_of(&graph->nodes[2]) >= TR_GRAPH_DRAWS);
    assert_true(tr__graph_hash(graph) != tr__graph_hash(plain));
    tr_graph *again = make_well(adapters);
    assert_true(tr__graph_hash(graph) == tr__graph_hash(again));
    tr__graph_destroy(again);
    tr__graph_destroy(plain);
    tr__graph_destroy(graph);
}

// What rows of one variant wrote, rows of the next see: here each product.
static void variants_follow_each_other(void **state) {
    const tr_rewrite_walk walk = {.unit = &unit, .variant = TR_REWRITE_FP8};
    tr_error err = {0};
    int products = 0;
    (void)state;
    tr_graph *graph = make_well(adapters);
    assert_int_equal(tr__graph_rewrite(graph, &walk, &err), TR_OK);
    for (size_t n = 0; n < graph->node_count; n++) {
        assert_ptr_not_equal(graph->nodes[n].op, &tr__op_linear);
        products += strcmp(graph->nodes[n].op->name, "linear_fp8") == 0;
    }
    assert_int_equal(products, 3);
    check_values(graph);
    tr__graph_destroy(graph);
}

// ---- an evaluation beside the training

// Twice, which is as good as any.
static bool drop_in_two(tr_graph *graph, const tr_rewrite_node *node,
                        tr_value *results) {
    const tr_dropout_attr none = {0};
    tr_value once =
        tr_graph_op(graph, &tr__op_dropout, &none, node->in, node->in_count, NULL);
    results[0] = tr_graph_op(graph, &tr__op_dropout, &none, &once, 1, NULL);
    return true;
}

static const tr_rewrite in_two[] = {
    {TR_REWRITE_ASKED, &tr__op_dropout, NULL, drop_in_two},
    {0},
};

static void an_evaluation_has_nodes_of_its_own(void **state) {
    const tr_rewrite_walk walk = {
        .own = in_two, .unit = &unit, .variant = TR_REWRITE_ASKED};
    tr_error err = {0};
    (void)state;
    tr_graph *plain = make_well(NULL), *graph = make_well(NULL);
    assert_int_equal(tr__graph_rewrite_asked(graph, &walk, &err), TR_OK);
    assert_int_equal(graph->node_count, plain->node_count);
    check_values(graph);
    assert_int_equal(graph->asked_count, 4);
    assert_int_equal(graph->value_count, plain->value_count + 1);
    assert_int_equal(graph->values[plain->value_count].kind, TR_VALUE_TEMP);
    assert_int_equal(graph->asked[2].out[0], plain->nodes[1].out[0]);
    // The library's own row made the branch's dropout do nothing.
    tr_dropout_attr attr;
    memcpy(&attr, graph->asked[3].attr, sizeof attr);
    assert_true(attr.probability == 0);
    memcpy(&attr, graph->nodes[2].attr, sizeof attr);
    assert_true(attr.probability == 0.25f);
    tr__graph_destroy(plain);
    tr__graph_destroy(graph);
}

// ---- inference

static void build_attention(tr_graph *graph, const void *config) {
    (void)config;
    tr_value qkv = tr_graph_input(graph, 0);
    tr_graph_output(graph, tr_grouped_attention(graph, qkv, 2, 1, 100, 0.5f));
}

// The cache is one value, which the op reads and writes: a ring, where it has a window.
static void attention_goes_on_from_a_cache(void **state) {
    static const tr_model_unit attention = {"a", "a", "a.", build_attention, NULL};
    static const tr_tensor_desc qkv = {TR_F32, TR_SHAPE3_INIT(TR_BATCH, 8, 16)};
    static const struct {
        int64_t positions, piece, room;
    } cases[] = {{64, 8, 64}, {1000, 8, 128}, {1000, 200, 384}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tr_rewrite_walk walk = {.unit = &attention,
                                      .variant = TR_REWRITE_CACHE,
                                      .cache_positions = cases[i].positions,
                                      .cache_piece = cases[i].piece};
        tr_graph *graph = NULL;
        tr_error err = {0};
        assert_int_equal(tr__graph_of_unit(NULL, &attention, &qkv, 1, &no_data, TR_F32,
                                           &graph, &err),
                         TR_OK);
        assert_int_equal(graph->cache_room, INT64_MAX);
        size_t values = graph->value_count;
        assert_int_equal(tr__graph_rewrite(graph, &walk, &err), TR_OK);
        const tr_call *node = &graph->nodes[0];
        assert_string_equal(node->op->name, "attention_cached");
        assert_int_equal(graph->value_count, values + 1);
        assert_int_equal(graph->values[values].kind, TR_VALUE_CACHE);
        assert_int_equal(node->in[1], values);
        assert_int_equal(node->out[1], values);
        assert_int_equal(node->out[0], graph->output[0]);
        assert_int_equal(graph->cache_room, cases[i].room);
        assert_int_equal(graph->values[values].desc.shape.dim[2], cases[i].room);
        tr__graph_destroy(graph);
    }
}

// ---- what may not be

static bool of_other_shape(tr_graph *graph, const tr_rewrite_node *node,
                           tr_value *results) {
    tr_value a = tr_graph_param(graph, "a", TR_SHAPE2(RANK, WIDTH), from_zero);
    results[0] = tr_linear(graph, TR_LINEAR_OUT_IN, node->in[0], a, TR_NO_VALUE);
    return true;
}

static bool its_own_input(tr_graph *graph, const tr_rewrite_node *node,
                          tr_value *results) {
    (void)graph;
    results[0] = node->in[0];
    return true;
}

static bool nothing(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    (void)graph;
    (void)node;
    (void)results;
    return true;
}

static bool nodes_and_no(tr_graph *graph, const tr_rewrite_node *node,
                         tr_value *results) {
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    return false;
}

static bool barrier(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    results[0] = test_batch_center(graph, results[0]);
    return true;
}

static bool nine_draws(tr_graph *graph, const tr_rewrite_node *node,
                       tr_value *results) {
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    for (int i = 0; i < 9; i++) {
        results[0] = tr_dropout(graph, results[0], 0.5f);
    }
    return true;
}

static bool a_cache(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    tr_graph_cache(graph, given, 4);
    return true;
}

static bool an_output(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    tr_graph_output(graph, results[0]);
    return true;
}

static bool a_segment(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    tr_graph_segment(graph);
    return tr_rewrite_as(graph, node, node->op, node->attr, results);
}

static void a_row_that_does_not_fit_is_refused(void **state) {
    static const struct {
        tr_rewrite_function *write;
        const char *words;
    } rows[] = {
        {of_other_shape, "what stands for result 0"},
        {its_own_input, "what stands for result 0"},
        {nothing, "reads what a rewrite has left out"},
        {nodes_and_no, "leaves a node of op linear as it is, and has written"},
        {barrier, "reads a wave tensor of its own segment"},
        {nine_draws, "too many random draws"},
        {an_output, "hands on what the node did, and nothing else"},
        {a_segment, "stays in the segment of its node"},
        {a_cache, "asked for by a row of TR_REWRITE_CACHE"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tr_rewrite table[] = {
            {TR_REWRITE_ALWAYS, &tr__op_linear, NULL, rows[i].write}, {0}};
        tr_graph *graph = NULL;
        tr_error err = {0};
        assert_int_equal(make(table, &graph, &err), TR_USAGE);
        assert_null(graph);
        if (!strstr(err.message, rows[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].words);
        }
    }
}

static bool add_a_parameter(tr_graph *graph, const tr_rewrite_node *node,
                            tr_value *results) {
    tr_graph_param(graph, "late", TR_SHAPE1(WIDTH), from_zero);
    return tr_rewrite_as(graph, node, node->op, node->attr, results);
}

static void an_evaluation_adds_no_parameter(void **state) {
    static const tr_rewrite rows[] = {
        {TR_REWRITE_ASKED, &tr__op_linear, NULL, add_a_parameter}, {0}};
    const tr_rewrite_walk walk = {
        .own = rows, .unit = &unit, .variant = TR_REWRITE_ASKED};
    (void)state;
    for (int beside = 0; beside < 2; beside++) {
        tr_graph *graph = make_well(NULL);
        tr_error err = {0};
        tr_status status = beside ? tr__graph_rewrite_asked(graph, &walk, &err)
                                  : tr__graph_rewrite(graph, &walk, &err);
        assert_int_equal(status, TR_USAGE);
        assert_non_null(strstr(err.message, "adds a parameter"));
        tr__graph_destroy(graph);
    }
}

static void memory_may_fail_at_any_place(void **state) {
    tr_status status = TR_MEMORY;
    int failed = 0;
    (void)state;
    for (int64_t nth = 1; status != TR_OK; nth++) {
        tr_graph *graph = NULL;
        tr_error err = {0};
        const tr_rewrite_walk walk = {.unit = &unit, .variant = TR_REWRITE_ASKED};
        tr__memory_fail_at(nth);
        status = make(adapters, &graph, &err);
        if (status == TR_OK) {
            status = tr__graph_rewrite_asked(graph, &walk, &err);
        }
        tr__memory_fail_at(0);
        failed += status != TR_OK;
        assert_true(status == TR_OK || status == TR_MEMORY);
        tr__graph_destroy(graph);
    }
    assert_true(failed > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stand_in_the_place_of_one),
        cmocka_unit_test(variants_follow_each_other),
        cmocka_unit_test(an_evaluation_has_nodes_of_its_own),
        cmocka_unit_test(attention_goes_on_from_a_cache),
        cmocka_unit_test(a_row_that_does_not_fit_is_refused),
        cmocka_unit_test(an_evaluation_adds_no_parameter),
        cmocka_unit_test(memory_may_fail_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
