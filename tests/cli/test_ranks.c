// Labels: ranks slow
// The program on two ranks: one speaks and writes, all train, and what goes wrong on
// one of them ends both with its message.
#include "command.h"
#include "runs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of a process beside its tensors; sanitizers take more.
static const double ALLOWANCE = CAN_LIMIT_MEMORY ? 96 << 20 : 1 << 30;

static const setting shell = {.program = "/bin/sh"};

#define RANKS(...) LIST(TR_LAUNCH, TR_MPIRUN, "2", __VA_ARGS__)
#define TRAIN(...) RANKS(TR_PROGRAM, "train", "run.json", __VA_ARGS__)

// A rank of its own: a line of shell before its program, and options after those of
// all.
static void write_apart(void *const *state, int rank, const char *line,
                        const char *options) {
    char text[PATH_MAX + 512];
    int length =
        snprintf(text, sizeof text,
                 "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}\n"
                 "more=\n"
                 "if [ $rank = %d ]; then more='%s'; %s\nfi\n"
                 "exec %s train run.json --set checkpoint.every=1000000 $more \"$@\"\n",
                 rank, options, line, TR_PROGRAM);
    assert_true(length > 0 && (size_t)length < sizeof text);
    file_text(state, "apart.sh", text);
}

// Both ranks end with rank 1's message.
static void fail_apart(void *const *state, const char *options, int status,
                       const char *words) {
    write_apart(state, 1, ":", options);
    fail_with(state, &shell, RANKS("/bin/sh", "apart.sh"), status,
              LIST("rank 1: ", words));
}

static void succeed_on_ranks(void *const *state, const char *const *arguments) {
    outcome o = run_with(state, &shell, arguments);
    if (o.status != 0) {
        fail_msg("status %d\n%s%s", o.status, o.out, o.err);
    }
    outcome_free(&o);
}

static int count(const char *text, const char *words) {
    int found = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        found++;
    }
    return found;
}

// Lines of the metrics, as an array.
static json_t *metrics(void *const *state, const char *path) {
    char *text = file_read(state, path, NULL), *rest = text, *line;
    json_t *all = json_array();
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        json_array_append_new(all, object);
    }
    free(text);
    return all;
}

// Least, mean and most.
static double check_spread(const json_t *ranks, const char *name) {
    const json_t *spread = json_object_get(ranks, name);
    assert_int_equal(json_array_size(spread), 3);
    double least = json_number_value(json_array_get(spread, 0));
    double mean = json_number_value(json_array_get(spread, 1));
    double most = json_number_value(json_array_get(spread, 2));
    assert_true(0 <= least && least <= mean && mean <= most);
    return most;
}

// ---- one rank speaks and writes

static void test_one_voice(void **state) {
    run_file(state, text_run, ", \"evaluation\": {\"every\": 3}");
    outcome o = run_with(state, &shell, TRAIN("--set", "zero_optimization.stage=2"));
    assert_int_equal(o.status, 0);
    assert_int_equal(count(o.err, "model gpt2"), 1);
    assert_int_equal(count(o.err, "2 ranks of 1 thread, ZeRO stage 2, wave 1"), 1);
    assert_int_equal(count(o.out, "ready in"), 1);
    assert_int_equal(count(o.out, "step 6/6"), 1);
    assert_int_equal(count(o.out, "step 3: validation loss"), 1);
    assert_null(strchr(o.out, '\r'));
    outcome_free(&o);

    json_t *all = metrics(state, "out/metrics.jsonl");
    int step = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *line = json_array_get(all, i);
        const json_t *ranks = json_object_get(line, "ranks");
        if (!json_object_get(line, "targets")) {
            continue;
        }
        assert_int_equal(json_integer_value(json_object_get(line, "step")), ++step);
        assert_int_equal(json_integer_value(json_object_get(ranks, "count")), 2);
        check_spread(ranks, "seconds");
        check_spread(ranks, "wait_seconds");
        const json_t *planned = json_object_get(line, "planned_peak_bytes");
        double room = json_number_value(json_object_get(planned, "device")) +
                      json_number_value(json_object_get(planned, "host")) + ALLOWANCE;
        assert_true(check_spread(ranks, "peak_bytes") <= room);
    }
    assert_int_equal(step, 6);
    json_decref(all);
    char *plan = file_read(state, "out/plan.txt", NULL);
    assert_says(plan, "x 2 ranks");
    free(plan);
}

