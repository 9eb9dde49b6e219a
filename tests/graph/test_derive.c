// The backward that is derived from a unit's forward, call by call.
#include "base/memory.h"
#include "graph/batch_center.h"
#include "graph/derived_unit.h"
#include "ops/flat/copy/copy.h"
#include "ops/nn/relu/relu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_refused(builder build, int given, tr_status status,
                           const char *words) {
    derived_unit unit;
    make(&unit, build, given);
    assert_int_equal(unit.status, status);
    assert_non_null(strstr(unit.err.message, words));
    clear(&unit);
}

// ---- chains and sums

static void build_relu(tr_graph *g) {
    tr_graph_output(g, tr_relu(g, x0(g)));
}

static void an_output_is_read_where_it_lies(void **state) {
    (void)state;
    derived_unit unit;
    assert_backward(build_relu, 1, "relu_backward(dn0 n0 -> di0)\n", "", "", false);
    make(&unit, build_relu, 1);
    assert_true(unit.derived.reads_output[0]);
    assert_false(unit.derived.reads_input[0]);
    clear(&unit);
}

static void build_twice(tr_graph *g) {
    tr_graph_output(g, tr_residual(g, x0(g), x0(g), 0));
}

static void a_value_used_twice_gets_both_gradients(void **state) {
    (void)state;
    assert_backward(build_twice, 1, "copy(dn0 -> di0)\ncopy(dn0 -> +di0)\n", "", "",
                    false);
}

// y = x + f(x): the gradient of x adds up where that of y came in, since f's first
// (here last to run) op has let go of it.
static void build_branch(tr_graph *g) {
    tr_value h = tr_relu(g, tr_relu(g, x0(g)));
    tr_graph_output(g, tr_residual(g, x0(g), h, 0));
}

static void a_residual_branch_adds_in_place(void **state) {
    (void)state;
    assert_backward(build_branch, 1,
                    "relu(n0 -> n1)\n" // of what the backward reads anyway
                    "relu_backward(dn2 n1 -> dn0)\n"
                    "relu_backward(dn0 n0 -> +dn2)\n",
                    "n0", "n1", true);
}

// One op between: its backward reads the incoming gradient while it adds to that of x,
// so the two must not be one.
static void build_short_branch(tr_graph *g) {
    tr_graph_output(g, tr_residual(g, x0(g), tr_relu(g, x0(g)), 0));
}

static void a_gradient_that_is_read_is_not_added_to(void **state) {
    (void)state;
    assert_backward(build_short_branch, 1,
                    "copy(dn1 -> di0)\n"
                    "relu_backward(dn1 n0 -> +di0)\n",
                    "n0", "", false);
}

static void build_dropped_branch(tr_graph *g) {
    tr_graph_output(g, tr_residual(g, x0(g), tr_relu(g, x0(g)), 0.5f));
}

static void a_dropped_branch_has_a_gradient_of_its_own(void **state) {
    (void)state;
    assert_backward(build_dropped_branch, 1,
                    "dropout(dn1 -> dn0)\n"
                    "relu_backward(dn0 n0 -> +dn1)\n",
                    "n0", "", true);
}

// Two inputs share the incoming gradient: the second gets a copy.
static void build_sum_of_two(tr_graph *g) {
    tr_graph_output(g, tr_residual(g, x0(g), tr_graph_input(g, 1), 0));
}

static void two_inputs_do_not_share_a_gradient(void **state) {
    (void)state;
    assert_backward(build_sum_of_two, 2, "copy(dn0 -> di0)\ncopy(dn0 -> di1)\n", "", "",
                    false);
}

// The gradient of the relu's result is also that of both inputs: one of them takes it
// as it lies.
static void build_sum_then_relu(tr_graph *g) {
    tr_value s = tr_residual(g, x0(g), tr_graph_input(g, 1), 0);
    tr_graph_output(g, tr_relu(g, s));
}

