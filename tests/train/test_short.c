// A batch that is short costs what it has: micro-batches without samples are not
// walked, and no bit depends on it.
#include "samples.h"
#include "snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 2048, SAMPLES = 10, STEPS = 4 };

static void open_run(trial *t, samples *data, int batch, const char *more) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, "
             "\"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 31}, \"steps\": %d, "
             "\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 2, "
             "\"noise_scale\": {\"measure\": true}, \"out\": \"unused\"%s}",
             STEPS, batch, more);
    trial_open_text(t, text, data->dataset, NULL);
    t->engine->least_saving = 0.5; // however small the model is
}

static void run_steps(samples *data, int batch, const char *more, int64_t micros,
                      tr_step_result *results, snapshot *end) {
    trial t;
    open_run(&t, data, batch, more);
    trial_steps(&t, STEPS, results);
    assert_int_equal(t.engine->plan->request.accumulation_steps, micros);
    snapshot_take(end, &t);
    trial_close(&t);
}

// Ten samples are all of the data. A batch of 16 takes them all, too, and has the same
// power of two in its loss.
static void same_bits(void **state) {
    static const char whole_wave[] = ", \"execution\": {\"wave\": 5}";
    static const char *const more[] = {
        "",
        ", \"execution\": {\"wave\": 3}",
        whole_wave,
        ", \"bf16\": {\"enabled\": true}",
        ", \"fp16\": {\"enabled\": true}",
        ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}",
        ", \"zero_optimization\": {\"offload_param\": {\"device\": \"nvme\", "
        "\"nvme_path\": \"/tmp\"}, \"offload_optimizer\": {\"device\": \"nvme\", "
        "\"nvme_path\": \"/tmp\"}}",
    };
    samples data;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        tr_step_result exact[STEPS], longer[STEPS];
        snapshot a, b;
        run_steps(&data, SAMPLES, more[i], 5, exact, &a);
        run_steps(&data, 16, more[i], 5, longer, &b);
        snapshot_assert_same(&a, &b);
        for (int s = 0; s < STEPS; s++) {
            assert_true(exact[s].loss == longer[s].loss);
            assert_true(exact[s].grad_norm == longer[s].grad_norm);
            // Of the batch of 16 the tied embedding is measured, too, but not where one
            // wave takes all samples: such a step tells nothing.
            assert_true(more[i] == whole_wave
                            ? isfinite(exact[s].noise_trace) &&
                                  isnan(longer[s].noise_trace)
                            : exact[s].noise_trace == longer[s].noise_trace);
        }
        snapshot_free(&a);
        snapshot_free(&b);
    }
    samples_free(&data);
}

// Batches of 4, 4 and 2: the last of each epoch has a plan of its own, which is made
// once, and the next one has the whole batch's again.
static void whole_after_short(void **state) {
    const tr_plan *at[7];
    samples data;
    trial t;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    open_run(&t, &data, 4, "");
    int64_t planned = tr_plan_ledger(t.plan)->total[TR_SPACE_DEVICE];
    for (int s = 0; s < 7; s++) {
        trial_steps(&t, 1, NULL);
        at[s] = t.engine->plan;
        assert_int_equal(at[s]->request.accumulation_steps, s % 3 == 2 ? 1 : 2);
        assert_int_equal(t.engine->planned[TR_SPACE_DEVICE], planned);
        assert_int_equal(tr_engine_arena_peak(t.engine), planned);
    }
    assert_ptr_equal(at[0], t.plan);
    assert_ptr_equal(at[3], t.plan);
    assert_ptr_equal(at[2], at[5]);
    trial_close(&t);
    samples_free(&data);
}

// However many micro-batches are missing.
static void costs_what_it_has(void **state) {
    samples data;
    trial t;
    (void)state;
    samples_tokens(&data, SAMPLES, 8, 31, 1);
    open_run(&t, &data, 10000, "");
    t.engine->least_saving = TR_SHORT_SAVING; // that many are worth it
    size_t whole = t.plan->sequences[TR_SEQUENCE_TRAIN].count;
    trial_steps(&t, 1, NULL);
    size_t walked = t.engine->plan->sequences[TR_SEQUENCE_TRAIN].count;
    assert_true(walked * 500 < whole);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(whole_after_short),
        cmocka_unit_test(costs_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
