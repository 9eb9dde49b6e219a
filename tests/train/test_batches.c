// The effective batch changes during a run: which one each step has, which samples it
// takes, and that nothing else changes.
#include "base/memory.h"
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, STEPS = 11, SAMPLES = 50 };

// ---- the list

static void which_batch(void **state) {
    tr_batch_change changes[] = {{3, 8}, {5, 2}};
    tr_batches b = {.first = 4, .changes = changes, .count = 2};
    static const int64_t expected[] = {4, 4, 4, 8, 8, 2, 2};
    (void)state;
    for (int64_t done = 0; done < 7; done++) {
        assert_int_equal(tr__batches_at(&b, done), expected[done]);
    }
    assert_int_equal(tr__batches_largest(&b), 8);
}

// By jumps, against step by step.
static void samples_and_steps(void **state) {
    uint64_t random = 5;
    (void)state;
    for (int i = 0; i < 400; i++) {
        tr_batch_change changes[2];
        changes[0].step = test_between(&random, 0, 9);
        changes[1].step = changes[0].step + test_between(&random, 1, 20);
        changes[0].batch = test_between(&random, 1, 30);
        changes[1].batch = test_between(&random, 1, 30);
        tr_batches b = {.first = test_between(&random, 1, 30),
                        .changes = changes,
                        .count = (size_t)test_between(&random, 0, 2)};
        tr_batcher batcher = {.samples = test_between(&random, 1, 40),
                              .drop_last = test_between(&random, 0, 1)};
        int64_t epochs = test_between(&random, 1, 6), cursor = 0, steps = 0;
        int64_t taken = 0;
        for (;; steps++) {
            assert_int_equal(tr__batches_samples(&b, &batcher, steps), taken);
            batcher.batch = tr__batches_at(&b, steps);
            tr_batch next = tr__batcher_next(&batcher, cursor);
            if (next.epoch >= epochs) {
                break;
            }
            cursor = next.next;
            taken += next.count;
        }
        assert_int_equal(tr__batches_steps(&b, &batcher, epochs), steps);
    }
}

static void follows_noise(void **state) {
    tr_batches b = {
        .adaptive = true, .least = 16, .most = 256, .share = .5, .multiple = 8};
    (void)state;
    assert_int_equal(tr__batches_follow(&b, 64, NAN), 64);
    assert_int_equal(tr__batches_follow(&b, 64, -5), 64);
    assert_int_equal(tr__batches_follow(&b, 64, 150), 64);   // 75: near enough
    assert_int_equal(tr__batches_follow(&b, 64, 200), 104);  // 100, in eights
    assert_int_equal(tr__batches_follow(&b, 64, 9000), 128); // at most twice
    assert_int_equal(tr__batches_follow(&b, 64, 2), 32);     // at least half
    assert_int_equal(tr__batches_follow(&b, 200, 9000), 256);
    assert_int_equal(tr__batches_follow(&b, 24, 2), 16);
}

// ---- runs

static const char schedule[] =
    "\"batch_schedule\": [[2, 12], [4e0, 3], [5, 4.0], [8, 9]]";

typedef struct cut {
    int micro;
    const char *more; // keys of the run
} cut;

static void open_cut(const cut *c, samples *data, const char *out, const char *resume,
                     trial *t) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
             "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 31}, \"steps\": %d, "
             "\"train_batch_size\": 6, \"train_micro_batch_size_per_gpu\": %d, "
             "\"batch_scaling\": {\"rule\": \"adam\", \"reference_batch\": 4}, "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3, "
             "\"weight_decay\": 0.1}}, \"out\": \"%s\", %s%s}",
             STEPS, c->micro, out, schedule, c->more);
    run_options options = {.text = text, .own_train = data->dataset, .resume = resume};
    trial_open(t, &options);
}

static void run_cut(const cut *c, samples *data, tr_step_result *results,
                    snapshot *start, snapshot *end) {
    trial t;
    open_cut(c, data, "unused", "never", &t);
    if (start) {
        snapshot_take(start, &t);
    }
    trial_steps(&t, STEPS, results);
    snapshot_take(end, &t);
    trial_close(&t);
}

