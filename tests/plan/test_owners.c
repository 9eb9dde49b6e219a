// Who owns what, by hand; what plans say of it; units of pipeline stages.
#include "plan/flow/passes.h"
#include "plan/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// As tests/comm/test_mesh.c has it: rank = tensor + 3 * (data + 2 * pipeline).
static const tr_mesh mesh = {
    .size = {[TR_AXIS_DATA] = 2, [TR_AXIS_TENSOR] = 3, [TR_AXIS_PIPELINE] = 2}};

static void assert_owners(const tr_param_axes *axes, const char *owners) {
    char found[13] = "";
    for (int64_t rank = 0; rank < 12; rank++) {
        tr_mesh at = tr__mesh_of_rank(&mesh, rank);
        found[rank] = tr__owns(axes, &at) ? '1' : '0';
    }
    assert_string_equal(found, owners);
}

// Of ranks 0 to 11. Both data ranks own, each its shard.
static void one_rank_of_those_that_have_the_same_owns(void **state) {
    (void)state;
    tr_param_axes first = tr__axes_of_stage(0), second = tr__axes_of_stage(1);
    assert_owners(&first, "100100000000");
    assert_owners(&second, "000000100100");
    // Tied: used on both stages.
    assert_true(tr__axes_add_stage(&first, 0));
    assert_int_equal(first.replicated, TR_ON_DATA | TR_ON_TENSOR);
    assert_true(tr__axes_add_stage(&first, 1));
    assert_int_equal(first.replicated, TR_ON_ALL);
    assert_owners(&first, "100100000000");
    tr__axes_clear(&first);
    // Cut along the tensor axis: every rank there owns its part.
    second.split = TR_ON_TENSOR;
    second.replicated = TR_ON_DATA;
    assert_owners(&second, "000000111111");
}

// Of stages 3, 0 and 5 of a pipeline, the owner's first.
static void a_tensor_may_be_on_any_stages(void **state) {
    static const int64_t users[] = {3, 0, 3, 5, 0}, found[] = {3, 0, 5};
    tr_param_axes axes = tr__axes_of_stage(users[0]);
    (void)state;
    assert_int_equal(axes.summed, 0);
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        assert_true(tr__axes_add_stage(&axes, users[i]));
    }
    assert_int_equal(axes.summed, TR_ON_PIPELINE);
    assert_int_equal(tr__stages_with(&axes), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tr__stage_with(&axes, i), found[i]);
    }
    for (int64_t stage = 0; stage < 6; stage++) {
        assert_int_equal(tr__stage_has(&axes, stage), stage % 3 == 0 || stage == 5);
    }
    tr__axes_clear(&axes);
}

// Two of four tensor ranks have a head, and the first of them owns it.
static void one_rank_of_those_that_have_a_head_owns_it(void **state) {
    const tr_mesh heads = {.size = {2, 4, 1}, .repeats = 2};
    tr_param_axes axes = tr__axes_of_stage(0);
    (void)state;
    tr__axes_split(&axes, TR_ON_TENSOR);
    tr__axes_repeat(&axes);
    for (int64_t rank = 0; rank < 8; rank++) {
        tr_mesh at = tr__mesh_of_rank(&heads, rank);
        assert_int_equal(tr__owns(&axes, &at), rank % 2 == 0);
        assert_int_equal(tr__owns_of_stage(&axes, &at), rank % 2 == 0);
    }
}

static void the_loss_is_of_the_last_stage(void **state) {
    (void)state;
    for (int64_t rank = 0; rank < 12; rank++) {
        tr_mesh at = tr__mesh_of_rank(&mesh, rank);
        assert_int_equal(tr__loss_rank(&at, 1, 0), 6);
        assert_int_equal(tr__loss_rank(&at, 1, 1), 9);
    }
}

// By the cost of units: of an embedding, of blocks, of a head.
static void stages_cost_about_the_same(void **state) {
    static const struct {
        int units, stages;
        double cost[8];
        int first[9];
    } cases[] = {
        {5, 1, {1, 1, 1, 1, 1}, {0, 5}},
        {4, 2, {1, 1, 1, 1}, {0, 2, 4}},
        {8, 4, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 2, 4, 6, 8}},
        {3, 3, {5, 0, 1}, {0, 1, 2, 3}},
        {6, 2, {0, 2, 2, 2, 2, 4}, {0, 4, 6}},
        {6, 3, {0, 2, 2, 2, 2, 11}, {0, 3, 5, 6}}, // the rest is alike
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int first[9];
        tr_error err = {0};
        assert_int_equal(
            tr__cut_units(cases[i].cost, cases[i].units, cases[i].stages, first, &err),
            TR_OK);
        assert_memory_equal(first, cases[i].first,
                            (size_t)(cases[i].stages + 1) * sizeof *first);
    }
}

