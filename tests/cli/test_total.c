// memory.total: a budget of the whole process, whatever is in it.
// Labels: slow
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// 15 million parameters: with gradients and state 240 MB, whatever is recomputed.
static const char wide_run[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [64, 1000, 1000, 1000, "
    "1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, "
    "10]}, \"data\": {\"format\": \"random\", \"samples\": 64, \"features\": 64,"
    " \"classes\": 10}, \"train_batch_size\": 64, \"steps\": 2,"
    " \"checkpoint\": {\"keep\": 1}, \"execution\": {\"threads\": 1,"
    " \"reproducible\": true}, \"train_micro_batch_size_per_gpu\": \"auto\","
    " \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}";

enum { MIB = 1 << 20 };

static int64_t children_peak(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (int64_t)usage.ru_maxrss * 1024;
}

// The start says all that the process will take, and it takes no more.
static void test_process(void **state) {
    run_file(state, wide_run, ", \"memory\": \"600MiB\"");
    outcome o = run(state, LIST("train", "run.json"));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    const char *words = "planned memory ", *said = strstr(o.err, words);
    assert_non_null(said);
    double planned = strtod(said + strlen(words), NULL);
    assert_in_range((uintmax_t)planned, 300, 600);
    assert_says(said, " MiB (device ");
    assert_says(said, "up to 96.00 MiB beside the plan)");
    if (CAN_LIMIT_MEMORY) { // the sanitizer takes more
        assert_true(children_peak() <= (int64_t)(planned * MIB));
    }
    outcome_free(&o);
}

// A program of another language's takes more: budgets leave it room, and the start says
// it.
static void test_larger_process(void **state) {
    run_file(state, wide_run,
             ", \"memory\": {\"total\": \"800MiB\", \"process\": \"300MiB\"}");
    char *plan = succeed(state, LIST("plan", "run.json"));
    assert_says(plan, " of   800.00 MiB, 300.00 MiB of it the process");
    free(plan);
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "up to 300.00 MiB beside the plan)");
    outcome_free(&o);
    fail_with(state, NULL, LIST("plan", "run.json", "--set", "memory.process=790MiB"),
              3, LIST("no plan fits the budgets (total 800.00 MiB)"));
    fail_with(state, NULL, LIST("plan", "run.json", "--set", "memory.process=0"), 2,
              LIST("memory.process is 0"));
    // More than any machine has: the run ends before it takes memory.
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "memory=auto", "--set",
                   "memory.process=900TiB"),
              3, LIST("memory"));
}

// A size alone, the key, and an option over a file with either.
static void test_spellings(void **state) {
    static const char *const more[] = {", \"memory\": \"600MiB\"",
                                       ", \"memory\": 629145600",
                                       ", \"memory\": {\"total\": \"600MiB\"}"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        run_file(state, wide_run, more[i]);
        char *plan = succeed(state, LIST("plan", "run.json"));
        assert_says(plan, "    total           takes ");
        assert_says(plan, " of   600.00 MiB, 96.00 MiB of it the process");
        assert_says(plan, "    the smallest total is ");
        free(plan);
        plan = succeed(state, LIST("plan", "run.json", "--set", "memory=700MiB"));
        assert_says(plan, " of   700.00 MiB, 96.00 MiB of it the process");
        free(plan);
        plan =
            succeed(state, LIST("plan", "run.json", "--set", "memory.device=550MiB"));
        assert_says(plan, " of   550.00 MiB");
        assert_says(plan, " of   600.00 MiB, 96.00 MiB of it the process");
        free(plan);
    }
    run_file(state, wide_run, ", \"memory\": \"auto\"");
    char *plan = succeed(state, LIST("plan", "run.json"));
    assert_says(plan, "    the smallest total is ");
    free(plan);
    run_file(state, wide_run, ",\n\"memory\": true");
    fail_with(state, NULL, LIST("plan", "run.json"), 2,
              LIST("run.json:2: memory.total is true", "a size"));
}

// The smallest total is one that fits, and one byte less is refused.
static void test_smallest(void **state) {
    run_file(state, wide_run, ", \"memory\": \"2GiB\"");
    char *plan = succeed(state, LIST("plan", "run.json"));
    const char *said = strstr(plan, "the smallest total is ");
    assert_non_null(said);
    long long least = strtoll(strchr(said, '(') + 1, NULL, 10);
    char set[64];
    free(plan);
    snprintf(set, sizeof set, "memory=%lld", least);
    free(succeed(state, LIST("plan", "run.json", "--set", set)));
    snprintf(set, sizeof set, "memory=%lld", least - 1);
    fail_with(state, NULL, LIST("train", "run.json", "--set", set), 3,
              LIST("no plan fits the budgets (total ", "1. total ",
                   "the smallest total within the other limits: ",
                   "what would help, each by itself (total):"));
}

static int64_t number_at(const char *text) {
    return (int64_t)strtod(text, NULL);
}

