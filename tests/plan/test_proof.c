// The proof of plans accepts every plan that is made of requests drawn at random.
#include "draws.h"
#include "plan/drawn.h"
#include "plan/models.h"
#include "plan/proof/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = TEST_DRAWS(10000, 1500) }; // so that each model has some plans

static int drawn_model(const test_models *models, const tr_model *model) {
    int i = 0;
    while (models->of[i] != model) {
        i++;
    }
    return i;
}

static void drawn_plans_are_proved(void **state) {
    test_models models;
    int of_model[TEST_DRAWN_MODELS] = {0};
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWS; i++) {
        tr_plan_request request = test_draw_request(&models, i);
        tr_plan *plan = NULL;
        tr_error err = {0};
        tr_status status = tr_plan_make(&request, &plan, &err); // with the proof
        if (status == TR_USAGE) {
            continue;
        }
        of_model[drawn_model(&models, request.model)]++;
        if (status != TR_OK) {
            fail_msg("request %d: %s", (int)i, err.message);
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    for (int i = 0; i < TEST_DRAWN_MODELS; i++) {
        print_message("model %d: %d plans\n", i, of_model[i]);
        assert_true(of_model[i] > DRAWS / TEST_DRAWN_MODELS / 20);
    }
}

// Statistics that are narrower than a line of the cache have nothing between them.
static void residual_networks_are_proved(void **state) {
    static const tr_batch_scope scopes[] = {TR_EFFECTIVE_BATCH, TR_RANK_BATCH,
                                            TR_MICRO_BATCH};
    (void)state;
    for (int i = 0; i < 3; i++) {
        tr_model *model = test_model_resnet(scopes[i]);
        for (int64_t ranks = 1; ranks <= 3; ranks++) {
            tr_plan_request request = test_request(model, 2, 3);
            request.mesh = tr_mesh_of_data(ranks, 0);
            request.train_batch_size *= ranks;
            tr_plan *plan = test_plan(&request); // with the proof
            tr_plan_destroy(plan);
        }
        tr_model_destroy(model);
    }
}

// Where a step of the train sequence is that has this shape, on this micro-batch.
static tr_plan_step *find_step(const tr_plan *plan, tr_step_shape shape,
                               int64_t micro) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    size_t i = 0;
    while (i < train->count &&
           (train->steps[i].shape != shape || train->steps[i].payload.gives_back ||
            train->steps[i].micro != micro)) {
        i++;
    }
    assert_true(i < train->count);
    return &train->steps[i];
}

// The caller brings a micro-batch's data when he has had the outputs before. A rank
// that asks for them sooner waits for ever; one that has no outputs may.
static void data_come_behind_the_outputs_before(void **state) {
    (void)state;
    for (int64_t stage = 0; stage < 2; stage++) {
        tr_plan_request request = test_request(&test_model_open_deep, 1, 3);
        tr_error err = {0};
        request.mesh = (tr_mesh){.size = {1, 1, 2}, .at = {0, 0, stage}};
        request.pipeline_order = TR_PIPELINE_V; // the first stage has the outputs
        request.virtual_stages = 2;
        tr_plan *plan = test_plan(&request);
        tr_plan_step *load = find_step(plan, TR_STEP_IS_FEED, 1);
        tr_plan_step *before = find_step(plan, TR_STEP_IS_FEED, 0) + 1;
        tr_plan_step step = *load;
        assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
        memmove(before + 1, before, (size_t)(load - before) * sizeof *before);
        *before = step;
        bool found = tr__plan_prove(plan, &err) != TR_OK;
        assert_int_equal(found, stage == 0);
        assert_true(!found || strstr(err.message, "waits for outputs"));
        tr_plan_destroy(plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_plans_are_proved),
        cmocka_unit_test(residual_networks_are_proved),
        cmocka_unit_test(data_come_behind_the_outputs_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
