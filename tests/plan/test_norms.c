// The norms of tensors in a plan: where each rank measures what, what it costs, and
// what is left as it was where nobody asks for them.
#include "base/checked.h"
#include "models/models.h"
#include "ops/optimizers/optimizer_measure.h"
#include "plan/flow/residency.h"
#include "plan/flow/work.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tr_plan_request norms_request(const tr_model *model, int64_t ranks, int stage) {
    tr_plan_request request = test_request(model, 1, 2);
    request.mesh = tr_mesh_of_data(ranks, 0);
    request.train_batch_size *= ranks;
    request.stage = stage;
    request.tensor_norms = true;
    return request;
}

static int count_kind(const tr_plan *plan, tr_verb kind) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int count = 0;
    for (size_t i = 0; i < train->count; i++) {
        count += train->steps[i].label.verb == kind;
    }
    return count;
}

// Every block of every tensor that this rank measures has a part of its own, and goes
// into that tensor's norms.
static void check_parts(const tr_plan *plan, int64_t *blocks) {
    const tr_norms_layout *norms = &plan->norms;
    char *taken = calloc((size_t)norms->parts, 1);
    assert_non_null(taken);
    for (int64_t i = 0; i < norms->run_count; i++) {
        const tr_parts_run *run = &norms->runs[i];
        assert_true(run->total >= 0 && run->total < (int64_t)plan->param_count);
        for (int64_t part = run->first; part < run->first + run->count; part++) {
            assert_true(part >= 0 && part < norms->parts && !taken[part]);
            taken[part] = 1;
            blocks[run->total]++;
        }
    }
    free(taken);
}

// All ranks together measure every block of every tensor once.
static void check_ranks(tr_plan_request *request, int64_t ranks) {
    int64_t *found = NULL;
    for (int64_t r = 0; r < ranks; r++) {
        request->mesh = tr_mesh_of_data(ranks, r);
        tr_plan *plan = test_plan(request);
        size_t count = plan->param_count;
        found = found ? found : calloc(count, sizeof *found);
        assert_non_null(found);
        if (r == 0 || request->stage > 0) {
            check_parts(plan, found);
        }
        for (size_t i = 0; i < count && r + 1 == ranks; i++) {
            const tr_plan_param *param = &plan->params[i];
            found[param->tensor] -= tr__measure_parts(param->offset, param->count);
        }
        for (size_t i = 0; i < count && r + 1 == ranks; i++) {
            assert_int_equal(found[i], 0);
        }
        tr_plan_destroy(plan);
    }
    free(found);
}

static void parts_have_their_places(void **state) {
    (void)state;
    tr_model *models[] = {test_model_small_gpt2(0), test_model_sliced_gpt2(0, 3),
                          test_model_mlp(), test_model_gpt2()};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        for (int64_t ranks = 1; ranks <= 5; ranks += 2) {
            tr_plan_request request = norms_request(models[i], ranks, (int)ranks / 2);
            check_ranks(&request, ranks);
            request.stage = 0;
            check_ranks(&request, ranks);
        }
        tr_model_destroy(models[i]);
    }
}

// All ranks lay out alike what they gather.
static void ranks_agree_on_the_layout(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = norms_request(model, 3, 2);
    tr_plan *plans[3];
    for (int rank = 0; rank < 3; rank++) {
        request.mesh = tr_mesh_of_data(3, rank);
        plans[rank] = test_plan(&request);
    }
    for (int r = 1; r < 3; r++) {
        assert_int_equal(plans[r]->norms.parts, plans[0]->norms.parts);
        tr_plan_digest own, first;
        tr__plan_exchanges(plans[r], &own);
        tr__plan_exchanges(plans[0], &first);
        assert_memory_equal(&own, &first, sizeof own);
        for (size_t f = 0; f < plans[0]->flat_count; f++) {
            assert_int_equal(plans[r]->flats[f].parts, plans[0]->flats[f].parts);
        }
    }
    for (int r = 0; r < 3; r++) {
        tr_plan_destroy(plans[r]);
    }
    tr_model_destroy(model);
}

// Slices of a tensor have one norm, all others one each.
static void slices_are_one_tensor(void **state) {
    (void)state;
    tr_model *model = test_model_sliced_gpt2(0, 3);
    tr_plan_request request = norms_request(model, 1, 0);
    tr_plan *plan = test_plan(&request);
    int slices = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        const tr_plan_param *first = &plan->params[param->tensor];
        assert_true(param->tensor <= (int)i && first->tensor == param->tensor);
        assert_string_equal(first->stored, param->stored);
        slices += strcmp(param->stored, "transformer.wte.weight") == 0;
        assert_true(param->lies.first > 0 || param->tensor == (int)i);
    }
    assert_int_equal(slices, 3);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Two sums of each parameter more, reduced and gathered, where ranks update parts: as
