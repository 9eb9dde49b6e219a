// A run that is stopped, saved and resumed is the run that was never stopped: to the
// bit at the same cut, within invariance's bound at another.
#include "files/safetensors/tensor_set.h"
#include "program.h"
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 11, TEXT_MAX = 2048 };

typedef struct story {
    const char *model, *optimizer, *scheduler; // parts of the run file
    samples *data;
    const char *out;
} story;

static int kept = 1;            // checkpoints
static const char *stored = ""; // more of their keys
static const char *more = "";   // keys

static const char adamw[] =
    "{\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3, \"weight_decay\": 0.1}, "
    "\"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0}]}";
static const char one_cycle[] =
    "{\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 1e-4, \"cycle_max_lr\": "
    "2e-3, \"cycle_first_step_size\": 5, \"decay_step_size\": 3, \"decay_lr_rate\": "
    "0.1}}";
static const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, \"n_head\": 3, "
    "\"n_positions\": 9, \"vocab_size\": 53}"; // dropout 0.1 by default
static const char mlp[] = "{\"model_type\": \"mlp\", \"layer_sizes\": [7, 23, 4]}";

static void print_run(const story *s, int micro, int wave, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": %s, \"steps\": %d, \"seed\": 5, \"train_batch_size\": 6, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d, "
             "\"threads\": 2}, \"optimizer\": %s, \"scheduler\": %s, "
             "\"gradient_clipping\": 0.5, \"checkpoint\": {\"keep\": %d%s}, "
             "\"evaluation\": {\"every\": 4}, %s\"out\": \"%s\"}",
             s->model, STEPS, micro, wave, s->optimizer, s->scheduler, kept, stored,
             more, s->out);
}

static void open_story(const story *s, int micro, int wave, const char *resume,
                       trial *t) {
    char text[TEXT_MAX];
    print_run(s, micro, wave, text);
    run_options options = {.text = text,
                           .own_train = s->data->dataset,
                           .own_validation = s->data->dataset,
                           .resume = resume};
    trial_open(t, &options);
}

static void unbroken(const story *s, tr_step_result results[STEPS], snapshot *start,
                     snapshot *end) {
    trial t;
    open_story(s, 2, 1, "never", &t);
    snapshot_take(start, &t);
    trial_steps(&t, STEPS, results);
    snapshot_take(end, &t);
    trial_close(&t);
}

static void save(trial *t) {
    tr_error err = {0};
    trial_ok(tr_engine_save(t->engine, &err), &err);
    trial_close(t);
}

static void check_results(const tr_step_result *a, const tr_step_result *b, int count) {
    for (int i = 0; i < count; i++) {
        tr_step_result x = a[i], y = b[i];
        x.seconds = y.seconds = x.wait_seconds = y.wait_seconds = 0;
        memset(&x.rank_seconds, 0, 3 * sizeof x.rank_seconds); // and those after it
        memset(&y.rank_seconds, 0, 3 * sizeof y.rank_seconds);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

// Stops after each possible step, a fresh process's worth of objects each time.
static void check_story(story *s) {
    tr_step_result whole[STEPS], part[STEPS];
    snapshot start, end, resumed;
    memset(whole, 0, sizeof whole);
    memset(part, 0, sizeof part);
    unbroken(s, whole, &start, &end);
    for (int stop = 1; stop < STEPS; stop += 3) {
        trial t;
        open_story(s, 2, 1, "never", &t);
        trial_steps(&t, stop, part);
        save(&t);
        open_story(s, 2, 1, "auto", &t);
        assert_int_equal(tr_engine_steps_done(t.engine), stop);
        trial_steps(&t, STEPS - stop, part + stop);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&resumed, &end);
        check_results(part, whole, STEPS);
        snapshot_free(&resumed);
        trial_close(&t);
    }
    snapshot_free(&start);
    snapshot_free(&end);
}

static void gpt2_with_dropout_over_epochs(void **state) {
    samples data;
    samples_tokens(&data, 17, 9, 53, 1);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    check_story(&s);
    samples_free(&data);
}

static void mlp_with_momentum(void **state) {
    samples data;
    samples_features(&data, 32, 7, 4, 2);
    story s = {mlp, "{\"type\": \"SGD\", \"params\": {\"lr\": 0.1, \"momentum\": 0.9}}",
               "{\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": 4}}", &data,
               scratch_path(state, "out")};
    check_story(&s);
    samples_free(&data);
}

