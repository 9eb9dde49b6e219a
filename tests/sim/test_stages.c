// Stages of a pipeline that are walked together: schedules worked out by hand, and what
// must hold for all of them.
#include "sim/helper.h"
#include "sim/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double nearly = 1e-9;

static tr_plan_request staged(const tr_model *model, int64_t stages, int64_t micros) {
    tr_plan_request request = test_request(model, 1, micros);
    request.mesh.size[TR_AXIS_PIPELINE] = stages;
    return request;
}

// Only arithmetic takes time.
static tr_machine *arithmetic(const char *more) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"name\": \"arithmetic\", \"ranks_per_node\": 64, \"compute\": "
             "{\"flops\": 1e9, \"bytes\": 1e30}, \"link\": {\"exchange\": \"nccl\", "
             "\"inside\": {\"bytes\": 1e30}}%s}",
             more);
    return test_machine(text);
}

static void assert_adds_up(const tr_simulated *s) {
    const tr_simulation *r = tr_simulated_result(s);
    for (size_t i = 0; i < s->stage_count; i++) {
        const tr_stage_figures *f = &s->stages[i];
        assert_near(f->step, r->seconds, 0);
        assert_near(f->idle, f->messages + f->slower + f->bubble, nearly * f->step);
    }
    assert_near(r->seconds,
                r->compute_seconds + r->slowed_seconds + r->exposed_seconds +
                    r->slower_seconds + r->bubble_seconds,
                nearly * r->seconds);
}

// ---- by hand

// Of equal stages, each waits for p - 1 of the turns that it has m of (Narayanan et
// al., arXiv 2104.04473, section 2.2.1).
static void test_equal_stages(void **state) {
    (void)state;
    static const int64_t stages[] = {2, 4, 8}, micros[] = {8, 16, 64};
    tr_model *model = test_model_deep_gpt2(32);
    tr_machine *machine = arithmetic("");
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            double p = (double)stages[i], m = (double)micros[k];
            tr_plan_request request = staged(model, stages[i], micros[k]);
            tr_plan *plan = test_plan(&request);
            tr_simulated *simulated = test_simulate(plan, machine);
            const tr_simulation *r = tr_simulated_result(simulated);
            double turns = r->seconds - r->update_seconds;
            double share = (p - 1) / (m + p - 1), ideal = (p - 1) / m;
            assert_int_equal(simulated->stage_count, stages[i]);
            for (int64_t s = 0; s < stages[i]; s++) {
                assert_near(simulated->stages[s].bubble / turns, share, 0.1 * share);
            }
            assert_near(r->bubble_seconds / (r->compute_seconds - r->update_seconds),
                        ideal, 0.1 * ideal);
            assert_adds_up(simulated);
            tr_simulated_destroy(simulated);
            tr_plan_destroy(plan);
        }
    }
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// The slowest stage takes one micro-batch after the other. What others take is added
// once at most, before its first and behind its last: it goes on with further forwards
// meanwhile.
static void test_unequal_stages(void **state) {
    (void)state;
    tr_model *model = test_model_deep_gpt2(7);
    tr_machine *machine = arithmetic("");
    tr_plan_request request = staged(model, 3, 20);
    tr_plan *plan = test_plan(&request);
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    double slowest = 0, sum = 0;
    for (size_t i = 0; i < 3; i++) {
        double turns = simulated->stages[i].computing - simulated->stages[i].update;
        slowest = turns > slowest ? turns : slowest;
        sum += turns;
    }
    assert_true(slowest > 1.2 * sum / 3);
    double most = slowest + (sum - slowest) / 20;
    assert_true(most < 1.1 * slowest);
    assert_true(r->seconds - r->update_seconds > slowest);
    assert_true(r->seconds - r->update_seconds < most);
    assert_adds_up(simulated);
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static tr_simulated *three_layers(tr_plan **plan, tr_machine **machine,
                                  const char *link) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = staged(model, 3, 1);
    *plan = test_plan(&request);
    *machine = test_clockwork(link);
    tr_simulated *simulated = test_simulate(*plan, *machine);
    tr_model_destroy(model);
    return simulated;
}

// A layer on each stage, one micro-batch. Clear to 1, forward to 2; forward to 3; the
// last layer's has the loss, its backward ends at 4, the next at 7, the first's at 9.
// Norm to 10, update to 11. With 2 s for a message, four lie between these, and the
// record of three ranks takes two times as long: 23 s.
static void test_latency(void **state) {
    (void)state;
    tr_plan *plan;
    tr_machine *machine;
    tr_simulated *simulated =
        three_layers(&plan, &machine,
                     ", \"link\": {\"exchange\": \"nccl\", \"inside\": {\"bytes\": "
                     "1e30, \"latency\": 0}}");
    assert_near(tr_simulated_result(simulated)->seconds, 12, nearly);
    assert_near(tr_simulated_result(simulated)->exposed_seconds, 0, nearly);
    assert_adds_up(simulated);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);

    simulated = three_layers(&plan, &machine, TEST_LINK);
    assert_near(tr_simulated_result(simulated)->seconds, 24, nearly);
    // What the first stage sends is under way to 4, what it gets back from 13 to 15,
    // the record to 23.
    assert_near(simulated->stages[0].messages, 2 + 2 + 4, nearly);
    assert_near(simulated->stages[0].bubble, 13 - 4, nearly);
    assert_adds_up(simulated);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
}