// Resumed on other ranks, stages and cuts, in reproducible mode, once from weights in
// bf16 and in shards: the same bits.
static void test_same_bits(void **state) {
    run_file(state, text_run,
             ", \"execution\": {\"reproducible\": true, \"threads\": 1},"
             " \"evaluation\": {\"every\": 2}");
    free(succeed(state, LIST("train", "run.json", "--out", "one")));
    succeed_on_ranks(state, TRAIN("--steps", "2", "--set", "zero_optimization.stage=3",
                                  "--set", "checkpoint.dtype=bf16", "--set",
                                  "checkpoint.shard_bytes=20KB"));
    free(file_read(state, "out/checkpoints/latest/model.safetensors.index.json", NULL));
    free(succeed(state, LIST("train", "run.json", "--steps", "4")));
    succeed_on_ranks(state, TRAIN("--set", "zero_optimization.stage=1"));
    free(succeed(state, LIST("diff", "one", "out")));
    json_t *one = metrics(state, "one/metrics.jsonl");
    json_t *out = metrics(state, "out/metrics.jsonl");
    assert_int_equal(json_array_size(one), json_array_size(out));
    for (size_t i = 0; i < json_array_size(one); i++) {
        static const char *const names[] = {"step", "loss", "grad_norm",
                                            "validation_loss"};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            assert_true(json_equal(json_object_get(json_array_get(one, i), names[k]),
                                   json_object_get(json_array_get(out, i), names[k])) ||
                        !json_object_get(json_array_get(one, i), names[k]));
        }
    }
    json_decref(one);
    json_decref(out);
}

// The worked example, against the one without ranks: the same data, order and losses.
static void test_classifier(void **state) {
    static const char folder[] = TR_SOURCE_DIR "/examples/";
    char alone[PATH_MAX], sharded[PATH_MAX];
    int epochs = 0;
    snprintf(alone, sizeof alone, "%sclassifier.json", folder);
    snprintf(sharded, sizeof sharded, "%sclassifier_zero3.json", folder);
    free(succeed(state, LIST("train", alone)));
    succeed_on_ranks(state, RANKS(TR_PROGRAM, "train", sharded));
    json_t *one = metrics(state, "out/classifier/metrics.jsonl");
    json_t *two = metrics(state, "out/classifier-zero3/metrics.jsonl");
    assert_int_equal(json_array_size(one), json_array_size(two));
    for (size_t i = 0; i < json_array_size(one); i++) {
        double a =
            json_number_value(json_object_get(json_array_get(one, i), "epoch_loss"));
        double b =
            json_number_value(json_object_get(json_array_get(two, i), "epoch_loss"));
        assert_true(fabs(a - b) <= 1e-5 * fabs(a));
        epochs += a > 0;
    }
    assert_int_equal(epochs, 5);
    json_decref(one);
    json_decref(two);
}

// ---- what goes wrong

static void test_wrong_on_all(void **state) {
    run_file(state, text_run, "");
    fail_with(state, &shell, TRAIN("--set", "sed=1"), 2,
              LIST("tranche: --set: sed: no such key; did you mean \"seed\"?"));
    fail_with(state, &shell, TRAIN("--sed", "1"), 2, LIST("unknown option --sed"));
    fail_with(state, &shell, TRAIN("--data", "missing"), 4,
              LIST("tranche: missing: cannot open"));
    assert_int_not_equal(access(file_path(state, "out"), F_OK), 0);
}

static void test_wrong_on_one(void **state) {
    run_file(state, text_run, "");
    file_words(state, "other.txt", 4000);
    fail_apart(state, "--data missing", 4, "missing: cannot open");
    fail_apart(state, "--set sed=1", 2, "sed: no such key");
    fail_apart(state, "--set seed=4", 6, "seed is 4 here, and 3 on rank 0");
    fail_apart(state, "--steps 7", 6, "steps is 7 here, and 6 on rank 0");
    fail_apart(state, "--set optimizer.params.lr=0.5", 6,
               "optimizer.params.lr is 0.5 here, and 0.001 on rank 0");
    fail_apart(state, "--set data.order=sequential", 6,
               "data.order is \"sequential\" here, and \"shuffled\" on rank 0");
    fail_apart(state, "--data other.txt", 6, "all ranks must find the same data");
    // Of the same size, too.
    size_t bytes = 0;
    char *text = file_read(state, "text.txt", &bytes);
    text[bytes - 1] ^= 1;
    file_write(state, "other.txt", text, bytes);
    fail_apart(state, "--data other.txt", 6, "all ranks must find the same data");
    free(text);
}

// A sample that rank 1 alone cannot read, in either micro-batch of a step: all keep the
// steps before it.
static void test_bad_sample(void **state) {
    static const char *const stages[] = {"zero_optimization.stage=0",
                                         "zero_optimization.stage=3"};
    for (int i = 0; i < 2; i++) {
        bad_sample_run(state, 30);
        outcome o =
            run_with(state, &shell, TRAIN("--set", stages[i], "--out", i ? "b" : "a"));
        assert_int_equal(o.status, 4);
        assert_says(o.err, "rank 1: x.npy: feature 1 of sample 30 is not a finite f32");
        assert_int_equal(count(o.err, "sample 30"), 1);
        assert_says(o.out, "checkpoint of step 7 saved before the run ends");
        outcome_free(&o);
        free(succeed(state, LIST("inspect", i ? "b" : "a")));
    }
}

