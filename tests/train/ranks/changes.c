// Run on ranks: batches that change, a noise scale that is measured, and rollbacks, as
// in one process, bit for bit in reproducible mode; and all ranks find the same.
#include "on_ranks.h"
#include "train/samples.h"
#include "train/scratch.h"
#include "train/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048, PATH_BYTES = 512, STEPS = 8, POISONED = 31, GUARDED = 40 };

static tr_comm *comm;

// ---- batches that change

static void open_changing(samples *data, int stage, const char *more, bool alone,
                          trial *t) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
             "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 31}, \"steps\": %d, "
             "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": 2, "
             "\"batch_schedule\": [[2, 13], [4, 3], [6, 9]], \"batch_scaling\": "
             "{\"rule\": \"sqrt\", \"reference_batch\": 6}, \"noise_scale\": "
             "{\"measure\": true}, \"zero_optimization\": {\"stage\": %d%s}, "
             "\"execution\": {\"threads\": 1, \"reproducible\": true}, \"out\": "
             "\"unused\"}",
             STEPS, stage, more);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .comm = alone ? NULL : comm,
                           .resume = "never"};
    trial_open(t, &options);
}

static void assert_agreed(double value) {
    tr_error err = {0};
    double first = value;
    trial_ok(tr__comm_broadcast(comm, 0, &first, sizeof first, &err), &err);
    assert_memory_equal(&first, &value, sizeof value);
}

static void batches_change(void **state) {
    static const char host[] = ", \"offload_optimizer\": {\"device\": \"cpu\"}";
    samples data;
    snapshot alone;
    trial t;
    (void)state;
    samples_tokens(&data, 50, 8, 31, 1);
    open_changing(&data, 0, "", true, &t);
    trial_steps(&t, STEPS, NULL);
    snapshot_take(&alone, &t);
    trial_close(&t);
    for (int stage = 0; stage < 5; stage++) {
        snapshot here;
        open_changing(&data, stage % 4, stage < 4 ? "" : host, false, &t);
        for (int s = 0; s < STEPS; s++) {
            tr_step_result r = TR_STEP_RESULT_INIT;
            trial_steps(&t, 1, &r);
            assert_agreed(r.noise_trace);
            assert_true(r.grad_norm > 0); // weights that a change lost would give 0
            // Every rank's first micro-batch is a part, but where the batch is no more.
            assert_true(isfinite(r.noise_trace));
        }
        snapshot_gather(&here, &t);
        snapshot_assert_same(&alone, &here);
        snapshot_free(&here);
        trial_close(&t);
    }
    snapshot_free(&alone);
    samples_free(&data);
}

// ---- rollbacks

static void poison(samples *data) {
    samples_features(data, 12 * 50, 6, 3, 4);
    for (int64_t i = 12 * (POISONED - 1); i < 12 * POISONED; i++) {
        data->target[i] = (data->target[i] + 1) % 3;
        for (int f = 0; f < 6; f++) {
            data->features[i * 6 + f] *= 5;
        }
    }
}

static void run_guarded(samples *data, int stage, const char *out, bool alone,
                        snapshot *end) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t;
    snprintf(
        text, sizeof text,
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 16, 3]}, "
        "\"steps\": %d, \"train_batch_size\": 12, "
        "\"train_micro_batch_size_per_gpu\": 2, \"data\": {\"order\": "
        "\"sequential\"}, \"spike_guard\": {\"action\": \"rollback\", "
        "\"warmup_steps\": 4}, \"zero_optimization\": {\"stage\": %d}, "
        "\"execution\": {\"threads\": 1, \"reproducible\": true}, \"out\": \"%s\"}",
        GUARDED, stage, out);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .comm = alone ? NULL : comm,
                           .resume = "never"};
    trial_open(&t, &options);
    for (int s = 1; s <= GUARDED; s++) {
        tr_step_result r = TR_STEP_RESULT_INIT;
        int64_t to = -1;
        trial_steps(&t, 1, &r);
        assert_string_equal(r.act, s == POISONED ? "rollback" : "");
        if (r.act[0]) {
            trial_ok(tr_engine_rollback(t.engine, &to, &err), &err);
            assert_int_equal(to, 24);
        }
        if (s % 12 == 0) {
            trial_ok(tr_engine_save(t.engine, &err), &err);
        }
    }
    if (alone) {
        snapshot_take(end, &t);
    } else {
        snapshot_gather(end, &t);
    }
    trial_close(&t);
}

static void rolls_back(void **state) {
    char shared[PATH_BYTES];
    samples data;
    snapshot alone;
    tr_error err = {0};
    poison(&data);
    snprintf(shared, sizeof shared, "%s", scratch_path(state, "together"));
    trial_ok(tr__comm_broadcast(comm, 0, shared, sizeof shared, &err), &err);
    run_guarded(&data, 0, scratch_path(state, "alone"), true, &alone);
    for (int stage = 0; stage < 4; stage++) {
        snapshot here;
        char out[PATH_BYTES + 16];
        snprintf(out, sizeof out, "%s-%d", shared, stage);
        run_guarded(&data, stage, out, false, &here);
        snapshot_assert_same(&alone, &here);
        snapshot_free(&here);
    }
    snapshot_free(&alone);
    samples_free(&data);
    // Rank 0 removes the folder when all are done with it.
    trial_ok(tr__comm_barrier(comm, &err), &err);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_change),
        cmocka_unit_test_setup_teardown(rolls_back, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