// So many messages follow each other in a step of the tied model, one micro-batch on
// four stages: by so many seconds it takes longer, where each takes one second more.
static double messages_in_row(const char *const *frozen, size_t count) {
    double seconds[2];
    for (int latency = 0; latency < 2; latency++) {
        char link[128];
        snprintf(link, sizeof link,
                 ", \"link\": {\"exchange\": \"nccl\", \"inside\": {\"bytes\": 1e30, "
                 "\"latency\": %d}}",
                 1000 + latency);
        tr_machine *machine = test_clockwork(link);
        tr_plan_request request = staged(&test_model_tied, 4, 1);
        request.frozen = frozen;
        request.frozen_count = count;
        tr_plan *plan = test_plan(&request);
        tr_simulated *simulated = test_simulate(plan, machine);
        seconds[latency] = tr_simulated_result(simulated)->seconds;
        assert_adds_up(simulated);
        tr_simulated_destroy(simulated);
        tr_plan_destroy(plan);
        tr_machine_close(machine);
    }
    return seconds[1] - seconds[0];
}

// A tensor is on three of four stages. What the last has of its gradient goes to the
// third while that of its input goes on to the second and the first. Then the first
// sums with the third, there and back, and the last waits for all of it.
static void test_chain(void **state) {
    static const char *const frozen[] = {"shared.weight"};
    (void)state;
    double without = messages_in_row(frozen, 1), with = messages_in_row(NULL, 0);
    assert_near(with - without, 3, nearly);
}

// In two passes each stage takes longer, and what it does adds up.
static void test_two_passes(void **state) {
    enum { MICROS = 8 };
    (void)state;
    tr_model *model = test_model_pairs(0, MICROS);
    tr_machine *machine = test_clockwork(TEST_LINK);
    double seconds[2];
    for (int passes = 1; passes <= 2; passes++) {
        tr_plan_request request = staged(model, 2, MICROS);
        request.passes = passes;
        tr_plan *plan = test_plan(&request);
        tr_simulated *simulated = test_simulate(plan, machine);
        seconds[passes - 1] = tr_simulated_result(simulated)->seconds;
        assert_adds_up(simulated);
        tr_simulated_destroy(simulated);
        tr_plan_destroy(plan);
    }
    assert_true(seconds[1] > seconds[0]);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// ---- ranks that differ

// Where kernels take now longer, now less, stages wait for each other's slower ones,
// and the more data ranks there are, the longer for these.
static void test_spread(void **state) {
    (void)state;
    tr_model *model = test_model_deep_gpt2(8);
    tr_machine *even = arithmetic(""),
               *varied = arithmetic(", \"reached\": {\"spread\": 0.1}");
    double before = 0;
    for (int64_t ranks = 1; ranks <= 4; ranks *= 2) {
        tr_plan_request request = staged(model, 4, 16);
        request.mesh.size[TR_AXIS_DATA] = ranks;
        request.train_batch_size *= ranks;
        tr_plan *plan = test_plan(&request);
        tr_simulated *a = test_simulate(plan, even), *b = test_simulate(plan, varied);
        const tr_simulation *without = tr_simulated_result(a),
                            *with = tr_simulated_result(b);
        assert_near(without->slower_seconds, 0, 0);
        assert_true(with->slower_seconds > 0);
        assert_true(with->seconds > without->seconds);
        assert_true(with->seconds < 1.3 * without->seconds);
        assert_true(with->seconds > before);
        assert_near(with->compute_seconds, without->compute_seconds, nearly);
        assert_adds_up(a);
        assert_adds_up(b);
        before = with->seconds;
        tr_simulated_destroy(a);
        tr_simulated_destroy(b);
        tr_plan_destroy(plan);
    }
    tr_machine_close(even);
    tr_machine_close(varied);
    tr_model_destroy(model);
}

// ---- evaluations

enum { STAGES_MOST = 4 };

// The share of an evaluation's time in which stages wait for each other.
static double share_waited(tr_plan_request request, const tr_machine *machine,
                           int64_t *micros) {
    int64_t stages = request.mesh.size[TR_AXIS_PIPELINE];
    tr_sim_walk *walks = calloc((size_t)stages, sizeof *walks);
    tr_tape tapes[STAGES_MOST];
    tr_error err = {0};
    double end = 0, waited = 0;
    for (int64_t s = 0; s < stages; s++) {
        request.mesh.at[TR_AXIS_PIPELINE] = s;
        tr_plan *plan = test_plan(&request);
        *micros = plan->evaluated;
        assert_int_equal(tr__tape_make(plan, (tr_tape_part){TR_SEQUENCE_EVALUATE, 0},
                                       machine, &tapes[s], &err),
                         TR_OK);
        tr__walk_begin(&walks[s], &tapes[s], false);
        tr_plan_destroy(plan);
    }
    assert_int_equal(tr__walk_stages(walks, (size_t)stages, &err), TR_OK);
    for (int64_t s = 0; s < stages; s++) {
        end = walks[s].now > end ? walks[s].now : end;
    }
    for (int64_t s = 0; s < stages; s++) {
        waited += walks[s].result.bubble_seconds + end - walks[s].now;
        tr__walk_clear(&walks[s]);
        tr__tape_clear(&tapes[s]);
    }
    free(walks);
    return waited / end / (double)stages;
}

// N micro-batches that go through v parts of each of p stages: a stage waits for p - 1
// turns beside its v N. Parts that go there and back make a wave wait for the last one,
// too.
static void test_evaluations(void **state) {
    (void)state;
    static const struct {
        tr_pipeline_order order;
        int64_t each, back;
    } all[] = {{TR_PIPELINE_1F1B, 1, 1},
               {TR_PIPELINE_INTERLEAVED, 2, 1},
               {TR_PIPELINE_INTERLEAVED, 4, 1},
               {TR_PIPELINE_BREADTH_FIRST, 4, 1},
               {TR_PIPELINE_V, 2, 2}};
    tr_model *model = test_model_deep_gpt2(32);
    tr_machine *machine = arithmetic("");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int64_t stages = 2; stages <= STAGES_MOST; stages *= 2) {
            tr_plan_request request = staged(model, stages, stages);
            int64_t micros = 0;
            request.pipeline_order = all[i].order;
            request.virtual_stages = all[i].each;
            double share = share_waited(request, machine, &micros);
            double waits = (double)(all[i].back * (stages - 1));
            double wanted = waits / ((double)(all[i].each * micros) + waits);
            assert_true(micros >= stages);
            assert_near(share, wanted, 0.15 * wanted);
        }
    }
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// ---- what cannot end

