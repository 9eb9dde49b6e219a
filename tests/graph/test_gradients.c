// Derived backwards of random units, run in several cuts with everything spoilt that
// the derivation says is not kept, against the obvious backward over the whole batch.
// Labels: isa
#include "base/rng.h"
#include "graph/batch_center.h"
#include "graph/interpret.h"
#include "ops/flat/copy/copy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WIDTH = 5, ROWS = 12, UNITS = 100, OPS_MOST = 12, VALUES_MOST = 128 };

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_tensor_desc rows = {TR_F32, {2, {TR_BATCH, WIDTH}}};
static const tr_batch_tensors batch = {
    2,
    {{"features", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1_INIT(WIDTH)}},
     {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}};

// A unit that is a function of its number.
typedef struct plan {
    uint64_t number, next;
    tr_graph *graph;
    tr_value values[64]; // [B, WIDTH], to choose operands from
    bool used[64];
    int count, params;
} plan;

static int below(plan *p, int bound) {
    return (int)tr__draw_below((uint64_t)bound, p->next++, 23, p->number);
}

static void have(plan *p, tr_value value) {
    p->used[p->count] = false;
    p->values[p->count++] = value;
}

// An operand: more often one made lately.
static tr_value choose(plan *p) {
    int i = below(p, 2) ? p->count - 1 - below(p, p->count > 3 ? 3 : p->count)
                        : below(p, p->count);
    p->used[i] = true;
    return p->values[i];
}

static tr_value param(plan *p, tr_shape shape) {
    char name[16];
    if (p->params > 0 && below(p, 4) == 0) { // one that is there, when it fits
        for (size_t i = 0; i < p->graph->param_count; i++) {
            if (tr_shape_equal(p->graph->params[i].shape, shape)) {
                return p->graph->params[i].value;
            }
        }
    }
    snprintf(name, sizeof name, "p%d", p->params++);
    return tr_graph_param(p->graph, name, shape, zeros);
}

static void add_linear(plan *p) {
    tr_value w = param(p, TR_SHAPE2(WIDTH, WIDTH)), x = choose(p);
    tr_value b = below(p, 2) ? param(p, TR_SHAPE1(WIDTH)) : TR_NO_VALUE;
    bool relu = below(p, 2);
    have(p, relu ? tr_linear_relu(p->graph, TR_LINEAR_OUT_IN, x, w, b)
                 : tr_linear(p->graph, TR_LINEAR_IN_OUT, x, w, b));
}

static void add_norm(plan *p) {
    tr_value w = param(p, TR_SHAPE1(WIDTH)), b = param(p, TR_SHAPE1(WIDTH));
    tr_value x = choose(p), norm;
    if (below(p, 2)) {
        have(p, tr_layer_norm(p->graph, x, w, b, 0.1f));
        return;
    }
    float drop = below(p, 2) ? 0.25f : 0;
    tr_value r = choose(p);
    have(p, tr_residual_norm(p->graph, r, x, drop, w, b, 0.1f, &norm));
    have(p, norm);
}

static void add_op(plan *p, bool waves) {
    tr_value x;
    switch (below(p, waves ? 9 : 8)) {
    case 0:
    case 1:
        add_linear(p);
        break;
    case 2:
        add_norm(p);
        break;
    case 3:
        have(p, tr_relu(p->graph, choose(p)));
        break;
    case 4:
        have(p, tr_gelu(p->graph, choose(p), below(p, 2)));
        break;
    case 5:
    case 6:
        x = choose(p);
        have(p, tr_residual(p->graph, x, choose(p), below(p, 3) ? 0 : 0.5f));
        break;
    case 7:
        x = choose(p);
        have(p, below(p, 2) ? tr_dropout(p->graph, x, 0.5f)
                            : tr_graph_op(p->graph, &tr__op_copy, NULL, &x, 1, NULL));
        break;
    default:
        have(p, test_batch_center(p->graph, choose(p)));
    }
}

// The unit ends in one tensor that depends on all that nobody has used, handed on or
// given to the head. Some units have a dead end besides.
static void finish(plan *p, bool loss) {
    tr_value y = choose(p);
    for (int i = 0; i < p->count; i++) {
        if (!p->used[i]) {
            y = tr_residual(p->graph, y, p->values[i], 0);
        }
    }
    if (below(p, 3) == 0) {
        tr_gelu(p->graph, tr_relu(p->graph, choose(p)), true);
    }
    y = tr_relu(p->graph, y);
    if (loss) {
        tr_value w = param(p, TR_SHAPE2(3, WIDTH));
        tr_linear_cross_entropy(p->graph, TR_LINEAR_OUT_IN, y, w, TR_NO_VALUE,
                                tr_graph_data(p->graph, "labels"));
        return;
    }
    int made = below(p, p->count);
    bool also = p->graph->values[p->values[made]].kind == TR_VALUE_NODE;
    if (also && below(p, 3) == 0) {
        tr_graph_output(p->graph, p->values[made]);
    }
    tr_graph_output(p->graph, y);
}

