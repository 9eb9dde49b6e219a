// Labels: guard
// Muon, and optimizer states that are kept in bf16 and in 8 bits: updates are those of
// bitsandbytes and of torch, no place changes a bit of them, and a run that is resumed
// goes on with the same bits.
#include "scratch.h"
#include "snapshot.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20, SETTINGS = 5, SETTING = 200 };

static int go_to_golden(void **state) {
    (void)state;
    return chdir(TR_TEST_DATA "/goldens/gpt2-states");
}

static void open_with(trial *t, const char *const settings[SETTINGS], const char *out,
                      const char *resume) {
    run_options options = {.file = "run.json",
                           .set = settings,
                           .set_count = SETTINGS,
                           .out = out,
                           .resume = resume};
    trial_open(t, &options);
}

// ---- bitsandbytes

static void check_losses_of(const char *file, const char *const settings[SETTINGS],
                            const char *golden, double tolerance) {
    tr_step_result results[STEPS];
    trial t;
    json_error_t error;
    json_t *expected = json_load_file(golden, 0, &error);
    assert_int_equal(json_array_size(expected), STEPS);
    run_options options = {
        .file = file, .set = settings, .set_count = SETTINGS, .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, STEPS, results);
    trial_close(&t);
    for (size_t s = 0; s < STEPS; s++) {
        double want = json_number_value(json_array_get(expected, s));
        if (!(fabs(results[s].loss - want) <= tolerance)) {
            fail_msg("%s, %s: loss %zu is %.9g for %.9g", golden, settings[0], s + 1,
                     results[s].loss, want);
        }
    }
    json_decref(expected);
}

static void check_losses(const char *const settings[SETTINGS], const char *golden) {
    check_losses_of("run.json", settings, golden, 1e-4);
}

// By torch.optim.Muon, whose products are bf16.
static void muon_is_torchs(void **state) {
    static const char *const cuts[][SETTINGS] = {
        {"train_micro_batch_size_per_gpu=4", "execution.wave=1",
         "optimizer.params.ns_dtype=bf16", "execution.threads=2",
         "execution.reproducible=false"},
        {"train_micro_batch_size_per_gpu=1", "execution.wave=2",
         "optimizer.params.ns_dtype=f32", "execution.threads=1",
         "execution.reproducible=true"},
        {"train_micro_batch_size_per_gpu=2", "execution.wave=2",
         "optimizer.params.ns_method=gram", "execution.threads=2",
         "execution.reproducible=false"},
    };
    (void)state;
    check_losses_of("muon-run.json", cuts[2], "muon.json", 1e-3);
    check_losses_of("muon-run.json", cuts[0], "muon.json", 1e-3);
    check_losses_of("muon-run.json", cuts[1], "muon.json", 1e-3);
}