static void a_gradient_is_handed_on_from_where_it_lies(void **state) {
    (void)state;
    assert_backward(build_sum_then_relu, 2,
                    "relu_backward(dn1 n1 -> dn0)\n"
                    "copy(dn0 -> di1)\n",
                    "", "", false);
}

static void build_used_output(tr_graph *g) {
    tr_value a = tr_relu(g, x0(g));
    tr_graph_output(g, a);
    tr_graph_output(g, tr_relu(g, a));
}

static void an_output_used_inside_adds_to_what_comes_in(void **state) {
    (void)state;
    assert_backward(build_used_output, 1,
                    "relu_backward(dn1 n1 -> +dn0)\n"
                    "relu_backward(dn0 n0 -> di0)\n",
                    "", "", false);
}

static void build_dead_end(tr_graph *g) {
    tr_value a = tr_relu(g, x0(g));
    tr_gelu(g, tr_relu(g, a), true); // nobody asks for it
    tr_graph_output(g, a);
}

static void what_nobody_asks_for_has_no_backward(void **state) {
    (void)state;
    assert_backward(build_dead_end, 1, "relu_backward(dn0 n0 -> di0)\n", "", "", false);
}

// ---- parameters

static void build_shared_weight(tr_graph *g) {
    tr_value w = weight(g, "w");
    tr_value a = tr_linear(g, TR_LINEAR_OUT_IN, x0(g), w, TR_NO_VALUE);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, a, w, vector(g, "b")));
}

static void a_weight_used_twice_is_fresh_once(void **state) {
    (void)state;
    assert_backward(build_shared_weight, 1,
                    "linear_backward_weight(dn1 n0 -> ?dp0 ?dp1)\n"
                    "linear_backward_input(dn1 p0 -> dn0)\n"
                    "linear_backward_weight(dn0 i0 -> +dp0)\n"
                    "linear_backward_input(dn0 p0 -> di0)\n",
                    "n0", "", false);
}

static void build_first_layer(tr_graph *g) {
    tr_value x = tr_graph_data(g, "features");
    tr_value w = weight(g, "w"), b = vector(g, "b");
    tr_graph_output(g, tr_linear_relu(g, TR_LINEAR_OUT_IN, x, w, b));
}

static void data_has_no_gradient(void **state) {
    (void)state;
    assert_backward(build_first_layer, 0,
                    "relu_backward(dn0 n0 -> t0)\n"
                    "linear_backward_weight(t0 x -> ?dp0 ?dp1)\n",
                    "", "", false);
}

// The norm of the data is cheap: recomputed for the weight's gradient; its own backward
// has nothing to do but for its parameters.
static void build_norm_of_data(tr_graph *g) {
    tr_value n = norm(g, tr_graph_data(g, "features"), "a", "b");
    tr_graph_output(g, project(g, n, "w"));
}

static void cheap_values_are_made_again(void **state) {
    (void)state;
    assert_backward(build_norm_of_data, 0,
                    "layer_norm(x p0 p1 -> n0 n0.1 n0.2)\n"
                    "linear_backward_weight(dn1 n0 -> ?dp2)\n"
                    "linear_backward_input(dn1 p2 -> dn0)\n"
                    "layer_norm_backward(dn0 x n0.1 n0.2 p0 -> _ ?dp0 ?dp1)\n",
                    "", "n0 n0.1 n0.2", false);
}

// A product is kept, unless it is late.
static void build_late(tr_graph *g) {
    tr_value w = weight(g, "w");
    tr_value a = tr_linear(g, TR_LINEAR_OUT_IN, x0(g), w, TR_NO_VALUE);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, a, w, TR_NO_VALUE));
    g->values[a].late = true;
}

static void what_is_late_is_made_in_the_backward(void **state) {
    (void)state;
    assert_backward(build_late, 1,
                    "linear(i0 p0 _ -> n0)\n"
                    "linear_backward_weight(dn1 n0 -> ?dp0)\n"
                    "linear_backward_input(dn1 p0 -> dn0)\n"
                    "linear_backward_weight(dn0 i0 -> +dp0)\n"
                    "linear_backward_input(dn0 p0 -> di0)\n",
                    "", "n0", false);
}