static void other_optimizers(void **state) {
    static const char *const optimizers[] = {
        "{\"type\": \"Lion\", \"params\": {\"lr\": 3e-3, \"weight_decay\": 0.1}}",
        "{\"type\": \"Adagrad\", \"params\": {\"lr\": 3e-2, \"lr_decay\": 0.1, "
        "\"initial_accumulator_value\": 0.1}}",
        "{\"type\": \"Lamb\", \"params\": {\"lr\": 3e-3, \"weight_decay\": 0.1}}",
        "{\"type\": \"LARS\", \"params\": {\"lr\": 2}}",
    };
    static const char *const outs[] = {"out-0", "out-1", "out-2", "out-3"};
    samples data;
    samples_features(&data, 32, 7, 4, 2);
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        story s = {mlp, optimizers[i],
                   "{\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": 4}}",
                   &data, scratch_path(state, outs[i])};
        check_story(&s);
    }
    samples_free(&data);
}

// An optimizer without state saves none and needs none.
static void mlp_without_state(void **state) {
    samples data;
    samples_features(&data, 32, 7, 4, 2);
    story s = {mlp, "{\"type\": \"SGD\", \"params\": {\"lr\": 0.1}}",
               "{\"type\": \"constant\"}", &data, scratch_path(state, "out")};
    check_story(&s);
    samples_free(&data);
}

// Weights that are written in bf16 come back in f32.
static void written_in_bf16(void **state) {
    samples data, features;
    samples_tokens(&data, 17, 9, 53, 1);
    samples_features(&features, 32, 7, 4, 2);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    story no_state = {mlp, "{\"type\": \"SGD\", \"params\": {\"lr\": 0.1}}",
                      "{\"type\": \"constant\"}", &features,
                      scratch_path(state, "other")};
    stored = ", \"dtype\": \"bf16\", \"shard_bytes\": 9000";
    check_story(&s);
    check_story(&no_state);
    stored = "";
    samples_free(&data);
    samples_free(&features);
}

// How many tensors of the newest checkpoint's optimizer are of parameters that begin
// with `prefix`.
static size_t count_states(const story *s, const char *prefix) {
    char path[PATH_MAX];
    tr_tensor_set *set = NULL;
    tr_error err = {0};
    size_t count = 0;
    snprintf(path, sizeof path, "%s/checkpoints/latest/optimizer.safetensors", s->out);
    trial_ok(tr__tensor_set_open(path, &set, &err), &err);
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const char *name = tr__tensor_set_at(set, i)->name;
        count += strncmp(name, prefix, strlen(prefix)) == 0;
    }
    tr__tensor_set_close(set);
    return count;
}

// Also in 16 bits: frozen parameters come back as they began, in f32.
static void with_frozen_parameters(void **state) {
    static const char *const keys[] = {
        "\"freeze\": [\"*w?e*\", \"*.h.0.*\"], ",
        "\"freeze\": [\"*w?e*\", \"*.h.0.*\"], \"bf16\": {\"enabled\": true}, ",
    };
    samples data;
    samples_tokens(&data, 17, 9, 53, 1);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        more = keys[i];
        check_story(&s);
        assert_int_equal(count_states(&s, "transformer.w"), 0);
        assert_int_equal(count_states(&s, "transformer.h.0."), 0);
        assert_int_equal(count_states(&s, "transformer.h.1."), 2 * 12);
    }
    more = "";
    samples_free(&data);
}

