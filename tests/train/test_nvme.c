// What lives on NVMe: checkpoints are the same bytes, a step that is dropped has
// changed nothing, and trouble with the file ends a run clearly, with its checkpoint
// whole.
#include "backend/host/copy_engine_work.h"
#include "base/files.h"
#include "base/memory.h"
#include "exec/walk.h"
#include "files/checkpoint/checkpoint.h"
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 2048, BATCH = 4 };

static const char resident[] = "{\"stage\": 0}";
static const char away[] = "{\"offload_optimizer\": {\"device\": \"nvme\"}, "
                           "\"offload_param\": {\"device\": \"nvme\"}}";

static const char *more = ""; // keys of all runs of a test

static void print_run(void *const *state, const char *zero, const char *out,
                      const char *folder, char text[TEXT_MAX]) {
    bool nvme = zero == away;
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, "
             "\"n_head\": 3, \"n_positions\": 9, \"vocab_size\": 53}, \"steps\": 9, "
             "\"seed\": 5, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": 2, \"execution\": {\"wave\": 2, "
             "\"threads\": 2}, \"optimizer\": {\"type\": \"AdamW\"}, "
             "\"zero_optimization\": %s, \"memory\": {\"nvme\": {\"path\": \"%s\", "
             "\"gradients\": %s}}, %s\"out\": \"%s\"}",
             BATCH, zero, scratch_path(state, folder), nvme ? "true" : "false", more,
             scratch_path(state, out));
}

static void open_run(void *const *state, const char *zero, const char *out,
                     const char *resume, samples *data, trial *t) {
    char text[TEXT_MAX];
    print_run(state, zero, out, ".", text);
    run_options options = {.text = text,
                           .own_train = data->dataset,
                           .own_validation = data->dataset,
                           .resume = resume};
    trial_open(t, &options);
}

static void save(trial *t) {
    tr_error err = {0};
    trial_ok(tr_engine_save(t->engine, &err), &err);
}

static void same_file(void *const *state, const char *name, int64_t step) {
    static const char *const outs[] = {"here", "away"};
    char *text[2];
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        char path[256];
        tr_error err = {0};
        snprintf(path, sizeof path, "%s/checkpoints/step-%08d/%s", outs[i], (int)step,
                 name);
        trial_ok(tr__file_read(scratch_path(state, path), 1 << 24, &text[i], &bytes[i],
                               &err),
                 &err);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(text[0], text[1], bytes[0]);
    tr__free(text[0]);
    tr__free(text[1]);
}