// Every sample of an epoch once, and each step's batch is what the list says.
static void every_sample_once(void **state) {
    static const int64_t batch[STEPS] = {6, 6, 12, 12, 3, 4, 4, 4, 9, 9, 9};
    static const cut plain = {2, ""};
    tr_step_result r[STEPS];
    samples data;
    snapshot end;
    int64_t cursor = 0;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    run_cut(&plain, &data, r, NULL, &end);
    for (int i = 0; i < STEPS; i++) {
        int64_t left = SAMPLES - cursor % SAMPLES;
        assert_int_equal(r[i].train_batch, batch[i]);
        assert_int_equal(r[i].batch, left < batch[i] ? left : batch[i]);
        assert_int_equal(r[i].epoch, cursor / SAMPLES);
        cursor += r[i].batch;
        assert_int_equal(r[i].samples, cursor);
        assert_true(fabs(r[i].lr - 1e-3 * sqrt((double)batch[i] / 4)) < 1e-15);
    }
    snapshot_free(&end);
    samples_free(&data);
}

// Another micro-batch is another rounding; wave and offload are none.
static void cuts_agree(void **state) {
    static const cut plain = {2, ""};
    static const cut close[] = {{1, ""}, {5, ""}, {12, ""}};
    static const cut same[] = {
        {2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}, "
            "\"execution\": {\"reproducible\": true}"},
        {2, ", \"execution\": {\"wave\": 3, \"reproducible\": true}"},
        {2, ", \"execution\": {\"reproducible\": true}"},
        {2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\", "
            "\"nvme_path\": \"/tmp\"}, \"offload_param\": {\"device\": \"nvme\", "
            "\"nvme_path\": \"/tmp\"}}, \"execution\": {\"reproducible\": true}"},
    };
    samples data;
    snapshot start, end, other, first;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    run_cut(&plain, &data, NULL, &start, &end);
    for (size_t i = 0; i < sizeof close / sizeof *close; i++) {
        run_cut(&close[i], &data, NULL, NULL, &other);
        snapshot_assert_close(&start, &end, &other, 1e-4, "micro-batch");
        snapshot_free(&other);
    }
    run_cut(&same[0], &data, NULL, NULL, &first);
    snapshot_assert_close(&start, &end, &first, 1e-4, "reproducible");
    for (size_t i = 1; i < sizeof same / sizeof *same; i++) {
        run_cut(&same[i], &data, NULL, NULL, &other);
        snapshot_assert_same(&first, &other);
        snapshot_free(&other);
    }
    snapshot_free(&first);
    snapshot_free(&start);
    snapshot_free(&end);
    samples_free(&data);
}

// What a step leaves to the next is done there, also where that has another plan.
static void nvme_is_memory(void **state) {
    static const cut places[] = {
        {2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}"},
        {2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}}, "
            "\"memory\": {\"nvme\": {\"path\": \"/tmp\", \"gradients\": true}}"},
        {2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"nvme\"}, "
            "\"offload_param\": {\"device\": \"nvme\"}}, \"memory\": {\"nvme\": "
            "{\"path\": \"/tmp\"}}"},
    };
    snapshot ends[3];
    samples data;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    for (int i = 0; i < 3; i++) {
        trial t;
        tr_error err = {0};
        open_cut(&places[i], &data, "unused", "never", &t);
        t.engine->defers = true;
        trial_steps(&t, STEPS, NULL);
        assert_true(t.engine->plan != t.plan);
        bool beside =
            i > 0 || t.plan->request.discrete; // the update, and the next step
        assert_int_equal(tr__executor_is_deferred(t.engine->executor), beside);
        trial_ok(tr_engine_refresh(t.engine, &err), &err);
        snapshot_end(ends, i, &t);
    }
    for (int i = 0; i < 3; i++) {
        snapshot_free(&ends[i]);
    }
    samples_free(&data);
}

// Offload needs the whole wave: a larger batch has more memory, and what was in the old
// one is still there.
static void memory_grows(void **state) {
    static const cut away = {
        2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}"};
    static const cut here = {2, ", \"execution\": {\"wave\": 3}"};
    samples data;
    snapshot a, b;
    trial t;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    open_cut(&away, &data, "unused", "never", &t);
    int64_t planned = t.plan->arena_bytes[TR_SPACE_DEVICE];
    trial_steps(&t, 3, NULL);
    assert_true(t.engine->plan != t.plan);
    assert_true(t.engine->plan->arena_bytes[TR_SPACE_DEVICE] > planned);
    assert_int_equal(tr_engine_arena_peak(t.engine),
                     t.engine->plan->arena_bytes[TR_SPACE_DEVICE]);
    trial_steps(&t, STEPS - 3, NULL);
    snapshot_take(&a, &t);
    trial_close(&t);
    run_cut(&here, &data, NULL, NULL, &b);
    snapshot_assert_close(NULL, &b, &a, 1e-4, "offload");
    snapshot_free(&a);
    snapshot_free(&b);
    samples_free(&data);
}

