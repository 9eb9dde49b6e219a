// Ranks of the tensor axis cut what lies between the layers' products along the tokens:
// of drawn requests every plan is proved, units hand on a rank's tokens alone, and what
// is exchanged, or summed, otherwise is found.
#include "base/rng.h"
#include "draws.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/token_parts/token_parts.h"
#include "plan/drawn.h"
#include "plan/flow/passes.h"
#include "plan/models.h"
#include "plan/proof/check.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWN = TEST_DRAWS(2000, 300), MADE_LEAST = DRAWN / 15, SPOILT_MOST = 12 };

// A drawn request on a mesh with two or four tensor ranks, of what these know.
static tr_plan_request draw_on_mesh(const test_models *models, uint64_t index) {
    tr_plan_request r = test_draw_request(models, index);
    int64_t of = (int64_t)tr__draw_below(16, 0, 2, index);
    tr_mesh mesh = {
        .size = {r.mesh.size[TR_AXIS_DATA], of & 1 ? 2 : 4, 1 + (of >> 1 & 1)}};
    r.tensor_norms = false;
    r.quantization = TR_QUANTIZED_NOT;
    r.mesh = tr__mesh_of_rank(&mesh, of % tr_mesh_ranks(&mesh));
    r.pipeline_order = of & 8 ? TR_PIPELINE_ZERO_BUBBLE : TR_PIPELINE_1F1B;
    r.sequence_parallel = true;
    r.alternating = (int)(index % (TR_ALTERNATING_MOST + 1));
    return r;
}

static tr_plan *make(const tr_plan_request *request, uint64_t index) {
    tr_plan *plan = NULL;
    tr_error err = {0};
    tr_status status = tr__plan_build(request, &plan, &err);
    if (status != TR_OK && status != TR_USAGE) {
        fail_msg("request %d: %s", (int)index, err.message);
    }
    return plan;
}

static void units_hand_on_tokens(const tr_plan *plan, uint64_t index) {
    tr_plan_request request = plan->request;
    tr_plan *whole = NULL;
    request.sequence_parallel = false;
    whole = make(&request, index);
    assert_non_null(whole);
    for (int u = 0; u + 1 < plan->unit_count; u++) {
        int64_t ranks = request.mesh.size[TR_AXIS_TENSOR];
        int64_t least = whole->units[u].program->output_bytes / ranks;
        assert_in_range(plan->units[u].program->output_bytes, least,
                        least + TR_ALIGNMENT); // whole lines of the cache
    }
    tr_plan_destroy(whole);
}

static void plans_are_proved(void **state) {
    test_models models;
    int made = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWN; i++) {
        tr_plan_request request = draw_on_mesh(&models, i);
        tr_plan *plan = request.inference ? NULL : make(&request, i);
        if (plan) {
            units_hand_on_tokens(plan, i);
            made++;
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    print_message("%d of %d requests made plans\n", made, (int)DRAWN);
    assert_true(made >= MADE_LEAST);
}

static void must_find(const tr_plan *plan, const char *what, size_t at) {
    tr_error err = {0};
    if (tr__check_parts(plan, &err) != TR_INTERNAL) {
        fail_msg("%s %zu is not found", what, at);
    }
}

// Each exchange inside of a unit becomes each other one, or none.
static int spoil_nodes(tr_plan *plan) {
    static const tr_op *const ops[] = {&tr__op_all_reduce_gradient, &tr__op_all_reduce,
                                       &tr__op_all_gather, &tr__op_reduce_scatter,
                                       &tr__op_own_part};
    enum { OPS = sizeof ops / sizeof *ops };
    int spoilt = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        tr_graph *graph = plan->units[u].program->graph;
        for (size_t n = 0; n < graph->node_count; n++) {
            const tr_op *right = graph->nodes[n].op;
            bool exchanges = false;
            for (int o = 1; o < OPS; o++) {
                exchanges = exchanges || right == ops[o];
            }
            for (int o = 0; o < OPS && exchanges; o++) {
                // A whole sum has its part, too.
                bool good =
                    right == &tr__op_reduce_scatter && ops[o] == &tr__op_all_reduce;
                graph->nodes[n].op = ops[o];
                if (ops[o] != right && !good) {
                    must_find(plan, "another exchange at node", n);
                    spoilt++;
                }
                graph->nodes[n].op = right;
            }
        }
    }
    return spoilt;
}

static int spoil_sums(tr_plan *plan) {
    int spoilt = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        if (!flat->frozen && flat->all > 0) {
            flat->axes.summed ^= TR_ON_TENSOR;
            must_find(plan, "another sum of flat buffer", f);
            flat->axes.summed ^= TR_ON_TENSOR;
            spoilt++;
        }
    }
    return spoilt;
}

static void what_is_exchanged_otherwise_is_found(void **state) {
    test_models models;
    int plans = 0, nodes = 0, sums = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWN && plans < SPOILT_MOST; i++) {
        tr_plan_request request = draw_on_mesh(&models, i);
        tr_plan *plan = request.inference ? NULL : make(&request, i);
        if (plan) {
            nodes += spoil_nodes(plan);
            sums += spoil_sums(plan);
            plans++;
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    print_message("%d exchanges and %d sums are spoilt\n", nodes, sums);
    assert_true(nodes > 100 && sums > 20);
}

// Of GPT-2 124M, with context 1024, two ranks keep half of each.
static void two_ranks_keep_half(void **state) {
    static const tr_ledger_category kept[] = {
        TR_LEDGER_parameters, TR_LEDGER_gradients, TR_LEDGER_optimizer,
        TR_LEDGER_activations, TR_LEDGER_boundary};
    tr_model *model = test_model_gpt2();
    tr_plan_request request = test_request(model, 1, 4);
    (void)state;
    tr_plan *whole = test_plan(&request);
    request.mesh.size[TR_AXIS_TENSOR] = 2;
    request.sequence_parallel = true;
    tr_plan *half = test_plan(&request);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        int64_t of_one = tr_plan_ledger(whole)->bytes[TR_SPACE_DEVICE][kept[i]];
        int64_t of_two = tr_plan_ledger(half)->bytes[TR_SPACE_DEVICE][kept[i]];
        assert_true(of_one > 0);
        // At the fullest moment there may be fewer boundaries.
        int64_t least = kept[i] == TR_LEDGER_boundary ? 1 : of_one / 2;
        assert_in_range(of_two, least, of_one / 2 + of_one * 3 / 200); // 3 %
    }
    tr_plan_destroy(whole);
    tr_plan_destroy(half);
    tr_model_destroy(model);
}

static void tokens_have_to_divide(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 2, 2);
    tr_plan *plan = NULL;
    tr_error err = {0};
    (void)state;
    request.sequence_parallel = true;
    request.mesh.size[TR_AXIS_TENSOR] = 3;
    assert_int_equal(tr__plan_build(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "3 ranks cannot share the 4 tokens"));
    assert_non_null(strstr(err.message, "Sizes that can: 1, 2, 4"));
    tr_model_destroy(model);
    model = test_model_mlp();
    request.model = model;
    request.mesh.size[TR_AXIS_TENSOR] = 2;
    err = (tr_error){0};
    assert_int_equal(tr__plan_build(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "no tokens to share"));
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_to_divide), cmocka_unit_test(two_ranks_keep_half),
        cmocka_unit_test(what_is_exchanged_otherwise_is_found),
        cmocka_unit_test(plans_are_proved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