static void same_checkpoints(void *const *state, int64_t step) {
    char paths[2][512];
    tr_diff *diff = NULL;
    tr_error err = {0};
    snprintf(paths[0], sizeof paths[0], "%s", scratch_path(state, "here"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path(state, "away"));
    trial_ok(tr_checkpoint_diff(paths[0], paths[1], &diff, &err), &err);
    assert_true(diff->identical && diff->optimizer_a && diff->optimizer_b);
    tr_diff_destroy(diff);
    same_file(state, "model.safetensors", step);
    same_file(state, "optimizer.safetensors", step);
}

// Each run goes on from what the other has saved.
static void checkpoints_are_the_same(void **state) {
    samples data;
    trial here, there;
    samples_tokens(&data, 9, 9, 53, 5);
    open_run(state, resident, "here", "never", &data, &here);
    open_run(state, away, "away", "never", &data, &there);
    trial_steps(&here, 2, NULL);
    trial_steps(&there, 2, NULL);
    save(&here);
    save(&there);
    same_checkpoints(state, 2);
    trial_close(&here);
    trial_close(&there);
    char other[512];
    snprintf(other, sizeof other, "%s",
             scratch_path(state, "away/checkpoints/step-00000002"));
    open_run(state, resident, "here", other, &data, &here);
    snprintf(other, sizeof other, "%s",
             scratch_path(state, "here/checkpoints/step-00000002"));
    open_run(state, away, "away", other, &data, &there);
    trial_steps(&here, 2, NULL);
    trial_steps(&there, 2, NULL);
    save(&here);
    save(&there);
    same_checkpoints(state, 4);
    trial_close(&here);
    trial_close(&there);
    samples_free(&data);
}

// Files hold the f32 weights; a run that goes on reads these, and rounds them.
static void checkpoints_are_the_same_in_16_bits(void **state) {
    more = "\"bf16\": {\"enabled\": true}, ";
    checkpoints_are_the_same(state);
    more = "\"fp16\": {\"enabled\": true, \"initial_scale_power\": 8}, ";
    checkpoints_are_the_same(state);
    more = "";
}

// ---- steps that are dropped

static bool ends_later(void *user) {
    int *left = user;
    return --*left <= 0;
}

static void dropped_steps_change_nothing(void **state) {
    samples data;
    trial t;
    snapshot want, got;
    tr_error err = {0};
    samples_tokens(&data, 9, 9, 53, 5);
    open_run(state, away, "away", "never", &data, &t);
    trial_steps(&t, 12, NULL);
    snapshot_take(&want, &t);
    trial_close(&t);
    open_run(state, away, "away", "never", &data, &t);
    t.engine->defers = true;
    for (int after = 1; after < 64; after += 7) {
        tr_step_result result;
        int left = after;
        trial_steps(&t, 1, NULL); // whose update is left to the step that is dropped
        assert_true(tr__executor_is_deferred(t.engine->executor));
        assert_int_equal(
            tr__engine_step_until(t.engine, ends_later, &left, &result, &err),
            TR_INTERRUPTED);
        assert_false(tr__executor_is_deferred(t.engine->executor));
    }
    trial_steps(&t, 3, NULL);
    trial_ok(tr_engine_refresh(t.engine, &err), &err);
    snapshot_take(&got, &t);
    snapshot_assert_same(&want, &got);
    snapshot_free(&want);
    snapshot_free(&got);
    trial_close(&t);
    samples_free(&data);
}

// Data that cannot be read from a sample on, as long as it is told so.
typedef struct broken {
    const samples *data;
    int64_t from; // -1: all can
    tr_dataset *dataset;
} broken;

static tr_status read_some(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const broken *b = user;
    for (int64_t i = 0; i < count; i++) {
        if (b->from >= 0 && index[i] >= b->from) {
            return tr_fail(err, TR_DATA, "sample %d is lost", (int)index[i]);
        }
    }
    return tr_dataset_read(b->data->dataset, index, count, rows, err);
}

static void break_data(broken *b, const samples *data, int64_t from) {
    tr_error err = {0};
    *b = (broken){.data = data, .from = from};
    tr_dataset_source source = {.samples = data->count,
                                .tensors = *tr_dataset_tensors(data->dataset),
                                .vocabulary = tr_dataset_vocabulary(data->dataset),
                                .classes = tr_dataset_classes(data->dataset),
                                .hash = tr_dataset_hash(data->dataset),
                                .read = read_some,
                                .user = b};
    trial_ok(tr_dataset_create_callback(&source, &b->dataset, &err), &err);
}

// The update that was left to the step is made once, however far the step comes: what
// is saved then is what the step before it was to come to.
static void failed_steps_change_nothing(void **state) {
    static const int first_lost[] = {4, 6}; // by the second step's micro-batches
    more = "\"data\": {\"order\": \"sequential\"}, ";
    for (int k = 0; k < 2; k++) {
        samples data;
        broken lost;
        trial here, there;
        tr_error err = {0};
        tr_step_result result;
        samples_tokens(&data, 9, 9, 53, 5);
        break_data(&lost, &data, first_lost[k]);
        open_run(state, resident, "here", "never", &data, &here);
        trial_steps(&here, 1, NULL);
        save(&here);
        samples some = {.dataset = lost.dataset};
        open_run(state, away, "away", "never", &some, &there);
        there.engine->defers = true;
        trial_steps(&there, 1, NULL);
        assert_true(tr__executor_is_deferred(there.engine->executor));
        assert_int_equal(tr_engine_step(there.engine, &result, &err), TR_DATA);
        assert_non_null(strstr(err.message, " is lost"));
        save(&there);
        same_checkpoints(state, 1);
        lost.from = -1; // and on it goes
        trial_steps(&here, 2, NULL);
        trial_steps(&there, 2, NULL);
        save(&here);
        save(&there);
        same_checkpoints(state, 3);
        trial_close(&here);
        trial_close(&there);
        tr_dataset_destroy(lost.dataset);
        samples_free(&data);
    }
    more = "";
}

// ---- trouble at the start

static void fails_to_start(void *const *state, samples *data, const char *folder,
                           const char *words) {
    char text[TEXT_MAX];
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    print_run(state, away, "away", folder, text);
    run_options options = {.text = text, .own_train = data->dataset, .resume = "never"};
    trial_ok(run_open(&options, &run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(run), &plan, &err), &err);
    assert_int_equal(tr_engine_create(run, plan, &engine, &err), TR_IO);
    assert_non_null(strstr(err.message, scratch_path(state, folder)));
    assert_non_null(strstr(err.message, words));
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

static void a_folder_that_will_not_do_is_named(void **state) {
    struct rlimit was, limit;
    samples data;
    samples_tokens(&data, 9, 9, 53, 5);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    limit = was;
    limit.rlim_cur = 1 << 16;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fails_to_start(state, &data, ".", "may write files of at most 64");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    samples_free(&data);
}

// ---- trouble in a step

// A file in memory that fails after so many transfers.
typedef struct failing {
    tr_nvme base;
    char *file;
    int left;
    int64_t result; // of the one that fails
    int ended[TR_NVME_SLOTS], count;
} failing;

static int failing_begin(tr_nvme *nvme, int slot) {
    failing *f = (failing *)nvme;
    tr_nvme_transfer *t = &nvme->slots[slot];
    t->result = t->bytes;
    if (f->left-- <= 0) {
        t->result = f->result;
    } else if (t->write) {
        memcpy(f->file + t->offset, t->memory, (size_t)t->bytes);
    } else {
        memcpy(t->memory, f->file + t->offset, (size_t)t->bytes);
    }
    f->ended[f->count++] = slot;
    return 0;
}

static int failing_end(tr_nvme *nvme, double seconds) {
    failing *f = (failing *)nvme;
    (void)seconds;
    return f->count > 0 ? f->ended[--f->count] : -1;
}

static void failing_destroy(tr_nvme *nvme) {
    failing *f = (failing *)nvme;
    free(f->file);
    free(f);
}

static const tr_nvme_method failing_method = {"failing", failing_begin, failing_end,
                                              NULL, failing_destroy};

static void put_failing(trial *t, int left, int64_t result) {
    tr_copy_engine **copy_engine = &t->engine->executor->copy_engine[TR_STREAM_NVME];
    int64_t bytes = t->plan->arena_bytes[TR_SPACE_NVME];
    failing *f = calloc(1, sizeof *f);
    tr_error err = {0};
    assert_non_null(f);
    f->base.method = &failing_method;
    f->file = calloc(1, (size_t)bytes);
    f->left = left;
    f->result = result;
    assert_non_null(f->file);
    tr__copy_engine_destroy(*copy_engine);
    trial_ok(tr__copy_engine_create_on(&f->base, "/the/folder", bytes, true,
                                       copy_engine, &err),
             &err);
}

static void an_error_in_a_step_ends_it(void **state) {
    static const int64_t results[] = {-EIO, 0, -ENOSPC};
    static const char *const words[] = {"Input/output error", "it came short",
                                        "No space left"};
    for (int k = 0; k < 3; k++) {
        samples data;
        trial t;
        tr_error err = {0};
        tr_step_result result;
        samples_tokens(&data, 9, 9, 53, 5);
        open_run(state, away, "away", "never", &data, &t);
        trial_steps(&t, 1, NULL);
        save(&t);
        put_failing(&t, 1 + 17 * k, results[k]);
        assert_int_equal(tr_engine_step(t.engine, &result, &err), TR_IO);
        assert_non_null(strstr(err.message, "/the/folder"));
        assert_non_null(strstr(err.message, words[k]));
        assert_int_equal(tr_engine_save(t.engine, &err), TR_IO);
        trial_close(&t);
        trial_ok(tr__checkpoint_verify(scratch_path(state, "away/checkpoints/latest"),
                                       TR_VERIFY_HASHES, NULL, NULL, NULL, &err),
                 &err);
        open_run(state, away, "away", "auto", &data, &t);
        assert_int_equal(tr_engine_steps_done(t.engine), 1);
        trial_steps(&t, 1, NULL);
        trial_close(&t);
        samples_free(&data);
    }
}

// ---- a process that dies

static int files_in(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count - 2; // but for . and ..
}

static void nothing_stays_of_a_killed_run(void **state) {
    char text[TEXT_MAX];
    const char *folder = scratch_path(state, "nvme"), *out = scratch_path(state, "out");
    const char *log = scratch_path(state, "log");
    tr_error err = {0};
    trial_ok(tr__folder_create(folder, &err), &err);
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [20, 64, 10]}, "
             "\"data\": {\"format\": \"random\", \"samples\": 64, \"features\": 20, "
             "\"classes\": 10}, \"steps\": 100000, \"train_batch_size\": 4, "
             "\"zero_optimization\": %s, \"memory\": {\"nvme\": {\"path\": \"%s\"}}, "
             "\"out\": \"%s\"}",
             away, folder, out);
    const char *file = scratch_text(state, "run.json", text);
    const char *arguments[] = {"train", file, NULL};
    pid_t pid = program_start(arguments, log);
    for (int i = 0; i < 500 && metrics_lines(out) < 2; i++) {
        usleep(20000);
    }
    assert_true(metrics_lines(out) >= 2);
    assert_int_equal(files_in(folder), 0); // the file has no name
    kill(pid, SIGKILL);
    assert_int_equal(program_wait(pid, NULL), 1000 + SIGKILL);
    assert_int_equal(files_in(folder), 0);
    char *said = file_text(log);
    assert_non_null(strstr(said, "NVMe: "));
    assert_non_null(strstr(said, folder));
    free(said);
}

#define WITH_FOLDER(test)                                                              \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(checkpoints_are_the_same),
        WITH_FOLDER(checkpoints_are_the_same_in_16_bits),
        WITH_FOLDER(dropped_steps_change_nothing),
        WITH_FOLDER(failed_steps_change_nothing),
        WITH_FOLDER(a_folder_that_will_not_do_is_named),
        WITH_FOLDER(an_error_in_a_step_ends_it),
        WITH_FOLDER(nothing_stays_of_a_killed_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
