#include "planner/all_plans.h"

#include "models/models.h"
#include "plan/schedules/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(const tr_planner_request *request, const tr_point *point,
                test_plans *plans) {
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    bool untried = (request->free >> TR_DIMENSION_recomputed_units & 1) &&
                   tr__weights_come_later(&point->plan) &&
                   point->plan.recomputed_units > 0; // tr__group_rungs says why
    if (untried) {
        return;
    }
    if (request->sliced) {
        tr__model_slice(request->sliced, (int)point->slices, &err);
    }
    if (tr_plan_make(&point->plan, &plan, &err) == TR_OK &&
        tr_simulate(plan, request->machine, &simulated, &err) == TR_OK) {
        tr_planner_option *option = &plans->all[plans->count++];
        assert_true(plans->count < TEST_PLANS_MAX);
        tr__point_values(point, option->value);
        // Of the stage that takes most.
        const tr_simulation *result = tr_simulated_result(simulated);
        option->seconds = result->seconds;
        memcpy(option->bytes, result->planned_bytes, sizeof option->bytes);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
}

static void add_from(const tr_planner_request *request, int d, const tr_point *point,
                     test_plans *plans) {
    int64_t *values = calloc(TR_VALUES_MAX, sizeof *values);
    if (d == TR_DIMENSIONS) {
        add(request, point, plans);
        free(values);
        return;
    }
    size_t count = tr__dimension_values(request, (tr_dimension_name)d, point, values);
    for (size_t i = 0; i < count; i++) {
        tr_point next = *point;
        tr__plan_settings[d].set(&next, values[i]);
        add_from(request, d + 1, &next, plans);
    }
    free(values);
}

test_plans test_all_plans(const tr_planner_request *request) {
    test_plans plans = {.all = calloc(TEST_PLANS_MAX, sizeof *plans.all)};
    tr_planner_request own = *request;
    tr_error err = {0};
    tr_point start = tr__planner_start(request);
    assert_int_equal(tr__planner_find_recompute_choices(&own, &err), TR_OK);
    add_from(&own, 0, &start, &plans);
    assert_true(plans.count > 0);
    return plans;
}

void test_plans_free(test_plans *plans) {
    free(plans->all);
}

static bool fits(const tr_limits *limits, const tr_planner_option *option) {
    int64_t excess[TR_BUDGETS];
    return tr__limits_excess(limits, option->bytes, excess) == 0;
}

const tr_planner_option *test_fastest(const test_plans *plans,
                                      const tr_limits *limits) {
    const tr_planner_option *best = NULL;
    for (size_t i = 0; i < plans->count; i++) {
        const tr_planner_option *option = &plans->all[i];
        if (fits(limits, option) && (!best || option->seconds < best->seconds)) {
            best = option;
        }
    }
    return best;
}

int64_t test_smallest_device(const test_plans *plans, const tr_limits *limits) {
    tr_limits others = *limits;
    int64_t least = INT64_MAX;
    others.most[TR_SPACE_DEVICE] = TR_UNLIMITED;
    for (size_t i = 0; i < plans->count; i++) {
        int64_t bytes = plans->all[i].bytes[TR_SPACE_DEVICE];
        if (fits(&others, &plans->all[i]) && bytes < least) {
            least = bytes;
        }
    }
    return least;
}

tr_model *test_model_of_four(void) {
    tr_gpt2_config config = {.n_layer = 4,
                             .n_embd = 16,
                             .n_head = 2,
                             .n_positions = 8,
                             .vocab_size = 40,
                             .n_inner = 64,
                             .gelu_tanh = true,
                             .layer_norm_epsilon = 1e-5,
                             .initializer_range = 0.02};
    tr_model *model = NULL;
    tr_error err = {0};
    assert_int_equal(tr__model_gpt2(&config, &model, &err), TR_OK);
    return model;
}

tr_machine *test_slow_machine(void) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    static const char text[] =
        "{\"name\": \"slow\", \"ranks_per_node\": 2,"
        " \"compute\": {\"flops\": 1e9, \"bytes\": 1e9, \"launch\": 1e-5},"
        " \"host\": {\"bytes\": 5e8},"
        " \"link\": {\"interference\": 0.3, \"inside\": {\"bytes\": 1e8, \"latency\": "
        "1e-5}},"
        " \"copy\": {\"interference\": 0.2,"
        "  \"to_device\": {\"bytes\": 2e8, \"latency\": 1e-5},"
        "  \"to_host\": {\"bytes\": 2e8, \"latency\": 1e-5}},"
        " \"nvme\": {\"interference\": 0.1,"
        "  \"read\": {\"bytes\": 1e8, \"latency\": 1e-4},"
        "  \"write\": {\"bytes\": 5e7, \"latency\": 1e-4}}}";
    if (tr__machine_parse("slow", text, &machine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return machine;
}

tr_planner_request test_planner_request(const tr_model *model,
                                        const tr_machine *machine, int64_t batch,
                                        int64_t ranks) {
    return (tr_planner_request){
        .plan = {.model = model,
                 .train_batch_size = batch,
                 .micro_batch = batch / ranks,
                 .accumulation_steps = 1,
                 .mesh = tr_mesh_of_data(ranks, 0),
                 .optimizer_states = 2,
                 .threads = 1},
        .free = ((1u << TR_DIMENSIONS) - 1) & ~TEST_MESH,
        .machine = machine,
        .budget = {TR_UNLIMITED, TR_UNLIMITED, 0},
        .together = TR_UNLIMITED,
        .vocabulary_slices = 1,
    };
}