static void build_relu_of_data(tr_graph *g) {
    tr_graph_output(g, tr_relu(g, tr_relu(g, tr_graph_data(g, "features"))));
}

static void a_unit_without_gradients_has_no_backward(void **state) {
    (void)state;
    assert_backward(build_relu_of_data, 0, "", "", "", false);
}

// ---- a block

static tr_value feed_forward(tr_graph *g, tr_value n) {
    tr_value h = tr_gelu(g, project(g, n, "up"), true);
    return project(g, h, "down");
}

// GPT-2's block, with the attention left out.
static void build_block(tr_graph *g) {
    tr_value x = x0(g);
    tr_value n = norm(g, x, "a1", "b1");
    tr_value branch = project(g, n, "attention");
    tr_value a = vector(g, "a2"), b = vector(g, "b2");
    tr_value s = tr_residual_norm(g, x, branch, 0, a, b, 1e-5f, &n);
    tr_graph_output(g, tr_residual(g, s, feed_forward(g, n), 0));
}

// Gradients of weights stand behind what is handed on, with what is recomputed for them
// alone; those of gains are made sooner and added there. What they read is not added
// to.
static void weights_of_a_block_come_later(void **state) {
    (void)state;
    derived_unit unit;
    make_as_asked(&unit, build_block, 1,
                  (tr_derive_request){.recomputed = TR_RECOMPUTE_ACTIVATION,
                                      .weights_later = true});
    assert_string_equal(unit.err.message, "");
    assert_string_equal(test_describe(unit.graph, &unit.derived, unit.text),
                        "linear_backward_input(dn6 p6 -> dn4)\n"
                        "gelu_backward(dn4 n3 -> dn3)\n"
                        "linear_backward_input(dn3 p5 -> dn2.1)\n"
                        "copy(dn6 -> dn2)\n"
                        "layer_norm_backward(dn2.1 n2 n2.2 n2.3 p3 -> +dn2 t0 t1)\n"
                        "linear_backward_input(dn2 p2 -> dn0)\n"
                        "copy(dn2 -> di0)\n"
                        "layer_norm_backward(dn0 i0 n0.1 n0.2 p0 -> +di0 t2 t3)\n"
                        "gelu(n3 -> n4)\n"
                        "linear_backward_weight(dn6 n4 -> ?dp6)\n"
                        "linear_backward_weight(dn3 n2.1 -> ?dp5)\n"
                        "copy(t0 -> ?dp3)\n"
                        "copy(t1 -> ?dp4)\n"
                        "linear_backward_weight(dn2 n0 -> ?dp2)\n"
                        "copy(t2 -> ?dp0)\n"
                        "copy(t3 -> ?dp1)\n");
    assert_int_equal(unit.derived.weights, 8);
    assert_int_equal(unit.derived.backward_count, 16);
    assert_false(unit.derived.in_place);
    clear(&unit);
}

static void a_block_saves_what_it_must_and_adds_in_place(void **state) {
    (void)state;
    assert_backward(build_block, 1,
                    // n0 norm, n1 attention, n2 s and norm, n3 up, n4 gelu, n5 down
                    "gelu(n3 -> n4)\n"
                    "linear_backward_weight(dn6 n4 -> ?dp6)\n"
                    "linear_backward_input(dn6 p6 -> dn4)\n"
                    "gelu_backward(dn4 n3 -> dn3)\n"
                    "layer_norm(n2 p3 p4 -> n2.1 n2.2 n2.3)\n"
                    "linear_backward_weight(dn3 n2.1 -> ?dp5)\n"
                    "linear_backward_input(dn3 p5 -> dn2.1)\n"
                    "layer_norm_backward(dn2.1 n2 n2.2 n2.3 p3 -> +dn6 ?dp3 ?dp4)\n"
                    "layer_norm(i0 p0 p1 -> n0 n0.1 n0.2)\n"
                    "linear_backward_weight(dn6 n0 -> ?dp2)\n"
                    "linear_backward_input(dn6 p2 -> dn0)\n"
                    "layer_norm_backward(dn0 i0 n0.1 n0.2 p0 -> +dn6 ?dp0 ?dp1)\n",
                    "n2 n3", "n0 n0.1 n0.2 n2.1 n2.2 n2.3 n4", true);
}

