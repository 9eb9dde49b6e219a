// Labels: threads
// One thread of one process calls an engine at a time: a call from another one, from a
// function that the engine calls, or from a child of fork() is refused, and the engine
// goes on as if it had not been made.
#include "scratch.h"
#include "trial.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEATURES = 4, CLASSES = 3, SAMPLES = 24, CALLS = 4 };

static const char text[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [4, 6, 3]}, \"steps\": 20, "
    "\"train_batch_size\": 8, \"execution\": {\"threads\": 1}, \"optimizer\": "
    "{\"type\": "
    "\"Adam\"}}";

// What is called while the engine is at work, and what came of it.
typedef struct intruder {
    tr_engine *engine; // NULL: nothing is called
    bool same_thread;
    tr_status status[CALLS];
    tr_error err[CALLS];
    tr_dataset *data;
} intruder;

static void *call_all(void *user) {
    intruder *i = user;
    tr_step_result result = TR_STEP_RESULT_INIT;
    float value;
    i->status[0] = tr_engine_step(i->engine, &result, &i->err[0]);
    i->status[1] = tr_engine_save(i->engine, &i->err[1]);
    i->status[2] = tr_engine_read(i->engine, "layers.0.weight", "values", 0, 1, &value,
                                  &i->err[2]);
    i->status[3] = tr_engine_train(i->engine, NULL, &i->err[3]);
    return NULL;
}

// Is called within a step.
static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    intruder *i = user;
    (void)err;
    if (i->engine && i->same_thread) {
        call_all(i);
    } else if (i->engine) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, call_all, i), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    i->engine = NULL; // once
    for (int64_t row = 0; row < count; row++) {
        for (int f = 0; f < FEATURES; f++) {
            ((float *)rows[0])[row * FEATURES + f] =
                (float)((index[row] * 5 + f) % 7) - 3;
        }
        ((int32_t *)rows[1])[row] = (int32_t)(index[row] % CLASSES);
    }
    return TR_OK;
}

static void begin(trial *t, intruder *i, const char *out) {
    tr_error err = {0};
    *i = (intruder){0};
    const tr_dataset_source source = {.size = sizeof(tr_dataset_source),
                                      .samples = SAMPLES,
                                      .tensors = tr_batch_features(FEATURES),
                                      .classes = CLASSES,
                                      .read = read_rows,
                                      .user = i,
                                      .on_calling_thread = true};
    trial_ok(tr_dataset_create_callback(&source, &i->data, &err), &err);
    run_options options = {
        .text = text, .own_train = i->data, .out = out, .resume = "never"};
    trial_open(t, &options);
}

static void end(trial *t, intruder *i) {
    trial_close(t);
    tr_dataset_destroy(i->data);
}

static double loss_of(trial *t) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    trial_steps(t, 1, &result);
    return result.loss;
}

