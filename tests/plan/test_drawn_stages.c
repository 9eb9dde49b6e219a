// Drawn requests on stages of a pipeline, with every schedule: each is refused in
// words, or has a plan that is proved and fits those of the other stages.
#include "base/rng.h"
#include "plan/drawn.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { REQUESTS = 1200, STAGES_MOST = 4 };

static int64_t draw(uint64_t request, uint64_t what, uint64_t bound) {
    return (int64_t)tr__draw_below(bound, what, 2, request);
}

static tr_plan_request request_of(const test_models *models, uint64_t index) {
    static const int64_t each[] = {[TR_PIPELINE_1F1B] = 1,
                                   [TR_PIPELINE_INTERLEAVED] = 2,
                                   [TR_PIPELINE_BREADTH_FIRST] = 2,
                                   [TR_PIPELINE_ZERO_BUBBLE] = 1,
                                   [TR_PIPELINE_V] = 2};
    tr_plan_request r = test_draw_request(models, index);
    int64_t stages = 2 + draw(index, 0, STAGES_MOST - 1);
    r.mesh.size[TR_AXIS_PIPELINE] = stages;
    r.mesh.at[TR_AXIS_PIPELINE] = draw(index, 1, (uint64_t)stages);
    r.pipeline_order = (tr_pipeline_order)draw(index, 2, TR_PIPELINE_V + 1);
    r.virtual_stages = each[r.pipeline_order];
    r.model = draw(index, 3, 4) == 0 ? &test_model_tied : r.model;
    return r;
}

static void stages_are_proved_or_refused(void **state) {
    test_models models;
    int made = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        tr_plan_request request = request_of(&models, i);
        tr_plan *plan = NULL;
        tr_error err = {0};
        tr_status status =
            request.inference ? TR_USAGE : tr_plan_make(&request, &plan, &err);
        if (status != TR_OK && status != TR_USAGE) {
            fail_msg("request %d: %s", (int)i, err.message);
        }
        made += status == TR_OK;
        tr_plan_destroy(plan);
    }
    assert_true(made > REQUESTS / 4);
    test_models_destroy(&models);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stages_are_proved_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