static tr_graph *make_graph(uint64_t number) {
    plan p = {.number = number};
    tr_tensor_desc given[] = {rows, rows};
    int inputs = below(&p, 3), ops = 1 + below(&p, OPS_MOST);
    bool waves = below(&p, 2), loss = below(&p, 4) == 0, cuts = below(&p, 3) == 0;
    p.graph = tr__graph_create(given, inputs, &batch, TR_F32);
    assert_non_null(p.graph);
    for (int i = 0; i < inputs; i++) {
        have(&p, tr_graph_input(p.graph, i));
    }
    if (inputs == 0 || below(&p, 2)) {
        have(&p, tr_graph_data(p.graph, "features"));
    }
    for (int i = 0; i < ops; i++) {
        if (cuts && below(&p, 3) == 0) {
            tr_graph_segment(p.graph);
        }
        add_op(&p, waves);
    }
    finish(&p, loss);
    tr_error err = {0};
    assert_int_equal(tr_graph_status(p.graph, &err), TR_OK);
    assert_true(p.graph->value_count < VALUES_MOST);
    return p.graph;
}

// ---- comparing

typedef struct trial {
    uint64_t number;
    int micros;
    bool again;
    tr_derive_request derive;
} trial;

static void assert_close(const trial *t, const char *what, int index, const float *got,
                         const float *want, int64_t count) {
    double most = 0.1; // what is smaller may be rounding noise of larger terms
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs(want[i]));
    }
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - want[i]) <= 2e-5 * most)) {
            fail_msg("unit %d in %d micro-batches%s: gradient of %s %d, element %d is "
                     "%g, not %g",
                     (int)t->number, t->micros, t->again ? ", made again" : "", what,
                     index, (int)i, (double)got[i], (double)want[i]);
        }
    }
}

static void compare_inputs(const trial *t, const test_run *run, float *const *grad) {
    for (int i = 0; i < run->graph->input_count; i++) {
        tr_value value = run->graph->input_value[i];
        tr_value storage = run->derived->input_grad[i];
        int64_t count = run->rows * WIDTH;
        for (int micro = 0; micro < run->micros; micro++) {
            assert_close(t, "input", i, test_run_value(run, storage, micro),
                         grad[value] + micro * count, count);
        }
    }
}

static void compare_params(const trial *t, const test_run *run, float *const *grad) {
    for (size_t v = 0; v < run->values; v++) {
        const tr_value_info *info = &run->graph->values[v];
        if (info->kind != TR_VALUE_GRAD ||
            run->graph->values[info->index].kind != TR_VALUE_PARAM) {
            continue;
        }
        assert_close(t, "parameter", run->graph->values[info->index].index,
                     test_run_value(run, (tr_value)v, 0), grad[info->index],
                     tr_shape_count(info->desc.shape));
    }
}

static void compare_sums(const test_run *run, const test_run *whole) {
    size_t last = run->graph->node_count - 1;
    tr_value sums = run->graph->nodes[last].out[0];
    if (run->graph->values[sums].sums) {
        const double *got = test_run_value(run, sums, 0);
        const double *want = test_run_value(whole, sums, 0);
        assert_true(want[TR_SUM_COUNT] > 0);
        assert_true(got[TR_SUM_COUNT] == want[TR_SUM_COUNT]);
        assert_true(fabs(got[TR_SUM_LOSS] / want[TR_SUM_LOSS] - 1) < 1e-6);
    }
}

static void try_cut(const trial *t, const test_run *whole, float *const *grad) {
    tr_graph *graph = make_graph(t->number);
    tr_derivation derived;
    tr_error err = {0};
    test_run run;
    tr_status status = tr__derive(graph, t->derive, &derived, &err);
    if (status != TR_OK) {
        fail_msg("unit %d: %s", (int)t->number, err.message);
    }
    test_run_begin(&run, graph, &derived, ROWS / t->micros, t->micros);
    test_run_forward(&run);
    test_run_forget(&run, t->again);
    test_run_backward(&run);
    compare_inputs(t, &run, grad);
    compare_params(t, &run, grad);
    compare_sums(&run, whole);
    test_run_end(&run);
    tr__derivation_clear(&derived);
    tr__graph_destroy(graph);
}

static int try_unit(uint64_t number) {
    static const int cuts[] = {1, 2, 3, 12};
    tr_graph *graph = make_graph(number);
    float *grad[VALUES_MOST] = {NULL};
    test_run whole;
    test_run_begin(&whole, graph, NULL, ROWS, 1);
    test_run_forward(&whole);
    test_run_obvious(&whole, grad);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        uint32_t recomputed = (uint32_t)(number * 11 + i * 23) & TR_RECOMPUTE_ALL;
        bool weights_later = (number + i) % 2 == 0;
        try_cut(&(trial){number, cuts[i], false, {recomputed, weights_later, false}},
                &whole, grad);
        recomputed = ~recomputed & TR_RECOMPUTE_ALL;
        try_cut(&(trial){number, cuts[i], true, {recomputed, !weights_later, true}},
                &whole, grad);
    }
    int segments = graph->segment_count;
    for (size_t v = 0; v < graph->value_count; v++) {
        free(grad[v]);
    }
    test_run_end(&whole);
    tr__graph_destroy(graph);
    return segments;
}

static void random_units_have_the_gradients_of_the_whole_batch(void **state) {
    (void)state;
    int of_several_segments = 0;
    for (uint64_t number = 0; number < UNITS; number++) {
        of_several_segments += try_unit(number) > 1;
    }
    assert_true(of_several_segments > UNITS / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_units_have_the_gradients_of_the_whole_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