static void intruders_are_refused(void **state) {
    static const char *const says[] = {"one thread calls it at a time", "is at work"};
    trial quiet, t;
    intruder none, i;
    begin(&quiet, &none, scratch_path(state, "quiet"));
    begin(&t, &i, scratch_path(state, "out"));
    for (int same = 0; same < 2; same++) {
        i.same_thread = same;
        i.engine = t.engine;
        assert_true(loss_of(&t) == loss_of(&quiet));
        assert_null(i.engine);
        for (int c = 0; c < CALLS; c++) {
            assert_int_equal(i.status[c], TR_USAGE);
            assert_non_null(strstr(i.err[c].message, says[same]));
            i.err[c] = (tr_error){0};
        }
        assert_true(loss_of(&t) == loss_of(&quiet));
    }
    // Between two steps another thread may call it.
    pthread_t thread;
    intruder other = {.engine = t.engine};
    assert_int_equal(pthread_create(&thread, NULL, call_all, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int c = 0; c < CALLS; c++) {
        trial_ok(other.status[c], &other.err[c]);
    }
    end(&t, &i);
    end(&quiet, &none);
}

// ---- what tr_engine_train tells of each step

typedef struct listener {
    trial *t;
    intruder calls;
    int told, evaluated;
    int64_t step;
    float weight; // the first of the newest step
} listener;

static void listen(void *user, const tr_step_result *result,
                   const tr_evaluation *evaluation) {
    listener *l = user;
    tr_error err = {0};
    tr_evaluation made = TR_EVALUATION_INIT;
    pthread_t thread;
    l->told++;
    l->step = result->step;
    trial_ok(tr_engine_read(l->t->engine, "layers.0.weight", "values", 0, 1, &l->weight,
                            &err),
             &err);
    trial_ok(tr_engine_evaluate(l->t->engine, 0, &made, &err), &err);
    if (evaluation) {
        l->evaluated++;
        assert_true(made.loss == evaluation->loss);
    }
    trial_ok(tr_engine_save(l->t->engine, &err), &err);
    tr_step_result another = TR_STEP_RESULT_INIT;
    tr_error refused = {0};
    assert_int_equal(tr_engine_step(l->t->engine, &another, &refused), TR_USAGE);
    assert_non_null(strstr(refused.message, "makes none itself"));
    assert_int_equal(tr_engine_train(l->t->engine, NULL, NULL), TR_USAGE);
    l->calls.engine = l->t->engine; // the engine is no other thread's
    assert_int_equal(pthread_create(&thread, NULL, call_all, &l->calls), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int c = 0; c < CALLS; c++) {
        assert_int_equal(l->calls.status[c], TR_USAGE);
    }
}

static float train_to_the_end(void **state, const char *name, listener *l) {
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    tr_error err = {0};
    trial t;
    float weight;
    run_options how = {
        .text = "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [4, 6, 3]}, "
                "\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 4, "
                "\"classes\": 3, \"validation\": 0.2}, \"steps\": 9, "
                "\"train_batch_size\": 8, \"evaluation\": {\"every\": 3}, "
                "\"execution\": {\"threads\": 1}}",
        .out = scratch_path(state, name),
        .resume = "never"};
    trial_open(&t, &how);
    if (l) {
        l->t = &t;
        options.stepped = listen;
        options.stepped_user = l;
    }
    trial_ok(tr_run_begin(t.run, t.plan, &err), &err);
    trial_ok(tr_engine_train(t.engine, &options, &err), &err);
    trial_ok(tr_engine_read(t.engine, "layers.0.weight", "values", 0, 1, &weight, &err),
             &err);
    trial_close(&t);
    return weight;
}

// Who is told of a step may ask the engine and save it: that changes no bit.
static void who_is_told_may_ask(void **state) {
    listener l = {0};
    float quiet = train_to_the_end(state, "quiet", NULL);
    float told = train_to_the_end(state, "told", &l);
    assert_int_equal(l.told, 9);
    assert_int_equal(l.evaluated, 3);
    assert_int_equal(l.step, 9);
    assert_true(told == quiet);
    assert_true(l.weight == quiet);
}

static bool is_child;

#ifdef __SANITIZE_ADDRESS__
// LeakSanitizer asks this at the exit. A child has no thread of the parent's but one,
// so what the others hold would be taken for lost there; the parent looks at its own.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return is_child;
}
#endif

// What the child does with the engine; its exit status says whether all was as it
// should.
static int in_child(trial *t) {
    tr_step_result result = TR_STEP_RESULT_INIT;
    tr_error err = {0};
    bool refused = tr_engine_step(t->engine, &result, &err) == TR_USAGE &&
                   strstr(err.message, "fork()");
    trial_close(t);
    return refused ? 0 : 1;
}

static void a_child_owns_no_engine(void **state) {
    trial t, quiet;
    int status = -1;
    (void)state;
    run_options options = {
        .text = "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [4, 6, 3]}, "
                "\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 4, "
                "\"classes\": 3}, \"steps\": 9, \"train_batch_size\": 8, \"out\": "
                "\"unused\", \"execution\": {\"threads\": 1}}",
        .resume = "never"};
    trial_open(&t, &options);
    trial_open(&quiet, &options);
    assert_true(loss_of(&t) == loss_of(&quiet));
    pid_t child = fork();
    if (child == 0) {
        is_child = true;
        alarm(60); // where it hangs, it ends with a signal
        exit(in_child(&t));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(loss_of(&t) == loss_of(&quiet));
    }
    trial_close(&t);
    trial_close(&quiet);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(intruders_are_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(a_child_owns_no_engine),
        cmocka_unit_test_setup_teardown(who_is_told_may_ask, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