// What a refusal names does what it says.
static void test_levers(void **state) {
    static const struct {
        const char *said, *set;
    } levers[] = {
        {"\n        optimizer.type \"SGD\": ", "optimizer.type=SGD"},
        {"\n        memory.nvme.path, a folder on a disk: ", "memory.nvme.path=\".\""}};
    run_file(state, wide_run, ", \"memory\": \"300MiB\"");
    for (size_t i = 0; i < sizeof levers / sizeof *levers; i++) {
        outcome o = run(state, LIST("plan", "run.json"));
        assert_int_equal(o.status, 3);
        const char *line = strstr(o.err, levers[i].said);
        if (!line) {
            fail_msg("%s: not in %s", levers[i].said, o.err);
        }
        line += strlen(levers[i].said);
        assert_true(number_at(line) > 0); // MiB less
        assert_says(line, " less, it fits");
        outcome_free(&o);
        free(succeed(state, LIST("plan", "run.json", "--set", levers[i].set)));
    }
}

// Where device and host are one memory, a budget of the device does not limit the
// process; that is said.
static void test_device_alone(void **state) {
    run_file(state, wide_run, ", \"memory\": {\"device\": \"1GiB\"}");
    outcome o = run(state, LIST("plan", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "memory.total limits the whole process");
    outcome_free(&o);
    o = run(state, LIST("plan", "run.json", "--set", "memory.host=1GiB"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "memory.total limits"));
    outcome_free(&o);
}

// No budget is more than the machine has.
static void test_capped(void **state) {
    run_file(state, wide_run, "");
    file_text(state, "m.json",
              "{\"name\": \"small\", \"ranks_per_node\": 1, \"compute\": {\"flops\": "
              "1e12, \"bytes\": 1e11},"
              " \"memory\": {\"device\": \"1GiB\", \"host\": \"2GiB\"},"
              " \"copy\": {\"to_device\": {\"bytes\": 8e9}, \"to_host\": {\"bytes\": "
              "8e9}}, \"host\": {\"bytes\": 2e10}}");
    outcome o = run(state, LIST("plan", "run.json", "--machine", "m.json", "--set",
                                "memory.device=3GiB"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "memory.device is 3.00 GiB, but the machine has 1.00 GiB: the "
                       "plan is for 1.00 GiB");
    assert_says(o.out, " of     1.00 GiB");
    outcome_free(&o);
    o = run(state, LIST("plan", "run.json", "--set", "memory=1000TiB"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "memory.total is 1000.00 TiB, but the machine has ");
    outcome_free(&o);
}

// Nor is that of NVMe more than the folder's disk has room for.
static void test_capped_disk(void **state) {
    run_file(state, wide_run, ", \"memory\": {\"nvme\": {\"path\": \".\"}}");
    outcome o =
        run(state, LIST("plan", "run.json", "--set", "memory.nvme.bytes=1000TiB"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "memory.nvme.bytes is 1000.00 TiB, but the disk of . has ");
    assert_says(o.err, " free: the plan is for ");
    outcome_free(&o);
    o = run(state, LIST("plan", "run.json", "--set", "memory.nvme.bytes=1MiB"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "the disk of"));
    outcome_free(&o);
}

// A folder for NVMe that is not there is the run file's mistake, and is told by its
// key.
static void test_no_folder(void **state) {
    run_file(state, wide_run,
             ",\n\"memory\": {\"total\": \"300MiB\", \"nvme\": {\"path\": \"gone\"}}");
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("run.json:2: memory.nvme.path is gone: No such file", "mkdir"));
    fail_with(state, NULL, LIST("plan", "run.json"), 2,
              LIST("memory.nvme.path is gone"));
    run_file(state, wide_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set",
                   "zero_optimization.offload_optimizer={\"device\": \"nvme\", "
                   "\"nvme_path\": \"run.json\"}"),
              2,
              LIST("--set: zero_optimization.offload_optimizer.nvme_path is run.json: "
                   "no folder"));
}

// The planner and its plan count recomputed units in the same way.
static void test_one_number(void **state) {
    static const char *const gpt2 =
        "model={\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 64, "
        "\"n_head\": 4, \"n_positions\": 128, \"vocab_size\": 64}";
    run_file(state, wide_run, "");
    for (int first = 1; first <= 8; first++) {
        char set[64], words[64], full[128];
        snprintf(set, sizeof set, "activation_checkpointing.number_checkpoints=%d",
                 first);
        char *plan =
            succeed(state, LIST("plan", "run.json", "--set", gpt2, "--set", set,
                                "--set", "data=null", "--set", "memory=2GiB", "--set",
                                "train_micro_batch_size_per_gpu=1"));
        const char *said = strstr(plan, "recomputed: ");
        assert_non_null(said);
        said += strlen("recomputed: ");
        snprintf(words, sizeof words, "%.*s", (int)strcspn(said, ";"), said);
        snprintf(full, sizeof full, first < 7 ? "the first %d unit" : "all units but",
                 first);
        assert_memory_equal(words, full, strlen(full));
        free(plan);
    }
    char *plan = succeed(state, LIST("plan", "run.json", "--set", gpt2, "--set",
                                     "data=null", "--set", "memory=106MiB"));
    char words[96];
    const char *said = strstr(plan, "recomputed: ") + strlen("recomputed: ");
    snprintf(words, sizeof words, ", %.*s recomputed; ", (int)strcspn(said, ";"), said);
    assert_says(plan, words);
    free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_process),    TEST(test_larger_process), TEST(test_spellings),
        TEST(test_smallest),   TEST(test_levers),         TEST(test_device_alone),
        TEST(test_capped),     TEST(test_capped_disk),    TEST(test_no_folder),
        TEST(test_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