// What is kept and what is made again of the block, for each choice of classes.
static void a_block_makes_again_what_it_is_asked_to(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        const char *saved, *recomputed;
    } cases[] = {
        {0, "n0 n0.1 n0.2 n2 n2.1 n2.2 n2.3 n3 n4", ""},
        {TR_RECOMPUTE_NORM, "n2 n3 n4", "n0 n0.1 n0.2 n2.1 n2.2 n2.3"},
        {TR_RECOMPUTE_ACTIVATION, "n0 n0.1 n0.2 n2 n2.1 n2.2 n2.3 n3", "n4"},
        {TR_RECOMPUTE_PRE_ACTIVATION, "n0 n0.1 n0.2 n2 n2.1 n2.2 n2.3 n4", "n3"},
        // The sum is made from n1, which would have to be kept in its place.
        {TR_RECOMPUTE_RESIDUAL, "n0 n0.1 n0.2 n2 n2.1 n2.2 n2.3 n3 n4", ""},
        {TR_RECOMPUTE_RESIDUAL | TR_RECOMPUTE_PRODUCT, "n0 n0.1 n0.2 n2.1 n2.2 n2.3 n4",
         "n1 n2 n3"},
        {TR_RECOMPUTE_NORM | TR_RECOMPUTE_PRODUCT, "n2 n4",
         "n0 n0.1 n0.2 n2.1 n2.2 n2.3 n3"},
        {TR_RECOMPUTE_ALL, "", "n0 n0.1 n0.2 n1 n2 n2.1 n2.2 n2.3 n3 n4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        derived_unit unit;
        make_as_asked(&unit, build_block, 1,
                      (tr_derive_request){.recomputed = cases[i].classes});
        assert_string_equal(unit.err.message, "");
        assert_string_equal(
            test_describe_values(unit.graph, unit.derived.saved, unit.text),
            cases[i].saved);
        assert_string_equal(
            test_describe_values(unit.graph, unit.derived.recomputed, unit.text),
            cases[i].recomputed);
        clear(&unit);
    }
}

// Everything from the boundary: each call once, right before what needs it.
static void a_block_is_made_again_in_order(void **state) {
    (void)state;
    derived_unit unit;
    make_as_asked(&unit, build_block, 1,
                  (tr_derive_request){.recomputed = TR_RECOMPUTE_ALL});
    assert_string_equal(test_describe(unit.graph, &unit.derived, unit.text),
                        "layer_norm(i0 p0 p1 -> n0 n0.1 n0.2)\n"
                        "linear(n0 p2 _ -> n1)\n"
                        "residual_norm(i0 n1 p3 p4 -> n2 n2.1 n2.2 n2.3)\n"
                        "linear(n2.1 p5 _ -> n3)\n"
                        "gelu(n3 -> n4)\n"
                        "linear_backward_weight(dn6 n4 -> ?dp6)\n"
                        "linear_backward_input(dn6 p6 -> dn4)\n"
                        "gelu_backward(dn4 n3 -> dn3)\n"
                        "linear_backward_weight(dn3 n2.1 -> ?dp5)\n"
                        "linear_backward_input(dn3 p5 -> dn2.1)\n"
                        "layer_norm_backward(dn2.1 n2 n2.2 n2.3 p3 -> +dn6 ?dp3 ?dp4)\n"
                        "linear_backward_weight(dn6 n0 -> ?dp2)\n"
                        "linear_backward_input(dn6 p2 -> dn0)\n"
                        "layer_norm_backward(dn0 i0 n0.1 n0.2 p0 -> +dn6 ?dp0 ?dp1)\n");
    clear(&unit);
}

