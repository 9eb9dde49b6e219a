// Run on two, four or eight ranks: a tensor that units on several stages of a pipeline
// use, which need not follow each other. In reproducible mode neither stages nor
// schedules change a bit of what one rank trains, or of its checkpoint. And the noise
// scale counts such tensors as one rank does.
#include "on_meshes.h"
#include "on_ranks.h"
#include "plan/models.h"
#include "train/noise_by_hand.h"
#include "train/scratch.h"
#include "train/stored.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512 };

// ---- runs

#define REPRODUCIBLE(more)                                                             \
    ", \"execution\": {\"threads\": 1, \"reproducible\": true" more "}"
#define LAMB                                                                           \
    ", \"gradient_clipping\": 0.5, \"optimizer\": {\"type\": \"Lamb\", \"params\": "   \
    "{\"lr\": 0.01, \"eps\": 1e-6}}"

static void write_own(char text[TEXT_MAX], int64_t stages, const char *out,
                      const char *more, const char *cut) {
    int used = snprintf(
        text, TEXT_MAX,
        "{\"steps\": 9, \"data\": {\"order\": \"sequential\"}, \"train_batch_size\": "
        "%d, \"train_micro_batch_size_per_gpu\": 1, \"pipeline\": {\"stages\": %d%s}, "
        "\"out\": \"%s\"%s%s}",
        BATCH, (int)stages, schedule, out, more, cut);
    assert_true(used > 0 && used < TEXT_MAX);
}

static run_options own_options(const char *text, const samples *data, tr_comm *ranks) {
    run_options options = options_of(text, data, ranks, "never");
    options.own_model = &test_model_tied;
    return options;
}

static void shared_path(void *const *state, const char *name, char path[PATH_BYTES]) {
    tr_error err = {0};
    snprintf(path, PATH_BYTES, "%s", scratch_path(state, name));
    trial_ok(tr__comm_broadcast(world, 0, path, PATH_BYTES, &err), &err);
}

// ---- bits

// Its stages; `between`: a rank of a stage between its users does not have it.
static void check_stages(const samples *data, int64_t stages, int64_t users) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    write_own(text, stages, "unused", ADAM, ONE_THREAD);
    run_options options = own_options(text, data, world);
    trial_ok(run_open(&options, &run, &err), &err);
    trial_ok(tr_run_make_plan(run, &plan, &err), &err);
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        if (flat->tied) {
            assert_int_equal(tr__stages_with(&flat->axes), users);
            assert_int_equal(
                flat->count > 0,
                tr__stage_has(&flat->axes, plan->request.mesh.at[TR_AXIS_PIPELINE]));
        }
    }
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

typedef struct way {
    int64_t stages;
    const char *schedule, *more, *cut;
} way;

static void try_way(void *const *state, const way *w, const samples *data) {
    char text[TEXT_MAX], here[PATH_BYTES], there[PATH_MAX], mine[PATH_MAX];
    tr_error err = {0};
    outcome one, many;
    const char *alone_in = scratch_path(state, "alone");
    schedule = "";
    write_own(text, 1, alone_in, w->more, REPRODUCIBLE(""));
    run_options options = own_options(text, data, NULL);
    take_steps(&options, STEPS, true, &one);
    schedule = w->schedule;
    shared_path(state, "ranks", here);
    write_own(text, w->stages, here, w->more, w->cut);
    options = own_options(text, data, world);
    take_steps(&options, STEPS, true, &many);
    assert_memory_equal(one.loss, many.loss, sizeof one.loss);
    snapshot_assert_same(&one.end, &many.end);
    stored_latest(alone_in, mine);
    stored_latest(here, there);
    stored_assert_same(mine, there, "model.safetensors");
    stored_assert_same(mine, there, "optimizer.safetensors");
    schedule = "";
    free_outcome(&one);
    free_outcome(&many);
    trial_ok(tr__comm_barrier(world, &err), &err);
}

#define SCHEDULE(name, each) ", \"schedule\": \"" name "\", \"virtual_stages\": " #each