static void muon_resumes_with_the_same_bits(void **state) {
    const char *out = scratch_path(state, "muon");
    snapshot whole, resumed;
    tr_error err = {0};
    trial t;
    run_options options = {.file = "muon-run.json", .out = out, .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, 4, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_steps(&t, 3, NULL);
    snapshot_take(&whole, &t);
    trial_close(&t);
    options.resume = "auto";
    trial_open(&t, &options);
    trial_steps(&t, 3, NULL);
    snapshot_take(&resumed, &t);
    snapshot_assert_same(&resumed, &whole);
    trial_close(&t);
    snapshot_free(&whole);
    snapshot_free(&resumed);
}

static void losses_are_the_oracles(void **state) {
    static const char *const cuts[][SETTINGS] = {
        {"train_micro_batch_size_per_gpu=4", "execution.wave=1",
         "optimizer.params.state_dtype=int8", "execution.threads=2",
         "execution.reproducible=false"},
        {"train_micro_batch_size_per_gpu=1", "execution.wave=2",
         "optimizer.params.state_dtype=int8", "execution.threads=1",
         "execution.reproducible=true"},
    };
    static const char *const f32[SETTINGS] = {
        "train_micro_batch_size_per_gpu=2", "execution.wave=2",
        "optimizer.params.state_dtype=f32", "execution.threads=2",
        "execution.reproducible=false"};
    (void)state;
    check_losses(cuts[0], "int8.json");
    check_losses(cuts[1], "int8.json");
    check_losses(f32, "f32.json");
}

// ---- places

static const char *const dtypes[] = {"optimizer.params.state_dtype=bf16",
                                     "optimizer.params.state_dtype=int8"};
enum { DTYPES = 2 };

static void no_place_changes_a_bit(void **state) {
    static const char *const places[][3] = {
        {"zero_optimization.offload_optimizer.device=none",
         "zero_optimization.offload_param.device=none", "execution.wave=2"},
        {"zero_optimization.offload_optimizer.device=cpu",
         "zero_optimization.offload_param.device=none", "execution.wave=2"},
        {"zero_optimization.offload_optimizer.device=nvme",
         "zero_optimization.offload_param.device=cpu", "execution.wave=2"},
        {"zero_optimization.offload_optimizer.device=nvme",
         "zero_optimization.offload_param.device=nvme", "execution.wave=2"},
    };
    char nvme[SETTING];
    snprintf(nvme, sizeof nvme, "memory.nvme.path=%s", scratch_path(state, ""));
    for (int d = 0; d < DTYPES; d++) {
        snapshot ends[4];
        for (int i = 0; i < 4; i++) {
            const char *settings[SETTINGS] = {dtypes[d], places[i][0], places[i][1],
                                              places[i][2], nvme};
            trial t;
            open_with(&t, settings, NULL, "never");
            trial_steps(&t, 3, NULL);
            snapshot_end(ends, i, &t);
        }
        for (int i = 0; i < 4; i++) {
            snapshot_free(&ends[i]);
        }
    }
}

// ---- bytes

typedef struct sizes {
    int64_t states, moved;
} sizes;

static sizes measure(const char *dtype, const char *nvme) {
    const char *settings[SETTINGS] = {
        dtype, "zero_optimization.offload_optimizer.device=nvme",
        "train_micro_batch_size_per_gpu=2", "execution.threads=1", nvme};
    trial t;
    open_with(&t, settings, NULL, "never");
    const tr_plan *plan = t.plan;
    sizes found = {plan->ledger.bytes[TR_SPACE_NVME][TR_LEDGER_optimizer],
                   plan->traffic.nvme};
    trial_close(&t);
    return found;
}

// What is in blocks takes 260 bytes for 1,024, and the file has whole ones of 4,096;
// the embeddings and what is small stay as they are. Each state is read and written.
static void a_quarter_is_kept_and_moved(void **state) {
    char nvme[SETTING];
    snprintf(nvme, sizeof nvme, "memory.nvme.path=%s", scratch_path(state, ""));
    sizes f32 = measure("optimizer.params.state_dtype=f32", nvme);
    sizes bf16 = measure(dtypes[0], nvme), int8 = measure(dtypes[1], nvme);
    int64_t blocks = 2 * (64 * 192 + 64 * 64 + 2 * 64 * 256);
    assert_true(llabs(f32.states - bf16.states - f32.states / 2) <= 16 * 4096);
    assert_true(llabs(f32.states - int8.states - 3 * blocks) <= 16 * 4096);
    assert_int_equal(f32.moved - bf16.moved, 2 * (f32.states - bf16.states));
    assert_true(f32.moved - int8.moved >= 2 * (f32.states - int8.states) - 16 * 4096);
}

// ---- checkpoints

typedef struct heard {
    char text[4096];
} heard;

static void hear(void *user, tr_message_level level, const char *line) {
    heard *to = user;
    size_t used = strlen(to->text);
    (void)level;
    snprintf(to->text + used, sizeof to->text - used, "%s\n", line);
}

static void open_to_resume(trial *t, const char *dtype, const char *out, heard *notes) {
    run_options options = {.file = "run.json",
                           .set = &dtype,
                           .set_count = 1,
                           .out = out,
                           .resume = "auto"};
    options.messages = (tr_messages){.write = hear, .user = notes};
    trial_open(t, &options);
}

static void save_after(const char *dtype, const char *out, int64_t steps) {
    tr_error err = {0};
    trial t;
    run_options options = {.file = "run.json",
                           .set = &dtype,
                           .set_count = 1,
                           .out = out,
                           .resume = "never"};
    trial_open(&t, &options);
    trial_steps(&t, steps, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    trial_close(&t);
}

static void resumed_runs_have_the_same_bits(void **state) {
    for (int d = 0; d < DTYPES; d++) {
        const char *out = scratch_path(state, d ? "int8" : "bf16");
        snapshot whole, resumed;
        heard notes = {""};
        trial t;
        run_options options = {
            .file = "run.json", .set = &dtypes[d], .set_count = 1, .resume = "never"};
        trial_open(&t, &options);
        trial_steps(&t, 9, NULL);
        snapshot_take(&whole, &t);
        trial_close(&t);
        save_after(dtypes[d], out, 5);
        open_to_resume(&t, dtypes[d], out, &notes);
        trial_steps(&t, 4, NULL);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&resumed, &whole);
        assert_null(strstr(notes.text, "go on in"));
        trial_close(&t);
        snapshot_free(&whole);
        snapshot_free(&resumed);
    }
}

// All values that 8 bits stand for are in the checkpoint, so f32 goes on from them.
static void another_type_goes_on_and_is_told(void **state) {
    const char *out = scratch_path(state, "other");
    snapshot was, now;
    heard notes = {""};
    trial t;
    save_after(dtypes[1], out, 5);
    open_to_resume(&t, dtypes[1], out, &notes);
    snapshot_take(&was, &t);
    trial_close(&t);
    notes.text[0] = '\0';
    open_to_resume(&t, "optimizer.params.state_dtype=f32", out, &notes);
    snapshot_take(&now, &t);
    snapshot_assert_same(&was, &now);
    assert_non_null(strstr(notes.text, "kept in int8, and go on in f32"));
    trial_close(&t);
    notes.text[0] = '\0';
    open_to_resume(&t, dtypes[0], out, &notes);
    assert_non_null(strstr(notes.text, "kept in int8, and go on in bf16"));
    trial_steps(&t, 1, NULL);
    trial_close(&t);
    snapshot_free(&was);
    snapshot_free(&now);
}

// ---- whose matrices

// Does AdamW update the first tensor whose name ends so?
static bool is_adams(const char *groups, const char *end) {
    run_options options = {.file = "muon-run.json", .resume = "never"};
    const char *const set[] = {groups};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    options.set = set;
    options.set_count = groups ? 1 : 0;
    trial_ok(run_open(&options, &run, &err), &err);
    trial_ok(tr_run_make_plan(run, &plan, &err), &err);
    const tr_plan_param *found = NULL;
    for (size_t i = 0; i < plan->param_count && !found; i++) {
        const char *name = plan->params[i].stored;
        size_t length = strlen(name), tail = strlen(end);
        found = length >= tail && strcmp(name + length - tail, end) == 0
                    ? &plan->params[i]
                    : NULL;
    }
    assert_non_null(found);
    bool apart = plan->flats[found->flat].apart;
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return apart;
}

static void groups_say_whose_matrices_are(void **state) {
    static const char matrix[] = "mlp.c_fc.weight", table[] = "wpe.weight";
    (void)state;
    assert_false(is_adams(NULL, matrix));
    assert_true(is_adams(NULL, table));
    assert_true(is_adams(NULL, "ln_1.weight"));
    assert_true(is_adams("optimizer.groups=[{\"match\": [\"*c_fc*\"], "
                         "\"use_muon\": false}]",
                         matrix));
    assert_false(is_adams("optimizer.groups=[{\"match\": [\"*wpe*\"], "
                          "\"use_muon\": true}]",
                          table));
}

// ---- what is refused

static void check_refused(const char *a, const char *b, const char *says) {
    const char *const settings[] = {a, b};
    run_options options = {
        .file = "run.json", .set = settings, .set_count = 2, .resume = "never"};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    tr_status status = run_open(&options, &run, &err);
    status = status == TR_OK ? tr_run_make_plan(run, &plan, &err) : status;
    assert_int_equal(status, TR_USAGE);
    if (!strstr(err.message, says)) {
        fail_msg("%s", err.message);
    }
    tr_run_destroy(run);
}

static void what_is_not_there_is_refused(void **state) {
    (void)state;
    check_refused("optimizer.type=Lion", "optimizer.params.state_dtype=int8",
                  "state_dtype");
    check_refused("optimizer.type=Muon",
                  "zero_optimization.offload_optimizer={\"device\": \"nvme\", "
                  "\"nvme_path\": \"/tmp\"}",
                  "offload_optimizer.device");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_the_oracles),
        cmocka_unit_test(muon_is_torchs),
        cmocka_unit_test_setup_teardown(muon_resumes_with_the_same_bits, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(no_place_changes_a_bit, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_quarter_is_kept_and_moved, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(resumed_runs_have_the_same_bits, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(another_type_goes_on_and_is_told, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(groups_say_whose_matrices_are),
        cmocka_unit_test(what_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, go_to_golden, NULL);
}
