// Requests drawn at random, of meshes and schedules: what is said of a plan without
// making it is never more than it takes, and the choice is that of a search through
// all.
#include "draws.h"
#include "models/models.h"
#include "plan/draw.h"
#include "planner/all_plans.h"
#include "planner/check_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// Each is of some ten to a hundred plans. Of some the choice is tried, too.
enum { REQUESTS = TEST_DRAWS(200, 5), CHOSEN = 8 };

// Layers of 16 or 64, of which tied words may weigh more than all others.
static tr_model *draw_model(draws *d) {
    int64_t width = one_in(d, 2) ? 16 : 64;
    tr_gpt2_config config = {.n_layer = 2 + draw(d, 6),
                             .n_embd = width,
                             .n_head = 4,
                             .n_positions = 4 + draw(d, 8),
                             .vocab_size = one_in(d, 2) ? 40 : 1000,
                             .n_inner = 4 * width,
                             .gelu_tanh = true,
                             .layer_norm_epsilon = 1e-5,
                             .initializer_range = 0.02,
                             .resid_pdrop = one_in(d, 3) ? 0.1F : 0};
    tr_model *model = NULL;
    assert_int_equal(tr__model_gpt2(&config, &model, NULL), TR_OK);
    return model;
}

// With links that cost much, little, or what they cost by their latency.
static tr_machine *draw_machine(draws *d) {
    static const double rates[] = {1e7, 1e8, 1e10}, latencies[] = {1e-7, 1e-5, 1e-3};
    tr_machine *machine = NULL;
    tr_error err = {0};
    char text[1024];
    double rate = rates[draw(d, 3)], latency = latencies[draw(d, 3)];
    double memory = one_in(d, 2) ? 1e9 : 1e8;
    snprintf(text, sizeof text,
             "{\"name\": \"drawn\", \"ranks_per_node\": %d,"
             " \"compute\": {\"flops\": 1e9, \"bytes\": %g, \"launch\": %g},"
             " \"host\": {\"bytes\": 5e8}, \"copy\": {\"interference\": 0.2,"
             "  \"to_device\": {\"bytes\": 2e8, \"latency\": 1e-5},"
             "  \"to_host\": {\"bytes\": 2e8, \"latency\": 1e-5}},"
             " \"link\": {\"interference\": %g, \"inside\": {\"bytes\": %g, "
             "\"latency\": %g}, \"between\": {\"bytes\": %g, \"latency\": %g}}}",
             one_in(d, 2) ? 2 : 8, memory, one_in(d, 2) ? 1e-5 : 0,
             one_in(d, 2) ? 0 : 0.3, rate, latency, rate / 2, latency);
    if (tr__machine_parse("drawn", text, &machine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return machine;
}

static tr_planner_request draw_request(draws *d, const tr_model *model,
                                       const tr_machine *machine) {
    static const int64_t ranks_of[] = {2, 4, 4, 6, 8};
    int64_t ranks = ranks_of[draw(d, 5)], batch = 1 + draw(d, 12);
    tr_planner_request request = test_planner_request(model, machine, batch, ranks);
    tr_plan_request *r = &request.plan;
    r->micro_batch = 1 + draw(d, 2);
    r->accumulation_steps =
        (batch + ranks * r->micro_batch - 1) / (ranks * r->micro_batch);
    r->stage = (int)draw(d, 4);
    r->wave = one_in(d, 3) ? 1 + draw(d, 3) : 0;
    r->reproducible = one_in(d, 6);
    r->sequence_parallel = one_in(d, 3);
    r->recomputed_units = one_in(d, 3) ? draw(d, 4) : 0;
    r->boundary_placement = one_in(d, 6) ? TR_SPACE_HOST : TR_SPACE_DEVICE;
    request.free = TEST_MESH;
    request.free |= one_in(d, 3) ? 1u << TR_DIMENSION_micro_batch : 0;
    request.free |= one_in(d, 3) ? 1u << TR_DIMENSION_recomputed_units : 0;
    request.free |= one_in(d, 6) ? 1u << TR_DIMENSION_wave : 0;
    request.budget[TR_SPACE_HOST] = TR_UNLIMITED;
    return request;
}

static void test_drawn(void **state) {
    (void)state;
    const char *only = getenv("TR_REQUEST"); // one alone
    uint64_t first = only ? strtoull(only, NULL, 10) : 0;
    uint64_t end = only ? first + 1 : REQUESTS;
    for (uint64_t i = first; i < end; i++) {
        draws d = {.request = i};
        tr_model *model = draw_model(&d);
        tr_machine *machine = draw_machine(&d);
        tr_planner_request request = draw_request(&d, model, machine);
        printf("request %llu: ", (unsigned long long)i);
        bool possible = test_check_bounds(&request);
        if (possible && i % CHOSEN == 0) {
            test_check_budgets(request);
        }
        printf("good\n");
        tr_machine_close(machine);
        tr_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