// A checkpoint is of no cut: it resumes into another micro-batch and wave.
static void into_another_cut(void **state) {
    static const int cuts[][2] = {{1, 6}, {3, 2}, {4, 1}, {6, 1}, {1, 3}};
    samples data;
    samples_tokens(&data, 17, 9, 53, 3);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    tr_step_result whole[STEPS];
    snapshot start, end, resumed;
    unbroken(&s, whole, &start, &end);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        trial t;
        open_story(&s, 2, 1, "never", &t);
        trial_steps(&t, 4, NULL);
        save(&t);
        open_story(&s, cuts[i][0], cuts[i][1], "auto", &t);
        trial_steps(&t, STEPS - 4, NULL);
        snapshot_take(&resumed, &t);
        snapshot_assert_close(&start, &end, &resumed, 1e-4, "resumed");
        snapshot_free(&resumed);
        trial_close(&t);
    }
    snapshot_free(&start);
    snapshot_free(&end);
    samples_free(&data);
}

// ---- in slices

static void open_sliced(const story *s, int slices, const char *resume, trial *t) {
    char text[TEXT_MAX], setting[64];
    const char *set = setting;
    print_run(s, 2, 3, text);
    snprintf(setting, sizeof setting, "execution.vocabulary_slices=%d", slices);
    run_options options = {.text = text,
                           .set = &set,
                           .set_count = 1,
                           .own_train = s->data->dataset,
                           .resume = resume};
    trial_open(t, &options);
}

static void assert_same_files(const char *out, const char *other) {
    tr_error err = {0};
    tr_diff *diff = NULL;
    trial_ok(tr_checkpoint_diff(out, other, &diff, &err), &err);
    assert_true(diff->identical && diff->optimizer_a && diff->optimizer_b);
    tr_diff_destroy(diff);
}

// What one number of slices has saved resumes with another: read, it is the same to the
// bit, in memory and saved again, and trained on, the same but for rounding.
static void into_other_slices(void **state) {
    static const int ways[][2] = {{1, 3}, {3, 1}, {3, 7}};
    samples data;
    samples_tokens(&data, 17, 9, 53, 3);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    story again = s;
    tr_step_result whole[STEPS];
    snapshot start, end, saved, resumed;
    unbroken(&s, whole, &start, &end);
    again.out = scratch_path(state, "again");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        trial t;
        tr_error err = {0};
        open_sliced(&s, ways[i][0], "never", &t);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&resumed, &start); // drawn alike
        snapshot_free(&resumed);
        trial_steps(&t, 4, NULL);
        snapshot_take(&saved, &t);
        save(&t);
        open_sliced(&again, ways[i][1], s.out, &t);
        snapshot_take(&resumed, &t);
        snapshot_assert_same(&resumed, &saved);
        snapshot_free(&resumed);
        trial_ok(tr_engine_save(t.engine, &err), &err);
        assert_same_files(s.out, again.out);
        trial_steps(&t, STEPS - 4, NULL);
        snapshot_take(&resumed, &t);
        snapshot_assert_close(&start, &end, &resumed, 1e-4, "resumed");
        snapshot_free(&resumed);
        snapshot_free(&saved);
        trial_close(&t);
    }
    snapshot_free(&start);
    snapshot_free(&end);
    samples_free(&data);
}

// A parameter is its whole tensor: one in slices has no one place. A discrete device
// shows none.
static void a_sliced_tensor_is_no_one_parameter(void **state) {
    samples data;
    trial t;
    int64_t count = 0;
    samples_tokens(&data, 17, 9, 53, 3);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    for (int slices = 1; slices <= 2; slices++) {
        open_sliced(&s, slices, "never", &t);
        const float *wte =
            tr_engine_parameter(t.engine, "transformer.wte.weight", &count);
        bool seen = !t.plan->request.discrete;
        assert_int_equal(wte != NULL, slices == 1 && seen);
        assert_null(
            tr_engine_parameter(t.engine, "transformer.wte.weight[0:26]", NULL));
        const float *wpe =
            tr_engine_parameter(t.engine, "transformer.wpe.weight", &count);
        assert_int_equal(wpe != NULL, seen);
        assert_int_equal(count, 9 * 24);
        trial_close(&t);
    }
    samples_free(&data);
}

// ---- begun anew where another run was

typedef struct heard {
    char warning[512], note[512]; // the last ones
} heard;