// Wherever there is no memory for another batch, the step changes nothing, and the next
// one tries again.
static void a_change_that_fails_changes_nothing(void **state) {
    static const cut away = {
        2, ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}"};
    samples data;
    snapshot end, before, after;
    tr_status status = TR_MEMORY;
    int failures = 0;
    trial t;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    run_cut(&away, &data, NULL, NULL, &end);
    open_cut(&away, &data, "unused", "never", &t);
    trial_steps(&t, 2, NULL);
    snapshot_take(&before, &t);
    for (int64_t nth = 1; status != TR_OK; nth++) {
        tr_error err = {0};
        tr_step_result result = TR_STEP_RESULT_INIT;
        tr__memory_fail_at(nth);
        status = tr_engine_step(t.engine, &result, &err);
        tr__memory_fail_at(0);
        if (status != TR_OK) {
            assert_int_equal(status, TR_MEMORY);
            assert_int_equal(tr_engine_steps_done(t.engine), 2);
            snapshot_take(&after, &t);
            snapshot_assert_same(&before, &after);
            snapshot_free(&after);
            failures++;
        }
    }
    assert_true(failures > 10);
    assert_true(t.engine->plan != t.plan);
    trial_steps(&t, STEPS - 3, NULL);
    snapshot_take(&after, &t);
    snapshot_assert_same(&end, &after);
    trial_close(&t);
    snapshot_free(&before);
    snapshot_free(&after);
    snapshot_free(&end);
    samples_free(&data);
}

// Stopped at every step, in the middle of any batch; the products of the betas that
// were are in the checkpoint.
static void resumes(void **state) {
    static const cut plain = {2, ""};
    samples data;
    snapshot end, resumed;
    double power = 1;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    run_cut(&plain, &data, NULL, NULL, &end);
    for (int stop = 1; stop < STEPS; stop++) {
        tr_error err = {0};
        trial t;
        const char *out = scratch_path(state, "out");
        open_cut(&plain, &data, out, "never", &t);
        trial_steps(&t, stop, NULL);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
        open_cut(&plain, &data, out, "auto", &t);
        trial_steps(&t, STEPS - stop, NULL);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&end, &resumed);
        snapshot_free(&resumed);
        power = t.engine->power[0][0];
        trial_close(&t);
    }
    static const int64_t batch[STEPS] = {6, 6, 12, 12, 3, 4, 4, 4, 9, 9, 9};
    double expected = 1;
    for (int i = 0; i < STEPS; i++) {
        expected *= 1 - (double)batch[i] / 4 * (1 - .9);
    }
    assert_true(fabs(power / expected - 1) < 1e-12);
    snapshot_free(&end);
    samples_free(&data);
}

// Fixed-point sums stand where they stood, though a resumed run begins with the plan of
// its first batch.
static void resumes_in_fixed_point(void **state) {
    static const cut fixed = {5, ", \"execution\": {\"reproducible\": true}"};
    const char *out = scratch_path(state, "out");
    samples data;
    snapshot end, resumed;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    run_cut(&fixed, &data, NULL, NULL, &end);
    for (int stop = 1; stop < STEPS; stop++) {
        tr_error err = {0};
        trial t;
        open_cut(&fixed, &data, out, "never", &t);
        trial_steps(&t, stop, NULL);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_ok(tr__engine_follow_batch(t.engine, &err), &err);
        int exponent = t.engine->fixed_exponent;
        trial_close(&t);
        open_cut(&fixed, &data, out, "auto", &t);
        assert_int_equal(t.engine->fixed_exponent, exponent);
        trial_steps(&t, STEPS - stop, NULL);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&end, &resumed);
        snapshot_free(&resumed);
        trial_close(&t);
    }
    snapshot_free(&end);
    samples_free(&data);
}

static json_t *train_through(const char *text, samples *data, const char *out) {
    tr_error err = {0};
    trial t;
    run_options options = {
        .text = text, .own_train = data->dataset, .out = out, .resume = "never"};
    trial_open(&t, &options);
    trial_ok(tr_run_begin(t.run, t.plan, &err), &err);
    trial_ok(tr_engine_train(t.engine, NULL, &err), &err);
    trial_close(&t);
    return metrics_read(out);
}

