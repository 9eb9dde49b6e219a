// Run on W ranks: a residual network whose batch norm has the statistics of the whole
// effective batch does not see how many ranks there are or how the batch was cut, in
// reproducible mode to the last bit, and its checkpoints carry the same states for any
// W. With those of each rank's part it is one process with micro-batches as large as
// these parts.

#include "comm/comm.h"
#include "draws.h"
#include "on_ranks.h"
#include "train/scratch.h"
#include "train/stored.h"
#include "train/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 64, TEXT_MAX = 2048, PATH_BYTES = 512 };
enum { STEPS = TEST_DRAWS(5, 3) }; // the third batch is ragged

static const char weights[] = "model.safetensors";

static tr_comm *comm;

typedef struct cut {
    int micro, stage, recomputed;
    const char *statistics; // NULL: the default
    bool reproducible, half;
} cut;

// 181 samples: the third batch is ragged in any case.
static void open_trial(const cut *c, const char *out, bool alone, const char *resume,
                       trial *t) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"resnet\", \"depth\": 20, \"width\": 4, "
             "\"image_size\": 8, \"num_labels\": 5, \"batch_norm\": \"%s\"}, "
             "\"data\": {\"format\": "
             "\"random\", \"samples\": 181, \"features\": 192, \"classes\": 5}, "
             "\"steps\": %d, \"seed\": 5, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"threads\": 1, "
             "\"reproducible\": %s}, "
             "\"zero_optimization\": {\"stage\": %d}, \"activation_checkpointing\": "
             "{\"number_checkpoints\": %d}, \"gradient_clipping\": 0, \"optimizer\": "
             "{\"type\": \"SGD\", \"params\": {\"lr\": 0.02, \"momentum\": 0.9}}, "
             "\"bf16\": {\"enabled\": %s}, \"out\": \"%s\"}",
             c->statistics ? c->statistics : "effective_batch", STEPS, T, c->micro,
             c->reproducible ? "true" : "false", c->stage, c->recomputed,
             c->half ? "true" : "false", out);
    run_options options = {.text = text, .comm = alone ? NULL : comm, .resume = resume};
    trial_open(t, &options);
}

// Trains so many steps and saves. `resume`: "never", or a checkpoint.
static void train(const cut *c, const char *out, bool alone, const char *resume,
                  int steps) {
    tr_error err = {0};
    trial t;
    open_trial(c, out, alone, resume, &t);
    trial_steps(&t, steps, NULL);
    assert_true(steps == 0 || tr_engine_arena_peak(t.engine) ==
                                  tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE]);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
    trial_ok(alone ? TR_OK : tr__comm_barrier(comm, &err), &err);
}

// A folder of rank 0's, the same on all ranks.
static void shared_path(void *const *state, const char *name, char path[PATH_BYTES]) {
    tr_error err = {0};
    snprintf(path, PATH_BYTES, "%s", scratch_path(state, name));
    trial_ok(tr__comm_broadcast(comm, 0, path, PATH_BYTES, &err), &err);
}

static void end_together(void) { // rank 0 removes what it shares
    tr_error err = {0};
    trial_ok(tr__comm_barrier(comm, &err), &err);
}

// The uncut batch in one process; then on all ranks 64 x 1 (all but one have nothing),
// 16 x 4 (three ranks: one has nothing) and 7 ragged.
static void cuts_change_nothing(void **state) {
    static const cut uncut = {.micro = T};
    static const cut cuts[] = {{.micro = 64},
                               {.micro = 16, .stage = 1},
                               {.micro = 7, .stage = 3, .recomputed = 4},
                               {.micro = 7, .stage = 2}};
    char start[PATH_MAX], whole[PATH_MAX], here[PATH_MAX];
    train(&uncut, scratch_path(state, "start"), true, "never", 0);
    train(&uncut, scratch_path(state, "whole"), true, "never", STEPS);
    stored_latest(scratch_path(state, "start"), start);
    stored_latest(scratch_path(state, "whole"), whole);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char name[16], out[PATH_BYTES];
        snprintf(name, sizeof name, "cut-%zu", i);
        shared_path(state, name, out);
        train(&cuts[i], out, false, "never", STEPS);
        stored_assert_close(start, whole, stored_latest(out, here), 1e-4, 0);
    }
    end_together();
}

