// Labels: threads check
// The library as a guest in a process: a whole training prints nothing and leaves the
// process as it was, and runs in two threads at once come to what they come to in turn.
#include "samples.h"
#include "scratch.h"
#include "trial.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 2048, WORDS_MAX = 4096, SIGNALS = 32, STEPS = 5, THREADS = 2 };

extern char **environ;

static void print_run(void **state, const char *out, int seed, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"data\": {\"format\": \"random\", \"samples\": 40, \"features\": 6, "
             "\"classes\": 3, \"validation\": 0.2}, \"steps\": %d, \"seed\": %d, "
             "\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 3, "
             "\"evaluation\": {\"every\": 2}, \"checkpoint\": {\"every\": 2}, "
             "\"execution\": {\"threads\": 1}, \"optimizer\": {\"type\": \"AdamW\"}, "
             "\"out\": \"%s\"}",
             STEPS, seed, scratch_path(state, out));
}

// ---- what of the process is the host's

typedef struct process {
    struct sigaction actions[SIGNALS];
    sigset_t blocked;
    cpu_set_t cores;
    char words[WORDS_MAX]; // locale, folder, environment
    int rounding, open_files;
    mode_t mask;
} process;

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static process look(void) {
    process p;
    char folder[1024];
    memset(&p, 0, sizeof p);
    for (int i = 1; i < SIGNALS; i++) {
        sigaction(i, NULL, &p.actions[i]);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &p.blocked);
    assert_int_equal(sched_getaffinity(0, sizeof p.cores, &p.cores), 0);
    assert_non_null(getcwd(folder, sizeof folder));
    uint64_t sum = 0;
    for (char **at = environ; *at; at++) {
        for (const char *c = *at; *c; c++) {
            sum = sum * 31 + (unsigned char)*c;
        }
    }
    snprintf(p.words, sizeof p.words, "%s; %s; %llx", setlocale(LC_ALL, NULL), folder,
             (unsigned long long)sum);
    p.rounding = fegetround();
    p.open_files = open_files();
    p.mask = umask(022);
    umask(p.mask);
    return p;
}

static void assert_same_process(const process *a, const process *b) {
    for (int i = 1; i < SIGNALS; i++) {
        if (a->actions[i].sa_handler != b->actions[i].sa_handler) {
            fail_msg("signal %d has another handler", i);
        }
        assert_int_equal(sigismember(&a->blocked, i), sigismember(&b->blocked, i));
    }
    assert_true(CPU_EQUAL(&a->cores, &b->cores));
    assert_string_equal(a->words, b->words);
    assert_int_equal(a->rounding, b->rounding);
    assert_int_equal(a->open_files, b->open_files);
    assert_int_equal(a->mask, b->mask);
}

// Standard output and error into files, and back. Returns the bytes that were written.
typedef struct quiet {
    int kept[2], file[2];
} quiet;

static quiet begin_quiet(void **state) {
    quiet q;
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        q.kept[i] = dup(1 + i);
        q.file[i] = open(scratch_path(state, i ? "stderr" : "stdout"),
                         O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_true(q.kept[i] >= 0 && q.file[i] >= 0);
        dup2(q.file[i], 1 + i);
    }
    return q;
}

static int64_t end_quiet(quiet *q) {
    int64_t bytes = 0;
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        bytes += lseek(q->file[i], 0, SEEK_END);
        dup2(q->kept[i], 1 + i);
        close(q->kept[i]);
        close(q->file[i]);
    }
    return bytes;
}

// ---- the tests

typedef struct shown {
    int lines, lives;
    char text[WORDS_MAX];
} shown;

static void count_line(void *user, const char *text) {
    shown *s = user;
    size_t used = strlen(s->text);
    s->lines++;
    snprintf(s->text + used, sizeof s->text - used, "%s\n", text);
}

static void count_live(void *user, const char *text) {
    shown *s = user;
    s->lives += text && text[0];
}