static const way ways[] = {
    {4, "", ADAM, REPRODUCIBLE("")},
    {4, "", LAMB, REPRODUCIBLE("") ZERO_ALONE(3)},
    {4, SCHEDULE("interleaved", 2), ADAM, REPRODUCIBLE(", \"wave\": 2") ZERO_ALONE(2)},
    {4, SCHEDULE("zero_bubble", 1), LAMB, REPRODUCIBLE("") ZERO_ALONE(1)},
    {4, SCHEDULE("v", 2), ADAM, REPRODUCIBLE("") ZERO_ALONE(3)},
    {4, SCHEDULE("breadth_first", 1), ADAM,
     REPRODUCIBLE("") ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "
                      "{\"device\": \"cpu\"}}"},
    {2, SCHEDULE("interleaved", 4), LAMB, REPRODUCIBLE("") RECOMPUTED},
};

static void stages_change_no_bit(void **state) {
    samples data;
    int ranks = tr_comm_ranks(world);
    samples_features(&data, STEPS * BATCH, TEST_TIED_FEATURES, TEST_TIED_CLASSES, 7);
    check_stages(&data, ranks < 4 ? 2 : 4, ranks < 4 ? 2 : 3);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        way w = ways[i];
        w.stages = w.stages < ranks ? w.stages : ranks;
        try_way(state, &w, &data);
    }
    samples_free(&data);
}

// ---- the noise scale

#define MEASURED ", \"noise_scale\": {\"measure\": true}"

// Of one rank, whose parts of the batch are the same. (Of two stages one has two users,
// through which other schedules take other waves first.)
static void noise_is_that_of_one_rank(void **state) {
    static const way cuts[] = {
        {8, "", ADAM MEASURED, ONE_THREAD},
        {8, SCHEDULE("zero_bubble", 1), ADAM MEASURED, ONE_THREAD},
        {8, SCHEDULE("breadth_first", 1), ADAM MEASURED, ONE_THREAD RECOMPUTED},
    };
    samples data;
    char text[TEXT_MAX];
    trial t;
    tr_step_result one = TR_STEP_RESULT_INIT, many = TR_STEP_RESULT_INIT;
    (void)state;
    samples_features(&data, STEPS * BATCH, TEST_TIED_FEATURES, TEST_TIED_CLASSES, 7);
    write_own(text, 1, "unused", ADAM MEASURED, ONE_THREAD);
    run_options options = own_options(text, &data, NULL);
    trial_open(&t, &options);
    trial_steps(&t, 1, &one);
    trial_close(&t);
    size_t count = tr_comm_ranks(world) > 2 ? sizeof cuts / sizeof *cuts : 1;
    for (size_t i = 0; i < count; i++) {
        schedule = cuts[i].schedule;
        write_own(text, tr_comm_ranks(world), "unused", cuts[i].more, cuts[i].cut);
        options = own_options(text, &data, world);
        trial_open(&t, &options);
        assert_true(t.plan->micro_norms_tied);
        trial_steps(&t, 1, &many);
        noise_assert(&many, one.noise_trace, one.noise_gradient, text);
        trial_close(&t);
    }
    schedule = "";
    samples_free(&data);
}

// GPT-2's embedding is its head: on the first stage and on the last.
static void noise_is_that_of_the_parts(void **state) {
    static const char *const homes[] = {"", SCHEDULE("zero_bubble", 1)};
    int64_t ranks = tr_comm_ranks(world);
    samples data;
    (void)state;
    samples_tokens(&data, 24, 8, 31, 5);
    for (int i = 0; i < 8; i++) {
        int64_t stages = i / 4 == 0 ? ranks : ranks / 2, wave = 1 + i / 2 % 2;
        int zero = wave == 1 ? 1 : 3;
        char text[NOISE_TEXT_MAX], execution[64], more[256];
        double trace, square;
        tr_step_result r = TR_STEP_RESULT_INIT;
        trial t;
        if (stages > 4 || stages < 2) {
            continue;
        }
        const noise_cut cut = {ranks / stages, 14, 2, wave};
        snprintf(execution, sizeof execution, ", \"wave\": %d", (int)wave);
        snprintf(more, sizeof more,
                 ", \"pipeline\": {\"stages\": %d%s}, \"zero_optimization\": "
                 "{\"stage\": %d}",
                 (int)stages, homes[i % 2], zero);
        noise_by_hand(&data, &cut, &trace, &square);
        noise_run(text, cut.batch, cut.micro, execution, more);
        run_options options = {
            .text = text, .own_train = data.dataset, .comm = world, .resume = "never"};
        trial_open(&t, &options);
        trial_steps(&t, 1, &r);
        noise_assert(&r, trace, square, text);
        trial_close(&t);
    }
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stages_change_no_bit, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(noise_is_that_of_one_rank),
        cmocka_unit_test(noise_is_that_of_the_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}