static void recomputing_runs_only_what_leads_to_saved_values(void **state) {
    (void)state;
    derived_unit unit;
    make(&unit, build_block, 1);
    static const bool needed[] = {true, true, true, true, false, false, false};
    assert_int_equal(unit.graph->node_count, 7);
    assert_memory_equal(unit.derived.needed, needed, sizeof needed);
    clear(&unit);
}

// ---- the whole wave

static void build_centered(tr_graph *g) {
    tr_value h = tr_relu(g, tr_relu(g, x0(g)));
    tr_graph_output(g, tr_relu(g, test_batch_center(g, h)));
}

static void a_sum_over_the_wave_cuts_the_unit_in_two(void **state) {
    (void)state;
    derived_unit unit;
    assert_backward(build_centered, 1,
                    "relu_backward(dn4 n4 -> dn3)\n"
                    "batch_center_backward(dn3 n2 -> ?dn2)\n"
                    "--\n"
                    "batch_sum_backward(dn2 -> +dn3)\n"
                    "relu_backward(dn3 n1 -> dn0)\n"
                    "relu_backward(dn0 n0 -> di0)\n",
                    "n0 n1", "", false);
    make(&unit, build_centered, 1);
    assert_int_equal(unit.graph->segment_count, 2);
    clear(&unit);
}

// What one segment makes and the next reads is saved, even when nothing else reads it.
static void build_crossing(tr_graph *g) {
    tr_value x = x0(g);
    tr_value n = norm(g, x, "a", "b");
    tr_graph_output(g, tr_residual(g, n, test_batch_center(g, x), 0));
}

static void what_passes_between_segments_is_saved(void **state) {
    (void)state;
    assert_backward(build_crossing, 1,
                    "batch_center_backward(dn3 n1 -> ?dn1)\n"
                    "--\n"
                    "copy(dn3 -> di0)\n"
                    "batch_sum_backward(dn1 -> +di0)\n"
                    "layer_norm(i0 p0 p1 -> _ n0.1 n0.2)\n"
                    "layer_norm_backward(dn3 i0 n0.1 n0.2 p0 -> +di0 ?dp0 ?dp1)\n",
                    "n0", "n0.1 n0.2", false);
}

static void build_two_barriers(tr_graph *g) {
    tr_value h = tr_relu(g, test_batch_center(g, x0(g)));
    tr_graph_output(g, tr_relu(g, test_batch_center(g, h)));
}

static void every_barrier_begins_a_segment(void **state) {
    (void)state;
    assert_backward(build_two_barriers, 1,
                    "relu_backward(dn5 n5 -> dn4)\n"
                    "batch_center_backward(dn4 n3 -> ?dn3)\n"
                    "--\n"
                    "batch_sum_backward(dn3 -> +dn4)\n"
                    "relu_backward(dn4 n2 -> dn1)\n"
                    "batch_center_backward(dn1 n0 -> ?dn0)\n"
                    "--\n"
                    "batch_sum_backward(dn0 -> +dn1)\n",
                    "n2", "", false);
}

// A cut is no barrier: what passes it is saved, gradients pass it too.
static void build_cut(tr_graph *g) {
    tr_graph_segment(g); // nothing to cut off
    tr_value h = tr_relu(g, x0(g));
    tr_graph_segment(g);
    tr_graph_segment(g); // the same cut
    h = tr_relu(g, h);
    tr_graph_segment(g);
    tr_graph_output(g, tr_relu(g, h));
    tr_graph_segment(g); // nothing follows
}