static void train(const char *text, const tr_screen *screen) {
    run_options options = {.text = text, .resume = "never"};
    tr_train_options how = TR_TRAIN_OPTIONS_INIT;
    tr_error err = {0};
    trial t;
    if (screen) {
        how.screen = *screen;
    }
    trial_open(&t, &options);
    trial_ok(tr_run_begin(t.run, t.plan, &err), &err);
    trial_ok(tr_engine_train(t.engine, &how, &err), &err);
    trial_close(&t);
}

static void a_training_leaves_the_process_as_it_was(void **state) {
    char text[TEXT_MAX];
    print_run(state, "whole", 3, text);
    train(text, NULL); // OpenMP and oneDNN keep what they open first
    print_run(state, "again", 3, text);
    process before = look();
    quiet q = begin_quiet(state);
    train(text, NULL);
    int64_t bytes = end_quiet(&q);
    process after = look();
    assert_int_equal(bytes, 0);
    assert_same_process(&before, &after);
}

static void progress_goes_where_the_caller_says(void **state) {
    char text[TEXT_MAX];
    shown plain = {0}, live = {0};
    tr_screen screen = {.line = count_line, .user = &plain};
    quiet q = begin_quiet(state);
    print_run(state, "plain", 3, text);
    train(text, &screen);
    screen = (tr_screen){.line = count_line, .live = count_live, .user = &live};
    print_run(state, "live", 3, text);
    train(text, &screen);
    assert_int_equal(end_quiet(&q), 0);
    assert_non_null(strstr(plain.text, "step 5/5"));
    assert_non_null(strstr(plain.text, "done: 5 steps"));
    assert_int_equal(plain.lives, 0);
    assert_null(strstr(live.text, "step 5/5"));
    assert_true(live.lives >= 2); // the first step and the last
    assert_non_null(strstr(live.text, "done: 5 steps"));
}

static void bad_options_are_refused(void **state) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t;
    tr_train_options how = TR_TRAIN_OPTIONS_INIT;
    print_run(state, "bad", 3, text);
    run_options options = {.text = text, .resume = "never"};
    trial_open(&t, &options);
    how.size--;
    assert_int_equal(tr_engine_train(t.engine, &how, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "begin with TR_TRAIN_OPTIONS_INIT"));
    err = (tr_error){0};
    assert_int_equal(tr_engine_train(NULL, NULL, &err), TR_USAGE);
    trial_steps(&t, 1, NULL); // it is as it was
    trial_close(&t);
}

// A run of some steps, by one thread from beginning to end.
typedef struct job {
    char text[TEXT_MAX];
    float weights[54];
    double loss;
    tr_status status;
    tr_error err;
} job;

static void *work(void *user) {
    job *j = user;
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_step_result result = TR_STEP_RESULT_INIT;
    run_options options = {.text = j->text, .resume = "never"};
    j->status = run_open(&options, &run, &j->err);
    if (j->status == TR_OK) {
        j->status = tr_run_make_plan(run, &plan, &j->err);
    }
    if (j->status == TR_OK) {
        j->status = tr_engine_create(run, plan, &engine, &j->err);
    }
    while (j->status == TR_OK && result.step < STEPS) {
        j->status = tr_engine_step(engine, &result, &j->err);
    }
    j->loss = result.loss;
    if (j->status == TR_OK) {
        j->status = tr_engine_read(engine, "layers.0.weight", "values", 0, 54,
                                   j->weights, &j->err);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return NULL;
}

static void engines_in_several_threads(void **state) {
    static job turn[THREADS], once[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        print_run(state, "unused", 3 + i, turn[i].text);
        once[i] = turn[i];
        work(&turn[i]);
        trial_ok(turn[i].status, &turn[i].err);
    }
    assert_true(turn[0].loss != turn[1].loss);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, work, &once[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            trial_ok(once[i].status, &once[i].err);
            assert_true(once[i].loss == turn[i].loss);
            assert_memory_equal(once[i].weights, turn[i].weights,
                                sizeof turn[i].weights);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_training_leaves_the_process_as_it_was,
                                        scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(progress_goes_where_the_caller_says,
                                        scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(bad_options_are_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(engines_in_several_threads, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