// The steps of the tape that exchange with another stage.
static size_t find_meetings(const tr_tape *tape, size_t *at, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < tape->count && count < most; i++) {
        if (tape->works[tape->steps[i].work].meets) {
            at[count++] = i;
        }
    }
    return count;
}

// What a stage sends for two micro-batches changes places: the other one waits for the
// first of them.
static void test_circle(void **state) {
    (void)state;
    enum { STAGES = 2 };
    tr_model *model = test_model_mlp();
    tr_machine *machine = test_clockwork(TEST_LINK);
    tr_plan_request request = staged(model, STAGES, 2);
    tr_tape tapes[STAGES];
    tr_sim_walk *walks = calloc(STAGES, sizeof *walks);
    tr_plan *plans[STAGES];
    tr_error err = {0};
    size_t at[2];
    for (int64_t s = 0; s < STAGES; s++) {
        request.mesh.at[TR_AXIS_PIPELINE] = s;
        plans[s] = test_plan(&request);
        assert_int_equal(tr__tape_make(plans[s], (tr_tape_part){TR_SEQUENCE_TRAIN, 0},
                                       machine, &tapes[s], &err),
                         TR_OK);
    }
    for (int spoilt = 0; spoilt < 2; spoilt++) {
        for (size_t s = 0; s < STAGES; s++) {
            tr__walk_begin(&walks[s], &tapes[s], false);
        }
        err = (tr_error){0};
        tr_status status = tr__walk_stages(walks, STAGES, &err);
        assert_int_equal(status, spoilt ? TR_INTERNAL : TR_OK);
        assert_true(!spoilt || strstr(err.message, "for ever: stage 0"));
        assert_int_equal(find_meetings(&tapes[0], at, 2), 2);
        int32_t sent = tapes[0].steps[at[0]].work;
        tapes[0].steps[at[0]].work = tapes[0].steps[at[1]].work;
        tapes[0].steps[at[1]].work = sent;
    }
    for (size_t s = 0; s < STAGES; s++) {
        tr__tape_clear(&tapes[s]);
        tr_plan_destroy(plans[s]);
    }
    free(walks);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_stages), cmocka_unit_test(test_unequal_stages),
        cmocka_unit_test(test_latency),      cmocka_unit_test(test_spread),
        cmocka_unit_test(test_chain),        cmocka_unit_test(test_two_passes),
        cmocka_unit_test(test_circle),       cmocka_unit_test(test_evaluations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