// Each epoch that has ended has one line, and what it says is of all of the epoch's
// steps, also where the batch changes at its end.
static void check_epochs(json_t *metrics, int64_t epochs) {
    int64_t lines = 0, targets = 0;
    size_t i;
    json_t *line;
    json_array_foreach(metrics, i, line) {
        if (json_object_get(line, "update")) {
            int64_t epoch = json_integer_value(json_object_get(line, "epoch"));
            assert_int_equal(epoch, lines);
            targets += json_integer_value(json_object_get(line, "targets"));
        } else if (json_object_get(line, "epoch_loss")) {
            assert_int_equal(json_integer_value(json_object_get(line, "epoch")), lines);
            assert_int_equal(json_number_value(json_object_get(line, "epoch_targets")),
                             targets);
            lines++;
            targets = 0;
        }
    }
    assert_int_equal(lines, epochs);
    json_decref(metrics);
}

// Ten samples, of which a larger batch may find too few left, and a smaller one enough.
static void epochs_end_once(void **state) {
    static const struct {
        int64_t batch;
        const char *schedule;
    } rows[] = {{2, "[[3, 8]]"}, {8, "[[1, 2]]"}, {3, "[[2, 5], [4, 1]]"}};
    samples data;
    samples_features(&data, 10, 6, 3, 11);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_MAX];
        snprintf(text, sizeof text,
                 "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, "
                 "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 2, "
                 "\"epochs\": 3, \"data\": {\"drop_last\": true}, "
                 "\"batch_schedule\": %s}",
                 (int)rows[i].batch, rows[i].schedule);
        check_epochs(train_through(text, &data, scratch_path(state, "out")), 3);
    }
    samples_free(&data);
}

// The same where the batch follows the noise scale, and nobody knows the steps before:
// none is of an epoch after the last.
static void adaptive_epochs_end(void **state) {
    static const char text[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, \"epochs\": "
        "2, "
        "\"train_batch_size\": 4, \"train_micro_batch_size_per_gpu\": 2, \"data\": "
        "{\"drop_last\": true}, \"adaptive_batch\": {\"enabled\": true, \"least\": 4, "
        "\"most\": 16, \"every\": 1}}";
    for (uint64_t seed = 1; seed <= 12; seed++) {
        samples data;
        samples_features(&data, 22, 6, 3, seed);
        check_epochs(train_through(text, &data, scratch_path(state, "out")), 2);
        samples_free(&data);
    }
}

// A schedule in samples ends with the last update, though some samples are dropped.
static void schedules_know_what_is_dropped(void **state) {
    static const char text[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, \"epochs\": "
        "5, "
        "\"train_batch_size\": 6, \"data\": {\"drop_last\": true}, \"scheduler\": "
        "{\"type\": \"WarmupDecayLR\", \"unit\": \"samples\", \"params\": "
        "{\"warmup_num_steps\": 0, \"warmup_max_lr\": 1}}}";
    tr_step_result r[5];
    samples data;
    trial t;
    (void)state;
    samples_features(&data, 10, 6, 3, 11);
    trial_open_text(&t, text, data.dataset, NULL);
    trial_steps(&t, 5, r);
    assert_int_equal(t.engine->count.learned, 30);
    assert_int_equal(t.run->settings.schedule.total_steps, 30);
    assert_true(fabs(r[4].lr - 6.0 / 28) < 1e-12); // (30 - 24) / (30 - 2)
    trial_close(&t);
    samples_free(&data);
}

// Half of the noise scale, which is far below what the run begins with.
static void adapts(void **state) {
    static const char text[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 12, 3]}, "
        "\"epochs\": 6, \"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": "
        "2, \"adaptive_batch\": {\"enabled\": true, \"least\": 8, \"most\": 64, "
        "\"every\": 2}, \"execution\": {\"threads\": 1}}";
    samples data;
    tr_step_result r = {.train_batch = 64};
    trial t;
    (void)state;
    samples_features(&data, 400, 6, 3, 11);
    trial_open_text(&t, text, data.dataset, NULL);
    for (int i = 0; i < 40; i++) {
        int64_t before = r.train_batch;
        double noise = r.noise_scale;
        trial_steps(&t, 1, &r);
        bool due = i > 0 && i % 2 == 0;
        int64_t expected =
            due ? tr__batches_follow(&t.run->settings.batches, before, noise) : before;
        assert_int_equal(r.train_batch, expected);
    }
    assert_true(r.train_batch < 64);
    trial_close(&t);
    samples_free(&data);
}

// A resumed run goes on with the batch that it had come to, as far as its own limits
// let it: the memory and the rates of any other have not been looked at.
static void open_limits(trial *t, samples *data, const char *out, const int limits[3],
                        const char *resume) {
    char text[TEXT_MAX];
    snprintf(
        text, sizeof text,
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, "
        "\"steps\": 9, \"train_micro_batch_size_per_gpu\": 2, \"train_batch_size\": "
        "%d, \"adaptive_batch\": {\"enabled\": true, \"least\": %d, \"most\": %d}}",
        limits[0], limits[1], limits[2]);
    run_options options = {
        .text = text, .own_train = data->dataset, .out = out, .resume = resume};
    trial_open(t, &options);
}

static void other_limits(void **state) {
    static const int before[] = {32, 8, 64}; // first, least, most
    static const int after[][3] = {{16, 4, 16}, {48, 40, 64}, {24, 8, 64}};
    static const int64_t expected[] = {16, 40, 32};
    const char *out = scratch_path(state, "out");
    samples data;
    samples_features(&data, 400, 6, 3, 11);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        tr_error err = {0};
        tr_step_result r = TR_STEP_RESULT_INIT;
        trial t;
        open_limits(&t, &data, out, before, "never");
        trial_steps(&t, 1, NULL);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        trial_close(&t);
        open_limits(&t, &data, out, after[i], "auto");
        trial_steps(&t, 1, &r);
        assert_int_equal(r.step, 2);
        assert_int_equal(r.train_batch, expected[i]);
        trial_close(&t);
    }
    samples_free(&data);
}