// No cut of ten units is better than the one that is found.
static void no_other_cut_is_better(void **state) {
    enum { UNITS = 10, STAGES = 3 };
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        double cost[UNITS], before[UNITS + 1] = {0}, least = 1e300;
        int first[STAGES + 1];
        unsigned draw = seed;
        tr_error err = {0};
        for (int u = 0; u < UNITS; u++) {
            draw = draw * 1103515245u + 12345u;
            cost[u] = 1 + (draw >> 16) % 9;
            before[u + 1] = before[u] + cost[u];
        }
        for (int a = 1; a < UNITS - 1; a++) {
            for (int b = a + 1; b < UNITS; b++) {
                least = fmin(least, fmax(before[a], fmax(before[b] - before[a],
                                                         before[UNITS] - before[b])));
            }
        }
        assert_int_equal(tr__cut_units(cost, UNITS, STAGES, first, &err), TR_OK);
        for (int s = 0; s < STAGES; s++) {
            assert_true(first[s] < first[s + 1]);
            assert_true(before[first[s + 1]] - before[first[s]] <= least);
        }
    }
}

// All parameters are replicated, and each is owned once on the tensor axis.
static void plans_say_who_owns_what(void **state) {
    (void)state;
    tr_model *model = test_model_sliced_gpt2(0, 2);
    tr_plan_request request = test_request(model, 1, 2);
    request.tensor_ranks_alike = true;
    request.mesh = (tr_mesh){.size = {2, 2, 1}};
    request.train_batch_size = 4;
    for (int64_t rank = 0; rank < 4; rank++) {
        tr_plan *plan = NULL;
        tr_error err = {0};
        request.mesh = tr__mesh_of_rank(&request.mesh, rank);
        assert_int_equal(tr__plan_build(&request, &plan, &err), TR_OK);
        for (size_t f = 0; f < plan->flat_count; f++) {
            const tr_param_axes *axes = &plan->flats[f].axes;
            assert_int_equal(axes->split, 0);
            assert_int_equal(axes->replicated, TR_ON_DATA | TR_ON_TENSOR);
            assert_true(tr__owns(axes, &plan->request.mesh) == (rank % 2 == 0));
        }
        // A tensor that were cut in two would count for both.
        int64_t whole = tr_plan_parameters(plan), trained = tr_plan_trained(plan);
        tr_flat *cut = &plan->flats[plan->params[0].flat];
        int64_t elements = 0;
        for (size_t i = 0; i < plan->param_count; i++) {
            bool of_it = &plan->flats[plan->params[i].flat] == cut;
            elements += of_it ? plan->params[i].count : 0;
        }
        cut->axes = (tr_param_axes){.split = TR_ON_TENSOR, .replicated = TR_ON_DATA};
        assert_int_equal(tr_plan_parameters(plan), whole + elements);
        assert_int_equal(tr_plan_trained(plan), trained + elements);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// The first of two stages sends inputs and receives their gradient; the second does it
// the other way round. Each keeps what its units use.
static void stages_have_their_own_units(void **state) {
    (void)state;
    tr_model *model = test_model_mlp(); // three units
    tr_plan_request request = test_request(model, 1, 2);
    int64_t parameters = 0;
    for (int stage = 0; stage < 2; stage++) {
        tr_plan *plan = NULL;
        tr_error err = {0};
        int messages = 0;
        request.mesh = (tr_mesh){.size = {1, 1, 2}, .at = {0, 0, stage}};
        assert_int_equal(tr__plan_build(&request, &plan, &err), TR_OK);
        const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
        for (size_t i = 0; i < train->count; i++) {
            const tr_plan_step *step = &train->steps[i];
            bool sends = step->label.verb == TR_VERB_send;
            messages += sends || step->label.verb == TR_VERB_receive;
            assert_true(!sends || step->backward == (stage == 1));
        }
        assert_int_equal(messages, 2 * request.accumulation_steps);
        for (size_t f = 0; f < plan->flat_count; f++) {
            const tr_flat *flat = &plan->flats[f];
            assert_true(flat->count == 0 || flat->count == flat->all);
            parameters += flat->count;
            parameters -= stage == 0 ? flat->all : 0;
        }
        tr_plan_destroy(plan);
    }
    assert_int_equal(parameters, 0);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_of_those_that_have_a_head_owns_it),
        cmocka_unit_test(one_rank_of_those_that_have_the_same_owns),
        cmocka_unit_test(a_tensor_may_be_on_any_stages),
        cmocka_unit_test(the_loss_is_of_the_last_stage),
        cmocka_unit_test(stages_cost_about_the_same),
        cmocka_unit_test(no_other_cut_is_better),
        cmocka_unit_test(plans_say_who_owns_what),
        cmocka_unit_test(stages_have_their_own_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