static void hear(void *user, tr_message_level level, const char *line) {
    heard *h = user;
    char *to = level == TR_MESSAGE_WARNING ? h->warning : h->note;
    snprintf(to, sizeof h->note, "%s", line);
}

static void open_heard(const story *s, const char *resume, heard *h, trial *t) {
    char text[TEXT_MAX];
    print_run(s, 2, 1, text);
    run_options options = {.text = text,
                           .own_train = s->data->dataset,
                           .own_validation = s->data->dataset,
                           .resume = resume,
                           .messages = {hear, h}};
    *h = (heard){"", ""};
    trial_open(t, &options);
}

// The earlier run's later checkpoints do not outlive the first one of the new run: else
// the next resume could take them, were `latest` lost.
static void begun_anew(void **state) {
    samples data;
    heard h;
    trial t;
    tr_error err = {0};
    samples_features(&data, 32, 7, 4, 2);
    story s = {mlp, adamw, one_cycle, &data, scratch_path(state, "out")};
    open_heard(&s, "never", &h, &t);
    assert_null(strstr(h.warning, "of an earlier run")); // nothing is there
    trial_steps(&t, 8, NULL);
    save(&t);
    open_heard(&s, "never", &h, &t);
    assert_non_null(strstr(h.warning, "1 of an earlier run, up to step 8"));
    trial_steps(&t, 2, NULL);
    trial_ok(tr_engine_save(t.engine, &err), &err);
    assert_string_equal(h.note, "removed 1 checkpoint of an earlier run");
    h.note[0] = '\0';
    trial_steps(&t, 1, NULL);
    save(&t);
    assert_string_equal(h.note, ""); // its own are no earlier run's
    assert_int_equal(remove(scratch_path(state, "out/checkpoints/latest")), 0);
    open_heard(&s, "auto", &h, &t);
    assert_int_equal(tr_engine_steps_done(t.engine), 3);
    trial_close(&t);
    samples_free(&data);
}

// ---- checkpoints of something else

static void check_refused(const story *s, const char *setting, const char *says) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t = {0};
    print_run(s, 2, 1, text);
    run_options options = {.text = text,
                           .set = &setting,
                           .set_count = setting != NULL,
                           .own_train = s->data->dataset,
                           .resume = "auto"};
    trial_ok(run_open(&options, &t.run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(t.run), &t.plan, &err), &err);
    assert_int_equal(tr_engine_create(t.run, t.plan, &t.engine, &err), TR_IO);
    assert_null(t.engine);
    if (!strstr(err.message, says) || !strstr(err.message, "step-00000002")) {
        fail_msg("%s", err.message);
    }
    trial_close(&t);
}

static void of_something_else_is_refused(void **state) {
    samples data, other;
    trial t;
    samples_features(&data, 32, 7, 4, 2);
    samples_features(&other, 33, 7, 4, 2);
    story s = {mlp, adamw, one_cycle, &data, scratch_path(state, "out")};
    open_story(&s, 2, 1, "never", &t);
    trial_steps(&t, 2, NULL);
    save(&t);
    check_refused(&s, "seed=6", "was trained with seed 5, and this run has seed 6");
    check_refused(&s, "model.layer_sizes=[7, 24, 4]",
                  "is a checkpoint of another model");
    check_refused(&s, "optimizer.groups=[]",
                  "1 of optimizer.groups, and this run has 0");
    check_refused(&s, "freeze=*.bias", "was trained with another \"freeze\"");
    s.data = &other;
    check_refused(&s, NULL, "was trained on other data");
    s.data = &data;
    s.optimizer = "{\"type\": \"SGD\", \"params\": {\"momentum\": 0.9}, "
                  "\"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0}]}";
    check_refused(&s, NULL, "another optimizer (adam) than this run's, which is sgd");
    s.optimizer = "{\"type\": \"Lion\", " // whose state has the name of one of Adam's
                  "\"groups\": [{\"match\": \"*.bias\", \"weight_decay\": 0}]}";
    check_refused(&s, NULL, "another optimizer (adam) than this run's, which is lion");
    samples_free(&data);
    samples_free(&other);
}

// ---- the whole loop: metrics, evaluations, checkpoints

typedef struct countdown {
    int left; // questions until the answer is yes
} countdown;