static void a_unit_is_cut_where_it_says(void **state) {
    (void)state;
    derived_unit unit;
    assert_backward(build_cut, 1,
                    "relu_backward(dn2 n2 -> dn1)\n"
                    "--\n"
                    "relu_backward(dn1 n1 -> dn0)\n"
                    "--\n"
                    "relu_backward(dn0 n0 -> di0)\n",
                    "n0 n1", "", false);
    make(&unit, build_cut, 1);
    assert_int_equal(unit.graph->segment_count, 3);
    assert_int_equal(tr__graph_barriers(unit.graph, 1, 3), 0);
    clear(&unit);
}

// A cut between what adds to a wave tensor and what reads it: the barrier lies before
// the first that reads.
static void build_cut_before_reading(tr_graph *g) {
    tr_value x = x0(g), stat = tr_graph_op(g, &test_op_batch_sum, NULL, &x, 1, NULL);
    tr_graph_segment(g);
    tr_value h = tr_relu(g, x);
    tr_graph_segment(g);
    h = tr_graph_op(g, &test_op_batch_center, NULL, (tr_value[]){h, stat}, 2, NULL);
    tr_graph_segment(g);
    tr_graph_output(
        g, tr_graph_op(g, &test_op_batch_center, NULL, (tr_value[]){h, stat}, 2, NULL));
}

static void a_barrier_lies_between_adding_and_reading(void **state) {
    (void)state;
    derived_unit unit;
    make(&unit, build_cut_before_reading, 1);
    assert_int_equal(unit.status, TR_OK);
    assert_int_equal(unit.graph->segment_count, 4);
    assert_int_equal(tr__graph_barriers(unit.graph, 1, 2), 0);
    assert_int_equal(tr__graph_barriers(unit.graph, 2, 3), 1);
    assert_int_equal(tr__graph_barriers(unit.graph, 3, 4), 0);
    clear(&unit);
}

// A copy of the wave tensor belongs to one micro-batch; its gradient must not be where
// the wave's is collected, nor the other way round.
static void build_copied_sum(tr_graph *g) {
    tr_value x = x0(g), stat = tr_graph_op(g, &test_op_batch_sum, NULL, &x, 1, NULL);
    stat = tr_graph_op(g, &tr__op_copy, NULL, &stat, 1, NULL);
    tr_graph_output(
        g, tr_graph_op(g, &test_op_batch_center, NULL, (tr_value[]){x, stat}, 2, NULL));
}

static void a_copy_of_a_wave_tensor_is_not_the_wave_tensor(void **state) {
    (void)state;
    assert_backward(build_copied_sum, 1,
                    "batch_center_backward(dn2 n1 -> dn1)\n"
                    "copy(dn1 -> ?dn0)\n"
                    "--\n"
                    "batch_sum_backward(dn0 -> +dn2)\n",
                    "n1", "", true);
}

// An op that adds what each micro-batch has to a wave tensor of the same shape.
static tr_status same_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static int copy_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

static const tr_op op_collect = {.name = "collect",
                                 .wave_outputs = 1,
                                 .infer = same_infer,
                                 .backward = copy_backward};

static void build_collected(tr_graph *g) {
    tr_value a = tr_relu(g, x0(g));
    tr_value sum = tr_graph_op(g, &op_collect, NULL, &a, 1, NULL);
    tr_graph_output(g, tr_relu(g, tr_residual(g, a, sum, 0)));
}

static void build_only_collected(tr_graph *g) {
    tr_value a = tr_relu(g, x0(g));
    tr_graph_output(g, tr_relu(g, tr_graph_op(g, &op_collect, NULL, &a, 1, NULL)));
}

static void a_gradient_of_the_wave_is_copied_to_each_micro_batch(void **state) {
    (void)state;
    assert_backward(build_collected, 1,
                    "relu_backward(dn3 n3 -> dn2)\n"
                    "copy(dn2 -> ?dn1)\n"
                    "--\n"
                    "copy(dn1 -> +dn2)\n"
                    "relu_backward(dn2 n0 -> di0)\n",
                    "n0", "", false);
    assert_backward(build_only_collected, 1,
                    "relu_backward(dn2 n2 -> ?dn1)\n"
                    "--\n"
                    "copy(dn1 -> dn0)\n"
                    "relu_backward(dn0 n0 -> di0)\n",
                    "n0", "", false);
}