// At one micro-batch no cut changes a bit, in f32 and in bf16.
static void reproduced(void **state) {
    static const cut cuts[] = {
        {.micro = 7, .reproducible = true},
        {.micro = 7, .stage = 1, .reproducible = true},
        {.micro = 7, .stage = 2, .reproducible = true},
        {.micro = 7, .stage = 3, .recomputed = 4, .reproducible = true},
        {.micro = 7, .stage = 1, .reproducible = true, .half = true},
        {.micro = 7, .stage = 3, .recomputed = 4, .reproducible = true, .half = true}};
    char whole[PATH_MAX], here[PATH_MAX];
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char name[16], out[PATH_BYTES];
        if (i == 0 || cuts[i].half != cuts[i - 1].half) {
            train(&cuts[i], scratch_path(state, "whole"), true, "never", STEPS);
            stored_latest(scratch_path(state, "whole"), whole);
        }
        snprintf(name, sizeof name, "cut-%zu", i);
        shared_path(state, name, out);
        train(&cuts[i], out, false, "never", STEPS);
        stored_assert_same(whole, stored_latest(out, here), weights);
    }
    end_together();
}

// What one process makes of micro-batches that are all that a rank has; the third batch
// is ragged here as there. Every rank and stage saves the same running statistics.
static void ranks_apart(void **state) {
    static const int micros[] = {16, 7};
    char start[PATH_MAX], want[PATH_MAX], first[PATH_MAX], here[PATH_MAX];
    int ranks = tr_comm_ranks(comm);
    for (size_t i = 0; i < sizeof micros / sizeof *micros; i++) {
        int m = micros[i], steps = ((T + m - 1) / m + ranks - 1) / ranks;
        const cut alone = {.micro = steps * m, .statistics = "micro_batch"};
        char name[32];
        snprintf(name, sizeof name, "start-%d", m);
        train(&alone, scratch_path(state, name), true, "never", 0);
        stored_latest(scratch_path(state, name), start);
        snprintf(name, sizeof name, "alone-%d", m);
        train(&alone, scratch_path(state, name), true, "never", STEPS);
        stored_latest(scratch_path(state, name), want);
        for (int stage = 0; stage < 4; stage += 3) {
            const cut c = {.micro = m,
                           .stage = stage,
                           .recomputed = stage,
                           .statistics = "rank_batch"};
            char out[PATH_BYTES];
            snprintf(name, sizeof name, "apart-%d-%d", m, stage);
            shared_path(state, name, out);
            train(&c, out, false, "never", STEPS);
            char *to = stage ? here : first;
            stored_assert_close(start, want, stored_latest(out, to), 1e-4, 0);
        }
        stored_assert_same(first, here, weights);
    }
    end_together();
}

// A checkpoint of one process, opened by all ranks at each stage and saved elsewhere,
// has the same file of weights and states; so has it opened by one process again.
static void carried_unchanged(void **state) {
    const cut c = {.micro = 16};
    tr_error err = {0};
    char from[PATH_BYTES], first[PATH_MAX], here[PATH_MAX], back[PATH_MAX];
    const char *own = scratch_path(state, "own");
    train(&c, own, true, "never", 3);
    snprintf(from, sizeof from, "%s", stored_latest(own, first));
    trial_ok(tr__comm_broadcast(comm, 0, from, sizeof from, &err), &err);
    for (int stage = 0; stage < 4; stage++) {
        char out[PATH_BYTES], name[16];
        cut again = {.micro = 7, .stage = stage};
        snprintf(name, sizeof name, "stage-%d", stage);
        shared_path(state, name, out);
        train(&again, out, false, from, 0);
        stored_assert_same(from, stored_latest(out, here), weights);
        snprintf(name, sizeof name, "back-%d", stage);
        own = scratch_path(state, name);
        train(&c, own, true, here, 0);
        stored_assert_same(from, stored_latest(own, back), weights);
    }
    end_together();
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cuts_change_nothing, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(reproduced, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(ranks_apart, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(carried_unchanged, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
