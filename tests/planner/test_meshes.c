// The planner's choice of a mesh and a schedule.
#include "draws.h"
#include "models/models.h"
#include "plan/models.h"
#include "planner/all_plans.h"
#include "planner/check_choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    RANKS = 4,
    BATCH = 4,
    MICRO_BATCH = 1u << TR_DIMENSION_micro_batch,
    STAGE = 1u << TR_DIMENSION_stage,
    UNITS = 1u << TR_DIMENSION_recomputed_units,
    OPS = 1u << TR_DIMENSION_recomputed_ops,
    WAVE = 1u << TR_DIMENSION_wave,
    PASSES = 1u << TR_DIMENSION_passes,
    INPUTS = 1u << TR_DIMENSION_boundary_placement,
};

// A machine of up to 64 ranks whose messages go at so many bytes a second.
static tr_machine *machine_with(double bytes, double latency) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    char text[1024];
    snprintf(text, sizeof text,
             "{\"name\": \"linked\", \"ranks_per_node\": 64,"
             " \"compute\": {\"flops\": 1e9, \"bytes\": 1e9, \"launch\": 1e-5},"
             " \"host\": {\"bytes\": 5e8}, \"copy\": {\"interference\": 0.2,"
             "  \"to_device\": {\"bytes\": 2e8, \"latency\": 1e-5},"
             "  \"to_host\": {\"bytes\": 2e8, \"latency\": 1e-5}},"
             " \"link\": {\"interference\": 0.1, \"inside\": {\"bytes\": %g, "
             "\"latency\": %g}}}",
             bytes, latency);
    if (tr__machine_parse("linked", text, &machine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return machine;
}

// Of layers, 64 wide, and so many words: with many, parameters weigh more than what
// ranks exchange by.
static tr_model *wide_model_of(int64_t layers, int64_t words) {
    tr_gpt2_config config = {.n_layer = layers,
                             .n_embd = 64,
                             .n_head = 4,
                             .n_positions = 8,
                             .vocab_size = words,
                             .n_inner = 256,
                             .gelu_tanh = true,
                             .layer_norm_epsilon = 1e-5,
                             .initializer_range = 0.02};
    tr_model *model = NULL;
    assert_int_equal(tr__model_gpt2(&config, &model, NULL), TR_OK);
    return model;
}

static tr_model *wide_model(void) {
    return wide_model_of(4, 4000);
}

static tr_planner_request request_of(const tr_model *model, const tr_machine *machine,
                                     int64_t batch, unsigned free) {
    tr_planner_request request = test_planner_request(model, machine, batch, RANKS);
    request.free = free;
    request.plan.micro_batch = 1;
    request.plan.accumulation_steps = (batch + RANKS - 1) / RANKS;
    request.budget[TR_SPACE_HOST] = request.budget[TR_SPACE_DEVICE];
    return request;
}

static tr_planner_option choice_of(const tr_planner_request *request) {
    tr_planned *planned = NULL;
    tr_error err = {0};
    if (tr_planner_choose(request, &planned, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    tr_planner_option choice = *tr_planned_choice(planned);
    tr_planned_destroy(planned);
    return choice;
}

static void test_bounds(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request =
        request_of(model, slow, BATCH, TEST_MESH | MICRO_BATCH | STAGE | UNITS);
    test_check_bounds(&request);
    request.free = TEST_MESH | OPS | INPUTS | UNITS;
    test_check_bounds(&request);
    request.free = TEST_MESH | MICRO_BATCH | WAVE | UNITS;
    request.plan.stage = 1;
    test_check_bounds(&request);
    request.free &= ~WAVE;
    request.plan.wave = 2;
    test_check_bounds(&request);
    request.plan.wave = 0;
    request.plan.reproducible = true;
    test_check_bounds(&request);
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// Stages go through a step of pairs once or twice.
static void test_pairs(void **state) {
    enum { PAIRS = 8 };
    (void)state;
    tr_model *model = test_model_pairs(0, PAIRS);
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request =
        request_of(model, slow, PAIRS, TEST_MESH | PASSES | UNITS);
    test_check_bounds(&request);
    test_check_budgets(request);
    tr_machine_close(slow);
    tr_model_destroy(model);
}

static void test_exhaustive(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *slow = machine_with(1e8, 1e-5), *fast = machine_with(1e10, 1e-7);
    test_check_budgets(
        request_of(model, slow, BATCH, TEST_MESH | MICRO_BATCH | STAGE | UNITS));
    test_check_budgets(request_of(model, fast, 2, TEST_MESH | MICRO_BATCH | UNITS));
    tr_machine_close(slow);
    tr_machine_close(fast);
    tr_model_destroy(model);
}

// Seconds of a step that the search goes by, where its plan is too long to be made
// whole.
static double told_by_less(const tr_planner_request *request) {
    tr_search *search = NULL;
    tr_error err = {0};
    tr_made made;
    assert_int_equal(tr__search_begin(request, 0, &search, &err), TR_OK);
    assert_int_equal(search->group_count, 1);
    tr_point point = tr__group_point(search, &search->groups[0], 0);
    assert_int_equal(tr__search_make(search, &point, NULL, &made, &err), TR_OK);
    tr__search_end(search);
    return made.option.seconds;
}

// Among stages that wait for each other, and tensor ranks whose messages no schedule
// reckons with, further waves do not all take the same time.
static void test_long_pipelines(void **state) {
    static const tr_pipeline_order orders[] = {
        TR_PIPELINE_1F1B, TR_PIPELINE_BREADTH_FIRST, TR_PIPELINE_ZERO_BUBBLE};
    (void)state;
    enum { LAYERS = 46, STAGES = 16, WAVES = 96 };
    tr_model *model = wide_model_of(LAYERS, 4000);
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request = request_of(model, slow, WAVES, 0);
    request.plan.accumulation_steps = WAVES;
    request.plan.mesh = (tr_mesh){.size = {1, 4, STAGES}};
    request.plan.virtual_stages = 1;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        request.plan.pipeline_order = orders[i];
        double whole = choice_of(&request).seconds, told = told_by_less(&request);
        if (fabs(told / whole - 1) > 0.02) {
            fail_msg("schedule %d: %g s in place of %g s", orders[i], told, whole);
        }
    }
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// Tensor ranks send at each product, stages at each micro-batch: over a slow link data
// ranks, which send once a step, are best; where there are fewer samples than ranks,
// and links are fast, others are.
static void test_links(void **state) {
    (void)state;
    tr_model *model = wide_model();
    tr_machine *slow = machine_with(1e7, 1e-4), *fast = machine_with(1e11, 1e-8);
    tr_planner_request request =
        request_of(model, slow, 64 * BATCH, TEST_MESH | MICRO_BATCH);
    tr_planner_option choice = choice_of(&request);
    assert_int_equal(choice.value[TR_DIMENSION_tensor_ranks], 1);
    assert_int_equal(choice.value[TR_DIMENSION_pipeline_stages], 1);
    request = request_of(model, fast, 2, TEST_MESH | MICRO_BATCH);
    choice = choice_of(&request);
    assert_int_equal(choice.value[TR_DIMENSION_tensor_ranks], 4);
    tr_machine_close(slow);
    tr_machine_close(fast);
    tr_model_destroy(model);
}

// What the best plan of data ranks takes is not there.
static void test_memory(void **state) {
    (void)state;
    tr_model *model = wide_model();
    tr_machine *slow = machine_with(2e6, 1e-4);
    tr_planner_request alone = request_of(model, slow, 16 * BATCH, MICRO_BATCH | UNITS);
    tr_planned *planned = NULL;
    tr_error err = {0};
    assert_int_equal(tr_planner_choose(&alone, &planned, &err), TR_OK);
    int64_t least = tr_planned_smallest(planned)->bytes[TR_SPACE_DEVICE];
    tr_planned_destroy(planned);
    tr_planner_request request = alone;
    request.free |= TEST_MESH;
    alone.budget[TR_SPACE_DEVICE] = request.budget[TR_SPACE_DEVICE] = least * 3 / 4;
    assert_int_equal(tr_planner_choose(&alone, &planned, &err), TR_BUDGET);
    // The message says which mesh would fit.
    assert_non_null(strstr(err.message, "pipeline.stages "));
    tr_planner_option choice = choice_of(&request);
    assert_true(choice.value[TR_DIMENSION_tensor_ranks] *
                    choice.value[TR_DIMENSION_pipeline_stages] >
                1);
    assert_true(choice.bytes[TR_SPACE_DEVICE] <= least * 3 / 4);
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// The best of each mesh that can be given by hand; *best of them all.
static void list_by_hand(const tr_planner_request *open, double *best) {
    static const struct {
        int64_t tensor, stages, each;
        tr_pipeline_order order;
    } meshes[] = {
        {1, 1, 0, TR_PIPELINE_1F1B},          {2, 1, 0, TR_PIPELINE_1F1B},
        {1, 2, 1, TR_PIPELINE_1F1B},          {1, 2, 2, TR_PIPELINE_INTERLEAVED},
        {1, 2, 1, TR_PIPELINE_BREADTH_FIRST}, {1, 2, 2, TR_PIPELINE_BREADTH_FIRST},
        {2, 2, 1, TR_PIPELINE_1F1B},          {2, 2, 2, TR_PIPELINE_INTERLEAVED},
        {1, 4, 1, TR_PIPELINE_1F1B},          {1, 4, 1, TR_PIPELINE_BREADTH_FIRST},
    };
    *best = INFINITY;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        tr_planner_request by_hand = *open;
        tr_planned *planned = NULL;
        tr_error err = {0};
        const tr_mesh mesh = {.size = {RANKS / (meshes[i].tensor * meshes[i].stages),
                                       meshes[i].tensor, meshes[i].stages}};
        by_hand.free &= ~TEST_MESH;
        by_hand.plan.mesh = mesh;
        by_hand.plan.pipeline_order = meshes[i].order;
        by_hand.plan.virtual_stages = meshes[i].each;
        if (tr_planner_choose(&by_hand, &planned, &err) == TR_OK) {
            *best = fmin(*best, tr_planned_choice(planned)->seconds);
        } else {
            assert_int_equal(err.status, TR_BUDGET);
        }
        tr_planned_destroy(planned);
    }
}

static void test_by_hand(void **state) {
    (void)state;
    tr_model *model = wide_model();
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request open =
        request_of(model, slow, 16, TEST_MESH | MICRO_BATCH | UNITS);
    for (int64_t budget = 12000000; budget > 4000000; budget /= 2) {
        double best = 0;
        tr_planned *planned = NULL;
        tr_error err = {0};
        open.budget[TR_SPACE_DEVICE] = budget;
        list_by_hand(&open, &best);
        tr_status status = tr_planner_choose(&open, &planned, &err);
        assert_int_equal(status, isfinite(best) ? TR_OK : TR_BUDGET);
        if (planned) {
            assert_true(tr_planned_choice(planned)->seconds <= 1.001 * best);
        }
        tr_planned_destroy(planned);
    }
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// The more micro-batches take turns the faster it is, and the more of what is
// recomputed is there at once.
static void test_alternating(void **state) {
    (void)state;
    tr_model *model = wide_model_of(2, 64);
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request =
        request_of(model, slow, 2 * BATCH, 1u << TR_DIMENSION_alternating);
    request.plan.mesh = (tr_mesh){.size = {1, 4, 1}};
    request.plan.accumulation_steps = 2 * BATCH;
    request.plan.wave = BATCH;
    request.plan.recomputed_units = -1;
    test_check_budgets(request);
    tr_planner_option before = {0};
    for (int64_t most = TR_ALTERNATING_MOST; most > 0; most /= 2) {
        tr_planner_option choice = choice_of(&request);
        assert_int_equal(choice.value[TR_DIMENSION_alternating], most);
        assert_true(choice.seconds > before.seconds);
        before = choice;
        request.budget[TR_SPACE_DEVICE] = choice.bytes[TR_SPACE_DEVICE] - 1;
    }
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// Beside ZeRO stages 2 and 3, with few micro-batches, gradients of weights that come
// later are worth more than they cost: the schedule is one of those, and no other is as
// fast.
static void test_weights_later(void **state) {
    enum { ORDER = 1u << TR_DIMENSION_pipeline_order };
    static const struct {
        tr_pipeline_order order;
        int64_t each;
    } others[] = {{TR_PIPELINE_1F1B, 1},
                  {TR_PIPELINE_INTERLEAVED, 2},
                  {TR_PIPELINE_BREADTH_FIRST, 1},
                  {TR_PIPELINE_BREADTH_FIRST, 2}};
    (void)state;
    tr_model *model = wide_model_of(4, 64); // of units that weigh alike
    tr_machine *fast = machine_with(1e11, 1e-8);
    for (int64_t each = 1; each <= 2; each++) {
        for (int stage = 2; stage <= 3; stage++) {
            tr_planner_request request = request_of(model, fast, 2 * BATCH, ORDER);
            request.plan.mesh = (tr_mesh){.size = {2, 1, 2}};
            request.plan.accumulation_steps = BATCH;
            request.plan.stage = stage;
            request.plan.virtual_stages = each;
            tr_planner_option choice = choice_of(&request);
            assert_int_equal(choice.value[TR_DIMENSION_pipeline_order],
                             each > 1 ? TR_PIPELINE_V : TR_PIPELINE_ZERO_BUBBLE);
            request.free = 0;
            for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
                request.plan.pipeline_order = others[i].order;
                request.plan.virtual_stages = others[i].each;
                assert_true(choice_of(&request).seconds > choice.seconds ||
                            others[i].each != each);
            }
        }
    }
    tr_machine_close(fast);
    tr_model_destroy(model);
}

// Seconds of the point's step, of a plan in full.
static double in_full(const tr_planner_request *request, const tr_point *point) {
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    if (tr_plan_make(&point->plan, &plan, &err) != TR_OK ||
        tr_simulate(plan, request->machine, &simulated, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    double seconds = tr_simulated_result(simulated)->seconds;
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    return seconds;
}

// Of many micro-batches a few tell what all take.
static void test_long(void **state) {
    static const int64_t orders[] = {TR_PIPELINE_1F1B, TR_PIPELINE_INTERLEAVED};
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request = request_of(model, slow, 1000, TEST_MESH);
    tr_search *search = NULL;
    tr_error err = {0};
    assert_int_equal(tr__search_begin(&request, request.free, &search, &err), TR_OK);
    for (int i = 0; i < 2; i++) {
        tr_point point = tr__planner_start(&request);
        tr_made made;
        tr__plan_settings[TR_DIMENSION_pipeline_stages].set(&point, 2);
        tr__plan_settings[TR_DIMENSION_pipeline_order].set(&point, orders[i]);
        tr__plan_settings[TR_DIMENSION_virtual_stages].set(&point, i + 1);
        int64_t before = search->steps;
        assert_int_equal(tr__search_make(search, &point, NULL, &made, &err), TR_OK);
        assert_true(made.possible && search->steps - before < 2000);
        double seconds = in_full(&request, &point);
        assert_true(fabs(made.option.seconds / seconds - 1) < 1e-3);
    }
    tr__search_end(search);
    tr_machine_close(slow);
    tr_model_destroy(model);
}

// An earlier choice is taken again by as many ranks, and not by others.
static void test_kept(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *slow = machine_with(1e8, 1e-5);
    tr_planner_request request = request_of(model, slow, 16, TEST_MESH | MICRO_BATCH);
    const int64_t kept[] = {2, 2, TR_PIPELINE_1F1B, 1, 2};
    tr_planned *planned = NULL;
    tr_error err = {0};
    request.has_kept = true;
    memcpy(request.kept, kept, sizeof kept);
    assert_int_equal(tr_planner_choose(&request, &planned, &err), TR_OK);
    assert_true(tr_planned_is_kept(planned));
    const tr_mesh *mesh = &tr_planned_request(planned)->mesh;
    assert_int_equal(mesh->size[TR_AXIS_DATA], 1);
    assert_int_equal(mesh->size[TR_AXIS_TENSOR], 2);
    assert_int_equal(mesh->size[TR_AXIS_PIPELINE], 2);
    assert_int_equal(tr_planned_request(planned)->accumulation_steps, 8);
    tr_planned_destroy(planned);
    request.plan.mesh = tr_mesh_of_data(3, 0);
    assert_int_equal(tr_planner_choose(&request, &planned, &err), TR_OK);
    assert_false(tr_planned_is_kept(planned));
    assert_int_equal(tr_mesh_ranks(&tr_planned_request(planned)->mesh), 3);
    tr_planned_destroy(planned);
    tr_machine_close(slow);
    tr_model_destroy(model);
}

int main(void) {
    // As test_exhaustive.c: a sanitizer sees all in these.
    const struct CMUnitTest few[] = {cmocka_unit_test(test_links),
                                     cmocka_unit_test(test_kept)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),        cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_pairs),         cmocka_unit_test(test_long_pipelines),
        cmocka_unit_test(test_links),         cmocka_unit_test(test_memory),
        cmocka_unit_test(test_by_hand),       cmocka_unit_test(test_kept),
        cmocka_unit_test(test_long),          cmocka_unit_test(test_alternating),
        cmocka_unit_test(test_weights_later),
    };
    return TEST_SANITIZED ? cmocka_run_group_tests(few, NULL, NULL)
                          : cmocka_run_group_tests(tests, NULL, NULL);
}
