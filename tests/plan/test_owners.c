// Who owns what, by hand; what plans say of it; units of pipeline stages.
#include "plan/flow/passes.h"
#include "plan/models.h"

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
    tr__axes_add_stage(&first, 0);
    assert_int_equal(first.replicated, TR_ON_DATA | TR_ON_TENSOR);
    tr__axes_add_stage(&first, 1);
    assert_int_equal(first.replicated, TR_ON_ALL);
    assert_owners(&first, "100100000000");
    // Cut along the tensor axis: every rank there owns its part.
    second.split = TR_ON_TENSOR;
    second.replicated = TR_ON_DATA;
    assert_owners(&second, "000000111111");
}

static void the_loss_is_of_the_last_stage(void **state) {
    (void)state;
    for (int64_t rank = 0; rank < 12; rank++) {
        tr_mesh at = tr__mesh_of_rank(&mesh, rank);
        assert_int_equal(tr__loss_rank(&at, 0), 6);
        assert_int_equal(tr__loss_rank(&at, 1), 9);
    }
}

static void stages_have_runs_of_units(void **state) {
    static const struct {
        int stages, units;
        const char *of_unit; // the stage of each
    } cases[] = {{1, 5, "00000"},    {2, 5, "00111"}, {3, 7, "0011222"},
                 {4, 8, "00112233"}, {5, 5, "01234"}, {4, 2, "13"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_mesh at = {.size = {1, 1, cases[i].stages}};
        int end = 0;
        for (int s = 0; s < cases[i].stages; s++) {
            at.at[TR_AXIS_PIPELINE] = s;
            tr_unit_range range = tr__stage_units(&at, cases[i].units);
            assert_int_equal(range.first, end);
            end = range.end;
            for (int u = range.first; u < range.end; u++) {
                assert_int_equal(cases[i].of_unit[u] - '0', s);
                assert_int_equal(tr__stage_of_unit(&at, cases[i].units, u), s);
            }
        }
        assert_int_equal(end, cases[i].units);
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

// A rank that runs a part of the units needs from others what its first unit is given,
// and the gradient of what its last one makes. No pass has them sent yet, and the proof
// finds that.
static void a_part_of_the_units_alone_is_no_step(void **state) {
    (void)state;
    static const char *const needs[] = {
        "backward layer.0, segment 0, micro-batch 0) needs the gradient of the input "
        "of "
        "layer.1",
        "forward layer.1, segment 0, micro-batch 0) needs the input of layer.1"};
    tr_model *model = test_model_mlp(); // three units
    tr_plan_request request = test_request(model, 1, 2);
    for (int stage = 0; stage < 2; stage++) {
        tr_plan *plan = NULL;
        tr_error err = {0};
        request.mesh = (tr_mesh){.size = {1, 1, 2}, .at = {0, 0, stage}};
        assert_int_equal(tr__plan_build(&request, &plan, &err), TR_INTERNAL);
        assert_non_null(strstr(err.message, needs[stage]));
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_of_those_that_have_the_same_owns),
        cmocka_unit_test(the_loss_is_of_the_last_stage),
        cmocka_unit_test(stages_have_runs_of_units),
        cmocka_unit_test(plans_say_who_owns_what),
        cmocka_unit_test(a_part_of_the_units_alone_is_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