// ---- errors

static void build_unused_input(tr_graph *g) {
    tr_graph_output(g, tr_relu(g, x0(g)));
}

static void build_undone_input(tr_graph *g) {
    tr_relu(g, tr_graph_input(g, 1));
    tr_graph_output(g, tr_relu(g, x0(g)));
}

static void build_foreign_output(tr_graph *g) {
    tr_graph_output(g, x0(g));
}

static void build_unknown_output(tr_graph *g) {
    tr_graph_output(g, 1000);
}

static void build_no_output(tr_graph *g) {
    tr_graph_output(g, TR_NO_VALUE);
}

static void build_wave_output(tr_graph *g) {
    tr_value x = x0(g);
    tr_graph_output(g, tr_graph_op(g, &test_op_batch_sum, NULL, &x, 1, NULL));
}

static void build_output_twice(tr_graph *g) {
    tr_value y = tr_relu(g, x0(g));
    tr_graph_output(g, y);
    tr_graph_output(g, y);
}

static void build_missing_input(tr_graph *g) {
    tr_graph_output(g, tr_relu(g, tr_graph_input(g, 1)));
}

static void build_impossible_param(tr_graph *g) {
    tr_graph_param(g, "w", TR_SHAPE2(3, 0), zeros);
}

static void build_huge_param(tr_graph *g) {
    tr_graph_param(g, "w", TR_SHAPE2(INT64_MAX, 4), zeros);
}

static void build_param_twice(tr_graph *g) {
    vector(g, "w");
    vector(g, "w");
}

static void build_tied_shapes(tr_graph *g) {
    tr_graph_shared(g, "w", TR_SHAPE1(3), zeros);
    tr_graph_shared(g, "w", TR_SHAPE1(4), zeros);
}

static void build_wrong_shapes(tr_graph *g) {
    tr_value w = tr_graph_param(g, "w", TR_SHAPE2(3, WIDTH + 1), zeros);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, x0(g), w, TR_NO_VALUE));
}

static void build_after_loss(tr_graph *g) {
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x0(g), weight(g, "w"), TR_NO_VALUE,
                            tr_graph_data(g, "labels"));
    tr_relu(g, x0(g));
}

static void build_too_many_outputs(tr_graph *g) {
    for (int i = 0; i <= TR_GRAPH_IO_MAX; i++) {
        tr_graph_output(g, tr_relu(g, x0(g)));
    }
}

static void build_backward_op(tr_graph *g) {
    tr_value x = x0(g);
    tr_graph_output(
        g, tr_graph_op(g, &tr__op_relu_backward, NULL, (tr_value[]){x, x}, 2, NULL));
}

static void units_that_cannot_be_are_refused(void **state) {
    (void)state;
    assert_refused(build_unused_input, 2, TR_INTERNAL, "tensor 1 of the unit before");
    assert_refused(build_undone_input, 2, TR_INTERNAL, "tensor 1 of the unit before");
    assert_refused(build_foreign_output, 1, TR_INTERNAL, "no op of it made");
    assert_refused(build_unknown_output, 1, TR_INTERNAL, "no op of it made");
    assert_refused(build_no_output, 1, TR_INTERNAL, "no op of it made");
    assert_refused(build_wave_output, 1, TR_INTERNAL, "not of one micro-batch");
    assert_refused(build_output_twice, 1, TR_INTERNAL, "twice");
    assert_refused(build_missing_input, 1, TR_INTERNAL, "which hands on 1");
    assert_refused(build_impossible_param, 1, TR_USAGE, "parameter w");
    assert_refused(build_huge_param, 1, TR_USAGE, "parameter w");
    assert_refused(build_param_twice, 1, TR_USAGE, "two parameters w");
    assert_refused(build_tied_shapes, 1, TR_USAGE, "w has two shapes");
    assert_refused(build_wrong_shapes, 1, TR_USAGE, "linear");
    assert_refused(build_after_loss, 1, TR_INTERNAL, "relu follows the loss");
    assert_refused(build_too_many_outputs, 1, TR_INTERNAL, "more than 8");
    assert_refused(build_backward_op, 1, TR_INTERNAL, "no backward");
}

