// The proof of plans accepts every plan that is made of requests drawn at random.
#include "draws.h"
#include "plan/drawn.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_plans_are_proved),
        cmocka_unit_test(residual_networks_are_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