static bool is_over(void *user) {
    countdown *count = user;
    return count->left-- == 0;
}

static void train(trial *t, bool (*stop)(void *user), void *user, tr_status expected) {
    tr_error err = {0};
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    options.stop = stop;
    options.stop_user = user;
    tr_status status = tr_engine_train(t->engine, &options, &err);
    if (status != expected) {
        fail_msg("%s: %s", tr_status_words(status), err.message);
    }
}

static void begin(trial *t) {
    tr_error err = {0};
    trial_ok(tr_run_begin(t->run, t->plan, &err), &err);
}

static void check_metrics(const char *out, const char *whole) {
    json_t *a = metrics_read(out), *b = metrics_read(whole);
    assert_int_equal(json_array_size(a), json_array_size(b));
    for (size_t i = 0; i < json_array_size(a); i++) {
        char *x = json_dumps(json_array_get(a, i), JSON_COMPACT);
        char *y = json_dumps(json_array_get(b, i), JSON_COMPACT);
        assert_string_equal(x, y);
        free(x);
        free(y);
    }
    json_decref(a);
    json_decref(b);
}

// Asked to stop at every possible moment, many times in one run: each time the
// unfinished step is dropped, and the end is that of the unbroken run, metrics
// included.
static void interrupted_anywhere(void **state) {
    samples data;
    samples_tokens(&data, 17, 9, 53, 4);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "whole")};
    snapshot end, resumed;
    trial t;
    open_story(&s, 2, 1, "never", &t);
    begin(&t);
    train(&t, NULL, NULL, TR_OK);
    size_t steps = t.plan->sequences[TR_SEQUENCE_TRAIN].count;
    snapshot_take(&end, &t);
    trial_close(&t);
    s.out = scratch_path(state, "broken");
    countdown count = {.left = (int)steps / 2};
    // More patience each time: an evaluation that is interrupted begins anew.
    for (int round = 0;; round++) {
        open_story(&s, 2, 1, "auto", &t);
        begin(&t);
        int64_t done = tr_engine_steps_done(t.engine);
        if (done + 1 >= STEPS) {
            break;
        }
        train(&t, is_over, &count, TR_INTERRUPTED);
        count.left = (int)(steps + steps / 3 + (size_t)done) + round;
        trial_close(&t);
    }
    train(&t, NULL, NULL, TR_OK);
    snapshot_take(&resumed, &t);
    trial_close(&t);
    snapshot_assert_same(&resumed, &end);
    check_metrics(s.out, scratch_path(state, "whole"));
    snapshot_free(&end);
    snapshot_free(&resumed);
    samples_free(&data);
}

// The same engine goes on after an interruption: the dropped step's data come again.
static void goes_on_after_an_interruption(void **state) {
    samples data;
    samples_tokens(&data, 17, 9, 53, 4);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    tr_step_result whole[STEPS];
    snapshot start, end, went_on;
    unbroken(&s, whole, &start, &end);
    trial t;
    open_story(&s, 2, 1, "never", &t);
    begin(&t);
    for (int i = 1; i < 4; i++) {
        countdown count = {.left = 7 * i};
        train(&t, is_over, &count, TR_INTERRUPTED);
    }
    trial_steps(&t, STEPS - tr_engine_steps_done(t.engine), NULL);
    snapshot_take(&went_on, &t);
    snapshot_assert_same(&went_on, &end);
    trial_close(&t);
    snapshot_free(&start);
    snapshot_free(&end);
    snapshot_free(&went_on);
    samples_free(&data);
}

// While one run is at work in a folder, no other one begins there.
static void one_at_a_time(void **state) {
    samples data;
    samples_tokens(&data, 17, 9, 53, 4);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    trial first, second;
    tr_error err = {0};
    open_story(&s, 2, 1, "never", &first);
    begin(&first);
    begin(&first); // again is no other run
    open_story(&s, 2, 1, "auto", &second);
    assert_int_equal(tr_run_begin(second.run, second.plan, &err), TR_IO);
    assert_non_null(strstr(err.message, "out: another run is at work in this folder"));
    trial_close(&first);
    begin(&second);
    trial_close(&second);
    samples_free(&data);
}