static void build_shared_twice(tr_graph *g) {
    tr_value a = tr_graph_shared(g, "w", TR_SHAPE2(WIDTH, WIDTH), zeros);
    tr_value b = tr_graph_shared(g, "w", TR_SHAPE2(WIDTH, WIDTH), zeros);
    assert_int_equal(a, b);
    assert_int_equal(g->param_count, 1);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, x0(g), a, TR_NO_VALUE));
}

static void a_tied_tensor_is_one_in_its_unit(void **state) {
    (void)state;
    derived_unit unit;
    make(&unit, build_shared_twice, 1);
    assert_int_equal(unit.status, TR_OK);
    clear(&unit);
}

static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    static const builder builders[] = {build_block, build_crossing, build_sum_of_two};
    for (size_t i = 0; i < 3; i++) {
        int failures = 0;
        tr_status status = TR_MEMORY;
        for (; status != TR_OK; failures++) {
            derived_unit unit;
            tr__memory_fail_at(failures + 1);
            make(&unit, builders[i], i == 2 ? 2 : 1);
            tr__memory_fail_at(0);
            status = unit.status;
            assert_true(status == TR_OK || status == TR_MEMORY);
            assert_true(!unit.graph || unit.err.status == status);
            clear(&unit);
        }
        assert_true(failures > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_is_read_where_it_lies),
        cmocka_unit_test(a_value_used_twice_gets_both_gradients),
        cmocka_unit_test(a_residual_branch_adds_in_place),
        cmocka_unit_test(a_gradient_that_is_read_is_not_added_to),
        cmocka_unit_test(a_dropped_branch_has_a_gradient_of_its_own),
        cmocka_unit_test(two_inputs_do_not_share_a_gradient),
        cmocka_unit_test(a_gradient_is_handed_on_from_where_it_lies),
        cmocka_unit_test(an_output_used_inside_adds_to_what_comes_in),
        cmocka_unit_test(what_nobody_asks_for_has_no_backward),
        cmocka_unit_test(a_weight_used_twice_is_fresh_once),
        cmocka_unit_test(data_has_no_gradient),
        cmocka_unit_test(cheap_values_are_made_again),
        cmocka_unit_test(what_is_late_is_made_in_the_backward),
        cmocka_unit_test(a_unit_without_gradients_has_no_backward),
        cmocka_unit_test(weights_of_a_block_come_later),
        cmocka_unit_test(a_block_saves_what_it_must_and_adds_in_place),
        cmocka_unit_test(a_block_makes_again_what_it_is_asked_to),
        cmocka_unit_test(a_block_is_made_again_in_order),
        cmocka_unit_test(recomputing_runs_only_what_leads_to_saved_values),
        cmocka_unit_test(a_sum_over_the_wave_cuts_the_unit_in_two),
        cmocka_unit_test(what_passes_between_segments_is_saved),
        cmocka_unit_test(every_barrier_begins_a_segment),
        cmocka_unit_test(a_unit_is_cut_where_it_says),
        cmocka_unit_test(a_barrier_lies_between_adding_and_reading),
        cmocka_unit_test(a_copy_of_a_wave_tensor_is_not_the_wave_tensor),
        cmocka_unit_test(a_gradient_of_the_wave_is_copied_to_each_micro_batch),
        cmocka_unit_test(units_that_cannot_be_are_refused),
        cmocka_unit_test(a_tied_tensor_is_one_in_its_unit),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