static void refused(void **state) {
    static const struct {
        const char *keys, *words;
    } rows[] = {
        {"\"batch_schedule\": [[1]]", "batch_schedule[0] is not a pair"},
        {"\"batch_schedule\": [[2, 0]]", "batch_schedule[0] is not a pair"},
        {"\"batch_schedule\": [[3, 8], [3, 9]]", "batch_schedule[1]: its step 3"},
        {"\"batch_schedule\": [[0, 8]]", "begins with a batch of 8"},
        {"\"adaptive_batch\": {\"enabled\": true}", "adaptive_batch.most is missing"},
        {"\"adaptive_batch\": {\"enabled\": true, \"most\": 4}", "not between"},
        {"\"adaptive_batch\": {\"enabled\": true, \"most\": 9, \"least\": 1}",
         "one micro-batch"},
        {"\"adaptive_batch\": {\"enabled\": true, \"most\": 9}, \"batch_schedule\": "
         "[[1, 8]]",
         "keep one"},
        {"\"adaptive_batch\": {\"enabled\": true, \"most\": 9}, \"execution\": "
         "{\"reproducible\": true}",
         "not yet supported"},
    };
    samples data;
    (void)state;
    samples_features(&data, 40, 6, 3, 11);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_MAX];
        tr_error err = {0};
        tr_run *run = NULL;
        snprintf(text, sizeof text,
                 "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 3]}, "
                 "\"steps\": 5, \"train_batch_size\": 6, "
                 "\"train_micro_batch_size_per_gpu\": 2, %s}",
                 rows[i].keys);
        run_options options = {.text = text, .own_train = data.dataset};
        assert_int_equal(run_open(&options, &run, &err), TR_USAGE);
        if (!strstr(err.message, rows[i].words)) {
            fail_msg("%s", err.message);
        }
    }
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_batch),
        cmocka_unit_test(samples_and_steps),
        cmocka_unit_test(follows_noise),
        cmocka_unit_test(every_sample_once),
        cmocka_unit_test(cuts_agree),
        cmocka_unit_test(nvme_is_memory),
        cmocka_unit_test(memory_grows),
        cmocka_unit_test(a_change_that_fails_changes_nothing),
        cmocka_unit_test_setup_teardown(resumes, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(resumes_in_fixed_point, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(epochs_end_once, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(adaptive_epochs_end, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(schedules_know_what_is_dropped),
        cmocka_unit_test(adapts),
        cmocka_unit_test_setup_teardown(other_limits, scratch_make, scratch_remove),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