// Of which step a rollback of this trial would take the weights, and what they are.
static int64_t roll_back(trial *t) {
    int64_t to = -1;
    tr_error err = {0};
    trial_ok(tr_engine_rollback(t->engine, &to, &err), &err);
    return to;
}

static void save_at(trial *t, int64_t step) {
    tr_error err = {0};
    trial_steps(t, step - tr_engine_steps_done(t->engine), NULL);
    trial_ok(tr_engine_save(t->engine, &err), &err);
}

static bool is_there(void **state, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/checkpoints/%s", scratch_path(state, "out"), name);
    return access(path, F_OK) == 0;
}

// After a resume from an older checkpoint, those that came after it are another
// branch's: no rollback takes them, and the first checkpoint moves them aside.
static void rollback_after_an_older_resume(void **state) {
    char older[PATH_MAX];
    samples data;
    samples_tokens(&data, 17, 9, 53, 4);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    trial t;
    kept = 3;
    open_story(&s, 2, 1, "never", &t);
    begin(&t);
    save_at(&t, 4);
    save_at(&t, 6);
    assert_int_equal(roll_back(&t), 6);
    trial_close(&t);
    snprintf(older, sizeof older, "%s/checkpoints/step-00000004", s.out);
    open_story(&s, 2, 1, older, &t);
    begin(&t);
    trial_steps(&t, 3, NULL);
    assert_int_equal(tr_engine_steps_done(t.engine), 7);
    assert_int_equal(roll_back(&t), 4);
    assert_true(is_there(state, "step-00000006")); // nothing is done before a save
    trial_close(&t);
    open_story(&s, 2, 1, older, &t);
    begin(&t);
    save_at(&t, 5);
    assert_true(is_there(state, "step-00000004"));
    assert_false(is_there(state, "step-00000006"));
    assert_true(is_there(state, "step-00000006.abandoned/state.json"));
    trial_steps(&t, 2, NULL);
    assert_int_equal(roll_back(&t), 5);
    trial_close(&t);
    open_story(&s, 2, 1, "auto", &t);
    begin(&t);
    assert_int_equal(tr_engine_steps_done(t.engine), 5);
    save_at(&t, 6);
    assert_true(is_there(state, "step-00000005"));
    assert_true(is_there(state, "step-00000006.abandoned/state.json"));
    trial_close(&t);
    samples_free(&data);
    kept = 1;
}

// What was resumed from elsewhere has none of its own in the folder.
static void rollback_after_a_resume_from_elsewhere(void **state) {
    char other[PATH_MAX];
    samples data;
    samples_tokens(&data, 17, 9, 53, 4);
    story s = {gpt2, adamw, one_cycle, &data, scratch_path(state, "out")};
    trial t;
    open_story(&s, 2, 1, "never", &t);
    begin(&t);
    save_at(&t, 2);
    trial_close(&t);
    s.out = scratch_path(state, "elsewhere");
    open_story(&s, 2, 1, "never", &t);
    begin(&t);
    save_at(&t, 4);
    trial_close(&t);
    snprintf(other, sizeof other, "%s/checkpoints/latest", s.out);
    s.out = scratch_path(state, "out");
    open_story(&s, 2, 1, other, &t);
    begin(&t);
    trial_steps(&t, 1, NULL);
    assert_int_equal(roll_back(&t), -1);
    trial_close(&t);
    samples_free(&data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gpt2_with_dropout_over_epochs),
        TEST(mlp_with_momentum),
        TEST(other_optimizers),
        TEST(mlp_without_state),
        TEST(written_in_bf16),
        TEST(with_frozen_parameters),
        TEST(into_another_cut),
        TEST(into_other_slices),
        TEST(a_sliced_tensor_is_no_one_parameter),
        TEST(begun_anew),
        TEST(of_something_else_is_refused),
        TEST(interrupted_anywhere),
        TEST(goes_on_after_an_interruption),
        TEST(one_at_a_time),
        TEST(rollback_after_an_older_resume),
        TEST(rollback_after_a_resume_from_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