// Folders of other names with the same weights are the same; with others they are not,
// whatever the ranks hold of them.
static void test_model_folders(void **state) {
    static const char *const stages[] = {"zero_optimization.stage=0",
                                         "zero_optimization.stage=3"};
    run_file(state, text_run, "");
    free(succeed(state, LIST("train", "run.json", "--out", "a", "--steps", "1")));
    free(succeed(state, LIST("train", "run.json", "--out", "b", "--steps", "1")));
    free(succeed(state, LIST("train", "run.json", "--out", "c", "--steps", "2")));
    write_apart(state, 1, "set -- \"$@\" --model c", "");
    for (int i = 0; i < 2; i++) {
        fail_with(state, &shell,
                  RANKS("/bin/sh", "apart.sh", "--model", "a", "--set", stages[i]), 6,
                  LIST("rank 1: ", "the first weights (",
                       "differ between this rank and rank 0"));
    }
    assert_int_not_equal(access(file_path(state, "out/metrics.jsonl"), F_OK), 0);
    write_apart(state, 1, "set -- \"$@\" --model b", "");
    succeed_on_ranks(state, RANKS("/bin/sh", "apart.sh", "--model", "a"));
    // Another shape is another run.
    free(succeed(state, LIST("train", "run.json", "--out", "d", "--steps", "1", "--set",
                             "model.n_layer=1")));
    write_apart(state, 1, "set -- \"$@\" --model d", "");
    fail_with(state, &shell, RANKS("/bin/sh", "apart.sh", "--model", "a", "--out", "e"),
              6, LIST("rank 1: model is of hash"));
}

// The rank that writes cannot go on writing: a limit on the size of its files, set when
// MPI has made its own.
static void test_metrics_cannot_be_written(void **state) {
    run_file(state, text_run, ", \"log\": {\"every_seconds\": 1000}");
    write_apart(state, 0,
                "(until [ -s out/metrics.jsonl ]; do sleep 0.02; done; "
                "prlimit --pid $$ --fsize=16000) &",
                "");
    fail_with(state, &shell, RANKS("/bin/sh", "apart.sh", "--steps", "1000000"), 5,
              LIST("rank 0: ", "metrics.jsonl: cannot write"));
}

// ---- asked for an end

// Signals the launcher once some steps are done. Each rank leaves its own exit status
// in a file: MPICH's launcher at times ends with 0 where both ranks ended with 138.
static void write_interruption(void *const *state) {
    char text[PATH_MAX * 4];
    snprintf(text, sizeof text,
             "trap '' USR1\n"
             "%s train run.json --steps 1000000\n"
             "echo $? >status.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n",
             TR_PROGRAM);
    file_text(state, "rank.sh", text);
    snprintf(
        text, sizeof text,
        "sh %s %s 2 sh rank.sh >log 2>&1 &\n"
        "running=$!\n"
        "until [ \"$(wc -l 2>/dev/null <out/metrics.jsonl || echo 0)\" -gt 5 ]; do\n"
        "    kill -0 $running || exit 99\n"
        "    sleep 0.02\n"
        "done\n"
        "kill -USR1 $running\n"
        "wait $running\n"
        "[ \"$(cat status.0 status.1)\" = \"$(printf '138\\n138')\" ]\n",
        TR_LAUNCH, TR_MPIRUN);
    file_text(state, "interrupt.sh", text);
}

static void test_usr1(void **state) {
    run_file(state, text_run, ", \"zero_optimization\": {\"stage\": 3}");
    write_interruption(state);
    outcome o = run_with(state, &shell, LIST("interrupt.sh"));
    char *log = file_read(state, "log", NULL);
    if (o.status != 0) {
        fail_msg("status %d\n%s%s%s", o.status, log, o.out, o.err);
    }
    assert_int_equal(count(log, "interrupted; checkpoint of step"), 1);
    json_t *found = succeed_json(state, LIST("inspect", "out", "--json"));
    json_int_t step =
        json_integer_value(json_object_get(json_object_get(found, "state"), "step"));
    json_t *all = metrics(state, "out/metrics.jsonl");
    size_t last = json_array_size(all) - 1;
    assert_true(step > 5);
    assert_int_equal(
        step, json_integer_value(json_object_get(json_array_get(all, last), "step")));
    json_decref(found);
    json_decref(all);
    outcome_free(&o);
    free(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_one_voice),     TEST(test_same_bits),
        TEST(test_classifier),    TEST(test_wrong_on_all),
        TEST(test_wrong_on_one),  TEST(test_bad_sample),
        TEST(test_model_folders), TEST(test_metrics_cannot_be_written),
        TEST(test_usr1),
    };
    if (!TR_MPIRUN[0]) {
        puts("this build has no MPI: no test was run");
        return 0;
    }
    unsetenv("OMP_NUM_THREADS"); // the ranks share the cores
    return cmocka_run_group_tests(tests, NULL, NULL);
}
