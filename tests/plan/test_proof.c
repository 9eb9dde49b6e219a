// The proof of plans accepts every plan that is made of requests drawn at random.
#include "models/models.h"
#include "plan/drawn.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { DRAWS = 10000 };

static void drawn_plans_are_proved(void **state) {
    test_models models;
    int plans = 0;
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
        plans++;
        if (status != TR_OK) {
            fail_msg("request %d: %s", (int)i, err.message);
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    print_message("%d plans\n", plans);
    assert_true(plans > DRAWS / 4);
}

// Statistics that are narrower than a line of the cache have nothing between them.
static void residual_networks_are_proved(void **state) {
    static const tr_batch_scope scopes[] = {TR_EFFECTIVE_BATCH, TR_RANK_BATCH,
                                            TR_MICRO_BATCH};
    (void)state;
    for (int i = 0; i < 3; i++) {
        tr_resnet_config config = {.depth = 8,
                                   .stages = 3,
                                   .blocks = {1, 1, 1},
                                   .width = 4,
                                   .num_channels = 1,
                                   .image_size = 8,
                                   .num_labels = 5,
                                   .batch_norm = scopes[i],
                                   .batch_norm_eps = 1e-5,
                                   .batch_norm_momentum = 0.1};
        tr_model *model = NULL;
        tr_error err = {0};
        assert_int_equal(tr__model_resnet(&config, &model, &err), TR_OK);
        for (int64_t ranks = 1; ranks <= 3; ranks++) {
            tr_plan_request request = test_request(model, 2, 3);
            request.ranks = ranks;
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
