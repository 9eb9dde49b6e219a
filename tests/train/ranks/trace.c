// Run on W ranks: the trace of a step has every step of the plan of every rank once,
// with times that can be; a step that is watched takes no memory.
#include "base/clock.h"
#include "base/memory.h"
#include "on_ranks.h"
#include "plan/flow/residency.h"
#include "plan/flow/wave.h"
#include "train/own_model.h"
#include "train/samples.h"
#include "train/scratch.h"
#include "train/trial.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 4 };

static tr_comm *comm;
static samples data;

// Units with a mean over the batch end their segments together.
static void open_run(trial *t, own_model *own, const char *zero) {
    char text[640];
    snprintf(text, sizeof text,
             "{\"steps\": 9, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": {%s}, "
             "\"execution\": {\"threads\": 1}, \"out\": \"unused\"}",
             6 * tr_comm_ranks(comm), zero);
    own_model_make(own, true, 0);
    run_options options = {.text = text,
                           .own_model = &own->model,
                           .own_train = data.dataset,
                           .comm = tr_comm_ranks(comm) > 1 ? comm : NULL,
                           .resume = "never"};
    trial_open(t, &options);
}

// Ranks do the same in as many steps, but for pieces of updates from NVMe: the first,
// with the largest parts, has most of them.
typedef struct seen {
    int spans[RANKS_MOST];
    double end[RANKS_MOST][TR_STREAMS]; // of the last span
    double latest;
} seen;

static void look_at(const tr_plan *plan, const json_t *event, seen *s) {
    int rank = (int)json_integer_value(json_object_get(event, "pid"));
    int stream = (int)json_integer_value(json_object_get(event, "tid"));
    const json_t *step = json_object_get(json_object_get(event, "args"), "step");
    double begin = json_real_value(json_object_get(event, "ts"));
    double takes = json_real_value(json_object_get(event, "dur"));
    assert_true(rank >= 0 && rank < tr_comm_ranks(comm));
    if (!step) { // the name of a process or thread
        return;
    }
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    const tr_plan_step *of = &sequence->steps[json_integer_value(step)];
    if (rank == 0 || !tr__plan_uses_nvme(plan)) {
        assert_int_equal(of->stream, stream);
        assert_string_equal(tr__verb_name(of->label.verb),
                            json_string_value(json_object_get(event, "cat")));
    }
    assert_true(takes >= 0 && begin >= s->end[rank][stream] - 0.002); // printed in ns
    s->end[rank][stream] = begin + takes;
    s->latest = begin + takes > s->latest ? begin + takes : s->latest;
    s->spans[rank]++;
}

static void check_trace(const tr_plan *plan, const char *path, int spans,
                        double seconds) {
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem), *event;
    size_t index;
    seen s = {0};
    if (!root) {
        fail_msg("%s:%d: %s", path, problem.line, problem.text);
    }
    json_array_foreach(json_object_get(root, "traceEvents"), index, event) {
        look_at(plan, event, &s);
    }
    for (int r = 0; r < tr_comm_ranks(comm); r++) {
        bool fewer = r > 0 && tr__plan_uses_nvme(plan);
        assert_true(s.spans[r] == spans || (fewer && s.spans[r] > spans / 2));
    }
    assert_true(s.latest > 0 && s.latest < 1e6 * seconds);
    json_decref(root);
}

// Every step is there once, but for updates that the step before has not left.
static int count_spans(const tr_plan *plan) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    int spans = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        bool left_out =
            sequence->steps[i].label.verb == TR_VERB_update &&
            sequence->steps[i].guard == TR_GUARD_DEFERRED; // of no step before
        spans += !left_out;
    }
    return spans;
}

static void check_setting(const char *path, const char *zero) {
    own_model own;
    trial t;
    tr_error err = {0};
    open_run(&t, &own, zero);
    assert_int_equal(tr_engine_write_trace(t.engine, path, &err), TR_USAGE);
    trial_steps(&t, 2, NULL);
    double begin = tr__seconds();
    trial_ok(tr_engine_watch(t.engine, &err), &err);
    int64_t before = tr__memory_calls();
    trial_steps(&t, 2, NULL); // what counts is the last
    assert_int_equal(tr__memory_calls(), before);
    err = (tr_error){0};
    trial_ok(tr_engine_write_trace(t.engine, path, &err), &err);
    // Only now have the other ranks, too, come to the end of the step.
    double seconds = tr__seconds() - begin;
    if (tr_comm_rank(comm) == 0) {
        check_trace(t.plan, path, count_spans(t.plan), seconds);
    }
    // Once more, over the first.
    trial_ok(tr_engine_watch(t.engine, &err), &err);
    trial_steps(&t, 1, NULL);
    trial_ok(tr_engine_write_trace(t.engine, path, &err), &err);
    // All ranks hear of a file that cannot be written.
    trial_ok(tr_engine_watch(t.engine, &err), &err);
    trial_steps(&t, 1, NULL);
    assert_int_equal(tr_engine_write_trace(t.engine, "/no/such/folder", &err), TR_IO);
    trial_close(&t);
}

static void every_step_is_there(void **state) {
    static const char *const settings[] = {
        "\"stage\": 0",
        "\"stage\": 1",
        "\"stage\": 2",
        "\"stage\": 3",
        "\"stage\": 1, \"offload_optimizer\": {\"device\": \"cpu\"}",
        "\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}, "
        "\"offload_param\": {\"device\": \"cpu\"}",
        "\"stage\": 3, \"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": "
        "\"/tmp\"}, \"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"/tmp\"}",
    };
    samples_features(&data, 64, OWN_FEATURES, OWN_CLASSES, 7);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        check_setting(scratch_path(state, "trace.json"), settings[i]);
    }
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_step_is_there, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}