// many bytes however many ranks there are.
static void what_it_sends(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    for (int stage = 0; stage <= 3; stage++) {
        tr_plan_request request = norms_request(model, 3, stage);
        tr_plan *with = test_plan(&request);
        request.tensor_norms = false;
        tr_plan *without = test_plan(&request);
        int64_t words = 2 * (int64_t)with->param_count * TR_EXACT_WORDS;
        int64_t own = tr__ceil_div(words, 3), all = stage == 0 ? 0 : 8; // bytes of each
        int flats = (int)with->flat_count;
        assert_int_equal(with->traffic.gather, without->traffic.gather + all * 2 * own);
        assert_int_equal(with->traffic.reduce,
                         without->traffic.reduce + all * (words - own));
        assert_int_equal(count_kind(with, TR_VERB_direction_norms), flats);
        assert_int_equal(count_kind(with, TR_VERB_tensor_sums), 1);
        assert_int_equal(count_kind(with, TR_VERB_tensor_norms), 1);
        assert_int_equal(count_kind(without, TR_VERB_direction_norms), 0);
        assert_int_equal(count_kind(without, TR_VERB_tensor_norms), 0);
        assert_int_equal(count_kind(with, TR_VERB_gather),
                         count_kind(without, TR_VERB_gather) + (stage > 0));
        tr_plan_destroy(with);
        tr_plan_destroy(without);
    }
    tr_model_destroy(model);
}

// The first step of a kind, of a flat buffer (-1: of any).
static const tr_plan_step *first_of(const tr_plan *plan, tr_verb kind, int32_t flat) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    size_t i = 0;
    while (train->steps[i].label.verb != kind ||
           (flat >= 0 && train->steps[i].unit != flat)) {
        i++;
    }
    return &train->steps[i];
}

// What a step of the plan that is made of memory alone asks of it.
static void what_it_touches(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = norms_request(model, 1, 0);
    tr_plan *plan = test_plan(&request);
    const tr_plan_step *measure = first_of(plan, TR_VERB_direction_norms, 0);
    double elements = (double)plan->flats[0].count;
    // Parameters, gradients, two states twice, and what is measured.
    double parts = 16. * (double)tr__norms_parts(plan, &plan->flats[0]);
    assert_true(tr__step_bytes(plan, measure) == elements * 6 * 4 + parts);
    const tr_plan_step *total = first_of(plan, TR_VERB_tensor_norms, -1);
    double tensors = (double)plan->param_count;
    assert_true(tr__step_bytes(plan, total) == 16 * tensors * (TR_EXACT_WORDS + 1));
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// Can an update be left to the next step?
static bool defers(const tr_plan *plan) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    bool some = false;
    for (size_t i = 0; i < train->count; i++) {
        some = some || train->steps[i].guard == TR_GUARD_DEFERRED;
    }
    return some;
}

// From NVMe both phases read all; the first writes the states, the second parameters,
// too. Nothing is left to the next step, whose forwards would need all norms at once.
static void what_is_on_nvme_moves_twice(void **state) {
    (void)state;
    tr_model *model = NULL;
    tr_error err = {0};
    tr_mlp_config config = {.size = {40, 60, 50, 5}, .layers = 3};
    assert_int_equal(tr__model_mlp(&config, &model, &err), TR_OK);
    tr_plan_request request = norms_request(model, 1, 0);
    request.optimizer_placement = request.param_placement = request.grad_placement =
        TR_SPACE_NVME;
    request.update_elements = 1024;
    request.tensor_norms = false;
    tr_plan *once = test_plan(&request);
    request.tensor_norms = true;
    tr_plan *twice = test_plan(&request);
    int64_t phase = 0; // parameters and gradients read, states read and written
    for (size_t f = 0; f < twice->flat_count; f++) {
        int64_t bytes = twice->flats[f].count * (int64_t)sizeof(float);
        phase += 6 * tr__round_up(bytes, TR_NVME_ALIGNMENT);
    }
    assert_int_equal(twice->traffic.nvme, once->traffic.nvme + phase);
    assert_true(defers(once) && !defers(twice));
    // Pieces of 2460, 3050 and 255 parameters.
    assert_int_equal(count_kind(twice, TR_VERB_direction_norms), 7);
    assert_int_equal(count_kind(twice, TR_VERB_update), 7);
    assert_int_equal(count_kind(once, TR_VERB_update), 2 * 7);
    tr_plan_destroy(once);
    tr_plan_destroy(twice);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_their_places),
        cmocka_unit_test(ranks_agree_on_the_layout),
        cmocka_unit_test(slices_are_one_tensor),
        cmocka_unit_test(what_it_sends),
        cmocka_unit_test(what_it_touches),
        cmocka_unit_test(what_is_on_nvme_moves_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
