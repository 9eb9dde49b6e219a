// tr_engine_train with no files: it tells the program of its steps, writes nothing, and
// comes to the same weights.
#include "samples.h"
#include "scratch.h"
#include "snapshot.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 6, TEXT_MAX = 1024 };

typedef struct told {
    int64_t steps, evaluations, last_step, evaluated;
    double loss;
    int stop_after, lines, metrics;
    tr_engine *engine;
} told;

static void stepped(void *user, const tr_step_result *result,
                    const tr_evaluation *evaluation) {
    told *t = user;
    t->steps++;
    t->last_step = result->step;
    t->loss = result->loss;
    assert_int_equal(tr_engine_steps_done(t->engine), result->step);
    assert_int_equal(result->size, sizeof *result);
    if (evaluation) {
        t->evaluations++;
        t->evaluated = result->step;
        assert_true(evaluation->samples > 0 && evaluation->loss > 0);
        assert_int_equal(evaluation->size, sizeof *evaluation);
    }
}

static bool stop(void *user) {
    told *t = user;
    return t->stop_after > 0 && t->steps >= t->stop_after;
}

static void line(void *user, const char *text) {
    told *t = user;
    t->lines++;
    assert_null(strstr(text, "checkpoint"));
    assert_null(strstr(text, "saved"));
}

static void metrics(void *user, const char *text) {
    told *t = user;
    t->metrics++;
    assert_int_equal(strncmp(text, "{\"step\": ", 9), 0);
    assert_int_equal(text[strlen(text) - 1], '}');
}

static int entries(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        count += e->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void open_run(trial *t, samples *data, const char *more) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [6, 9, 3]}, "
             "\"train_batch_size\": 8, \"steps\": %d, \"evaluation\": {\"every\": 2}, "
             "\"checkpoint\": {\"every\": 1, \"best\": true}%s}",
             STEPS, more);
    trial_open_text(t, text, data->dataset, data->dataset);
}

static tr_train_options options_of(told *t) {
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    options.no_files = true;
    options.stepped = stepped;
    options.stepped_user = t;
    options.stop = stop;
    options.stop_user = t;
    options.screen.line = line;
    options.screen.user = t;
    options.metrics = metrics;
    options.metrics_user = t;
    return options;
}

static void nothing_is_written(void **state) {
    samples data;
    snapshot ends[2];
    trial t;
    tr_error err = {0};
    told heard = {0};
    samples_features(&data, 40, 6, 3, 5);
    assert_int_equal(chdir(*state), 0);
    open_run(&t, &data, "");
    heard.engine = t.engine;
    const tr_train_options options = options_of(&heard);
    trial_ok(tr_engine_train(t.engine, &options, &err), &err);
    assert_int_equal(entries(*state), 0);
    assert_int_equal(heard.steps, STEPS);
    assert_int_equal(heard.last_step, STEPS);
    assert_int_equal(heard.evaluations, STEPS / 2);
    assert_int_equal(heard.evaluated, STEPS);
    assert_true(heard.lines > 0);
    assert_int_equal(heard.metrics, STEPS + STEPS / 2 + 1); // and one epoch
    snapshot_end(ends, 0, &t);
    assert_int_equal(mkdir("there", 0700), 0);
    open_run(&t, &data, ", \"out\": \"there\"");
    trial_ok(tr_engine_train(t.engine, NULL, &err), &err);
    assert_true(entries("there") > 1); // without the option there are files
    snapshot_end(ends, 1, &t);
    snapshot_free(&ends[0]);
    snapshot_free(&ends[1]);
    samples_free(&data);
}

static void an_end_that_is_asked_for_writes_nothing(void **state) {
    samples data;
    trial t;
    tr_error err = {0};
    told heard = {.stop_after = 2};
    samples_features(&data, 40, 6, 3, 5);
    assert_int_equal(chdir(*state), 0);
    open_run(&t, &data, "");
    heard.engine = t.engine;
    const tr_train_options options = options_of(&heard);
    assert_int_equal(tr_engine_train(t.engine, &options, &err), TR_INTERRUPTED);
    assert_int_equal(heard.steps, 2);
    assert_int_equal(entries(*state), 0);
    heard.stop_after = 0;
    err = (tr_error){0};
    trial_ok(tr_engine_train(t.engine, &options, &err), &err);
    assert_int_equal(heard.steps, STEPS);
    assert_int_equal(entries(*state), 0);
    trial_close(&t);
    samples_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_written, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(an_end_that_is_asked_for_writes_nothing,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
