// Budgets: what the planner chooses, what it says, and how a run without a plan ends.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A machine whose figures are given: nothing is measured.
static const char machine[] =
    "{\"name\": \"given\", \"ranks_per_node\": 2,"
    " \"compute\": {\"flops\": 500e9, \"bytes\": 30e9, \"launch\": 3e-6},"
    " \"host\": {\"bytes\": 20e9},"
    " \"link\": {\"inside\": {\"bytes\": 4e9, \"latency\": 1e-5}},"
    " \"copy\": {\"to_device\": {\"bytes\": 8e9}, \"to_host\": {\"bytes\": 8e9}}}";

static const char large[] =
    "{\"model\": \"gpt2\", \"train_batch_size\": 8, \"execution\": {\"threads\": 1}%s}";

static void write_run(void *const *state, const char *more) {
    char text[512];
    int length = snprintf(text, sizeof text, large, more);
    assert_true(length > 0 && (size_t)length < sizeof text);
    file_text(state, "run.json", text);
    file_text(state, "m.json", machine);
}

#define PLAN "plan", "run.json", "--machine", "m.json"

static int64_t bytes_of(const json_t *json, const char *space) {
    const json_t *ledger = json_object_get(json_object_get(json, "ledger"), space);
    return json_integer_value(json_object_get(ledger, "total"));
}

static double seconds_of(const json_t *json) {
    const json_t *planner = json_object_get(json, "planner");
    const json_t *choice = json_object_get(planner, "choice");
    assert_non_null(choice);
    return json_number_value(json_object_get(choice, "seconds"));
}

// The smaller the budget the longer the step; the ledger is always within.
static void test_choices(void **state) {
    static const struct {
        const char *set;
        int64_t device, host;
    } budgets[] = {{"memory.device=8GB", 8000000000, 0},
                   {"memory.device=2.3GiB", 2469606195, 0},
                   {"memory={\"device\": \"1500MB\", \"host\": \"3GB\"}", 1500000000,
                    3000000000 - (96 << 20)},
                   {"memory={\"device\": \"730MB\", \"host\": \"3GB\"}", 730000000,
                    3000000000 - (96 << 20)}};
    double last = 0;
    write_run(state, "");
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        json_t *json =
            succeed_json(state, LIST(PLAN, "--json", "--set", budgets[i].set));
        assert_true(bytes_of(json, "device") <= budgets[i].device);
        assert_true(budgets[i].host == 0 || bytes_of(json, "host") <= budgets[i].host);
        assert_true(seconds_of(json) >= last);
        last = seconds_of(json);
        json_decref(json);
    }
}

// As the documents have it: 2.3 GiB are enough with nothing elsewhere.
static void test_gpt2_alone(void **state) {
    write_run(state, ", \"memory\": {\"device\": \"2.3GiB\", \"host\": \"96MiB\"}");
    char *text = succeed(state, LIST(PLAN));
    assert_says(text, "no unit recomputed");
    assert_says(text, "planner: micro-batch 1 x 8");
    assert_says(text, "timeline of a step as simulated");
    assert_says(text, "the smallest device budget is");
    free(text);
}

static void test_binding(void **state) {
    write_run(state, ", \"memory\": {\"device\": \"2.1GiB\", \"host\": \"96MiB\"}");
    json_t *json = succeed_json(state, LIST(PLAN, "--json"));
    const json_t *planner = json_object_get(json, "planner");
    const json_t *binding = json_object_get(planner, "binding");
    int64_t more = json_integer_value(json_object_get(binding, "device"));
    assert_true(more > 0);
    double before = seconds_of(json);
    int64_t budget = (int64_t)(2.1 * (1 << 30)) + more;
    json_decref(json);
    char set[64]; // so much more, and it is faster
    snprintf(set, sizeof set, "memory.device=%lld", (long long)budget);
    json = succeed_json(state, LIST(PLAN, "--json", "--set", set));
    assert_true(seconds_of(json) < before);
    json_decref(json);
    snprintf(set, sizeof set, "memory.device=%lld", (long long)budget - 1);
    json = succeed_json(state, LIST(PLAN, "--json", "--set", set));
    assert_true(seconds_of(json) >= before * 0.999);
    json_decref(json);
}

static void test_smallest(void **state) {
    write_run(state, ", \"memory\": {\"device\": \"8GiB\", \"host\": \"4GB\"}");
    json_t *json = succeed_json(state, LIST(PLAN, "--json"));
    const json_t *smallest =
        json_object_get(json_object_get(json, "planner"), "smallest");
    const json_t *bytes = json_object_get(smallest, "bytes");
    long long least = json_integer_value(json_object_get(bytes, "device"));
    json_decref(json);
    assert_true(least > 0);
    char set[64];
    snprintf(set, sizeof set, "memory.device=%lld", least);
    json = succeed_json(state, LIST(PLAN, "--json", "--set", set));
    assert_int_equal(bytes_of(json, "device"), least);
    json_decref(json);
    snprintf(set, sizeof set, "memory.device=%lld", least - 1);
    fail_with(state, NULL, LIST(PLAN, "--set", set), 3,
              LIST("no plan fits the budgets",
                   "\n    nearest plans, and what they lack:\n        1. device "));
}

static void test_refusals(void **state) {
    write_run(state, ", \"memory\": {\"device\": \"100MB\", \"host\": \"4GB\"}");
    fail_with(state, NULL, LIST(PLAN), 3,
              LIST("device 95.37 MiB", "\n        1. ", "\n        2. ",
                   "\n        3. ", "device", "more"));
    write_run(state, ", \"memory\": {\"device\": \"100MB\", \"host\": 5}");
    fail_with(state, NULL, LIST(PLAN), 3, LIST("host 5 B", "host", "more"));
    // What is set contradicts itself, whatever the budgets.
    write_run(state, ", \"memory\": {\"device\": \"8GiB\"},"
                     "\"train_micro_batch_size_per_gpu\": 1,"
                     "\"zero_optimization\": {\"offload_optimizer\": "
                     "{\"device\": \"cpu\"}}");
    fail_with(state, NULL, LIST(PLAN, "--set", "execution.wave=2"), 2,
              LIST("execution.wave is 2, but gradients go to the host once a step: "
                   "set it to 8"));
    // Sizes that no machine has are counted all the same.
    fail_with(
        state, NULL,
        LIST(PLAN, "--set", "memory.device=1GiB", "--set", "train_batch_size=1",
             "--set",
             "model={\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_head\": 65536, "
             "\"n_embd\": 131072, \"n_positions\": 16777216}"),
        3, LIST("TiB more"));
    // All given, and it is too much: which one thing would do.
    write_run(state,
              ", \"memory\": {\"device\": \"2.3GiB\", \"host\": \"96MiB\"},"
              "\"train_micro_batch_size_per_gpu\": 8,"
              "\"zero_optimization\": {\"stage\": 0, \"offload_optimizer\": "
              "{\"device\": \"none\"}, \"offload_param\": {\"device\": \"none\"}},"
              "\"activation_checkpointing\": {\"number_checkpoints\": 0, "
              "\"cpu_checkpointing\": false, \"cpu_saved\": false}");
    fail_with(state, NULL,
              LIST(PLAN, "--set", "execution.wave=1", "--set",
                   "execution.vocabulary_slices=1", "--set",
                   "execution.recompute=[\"norm\", \"activation\"]"),
              3,
              LIST("the plan does not fit", "device", "more",
                   "\n    what would help, each by itself (device):\n",
                   "\n        train_micro_batch_size_per_gpu 1: ", " less, it fits\n"));
}

#define MODEL                                                                          \
    "--set", "model={\"model_type\": \"mlp\", \"layer_sizes\": [6, 300, 300, 3]}"

// What a run chose is in run.json, with its origin; a resumed one keeps it.
static void test_run(void **state) {
    run_file(state, classifier_run,
             ", \"execution\": {\"reproducible\": true, \"threads\": 1},"
             "\"train_micro_batch_size_per_gpu\": \"auto\","
             "\"memory\": {\"device\": \"1400KB\", \"host\": \"200MB\"}");
    outcome o = run(state, LIST("train", "run.json", MODEL));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.err, "planner: ");
    outcome_free(&o);
    json_t *resolved = file_json(state, "out/run.json");
    json_t *origins = json_object_get(resolved, "origins");
    assert_string_equal(
        json_string_value(json_object_get(origins, "train_micro_batch_size_per_gpu")),
        "auto: planner");
    const json_t *zero = json_object_get(resolved, "zero_optimization");
    const json_t *offload = json_object_get(zero, "offload_optimizer");
    assert_string_equal(json_string_value(json_object_get(offload, "device")), "cpu");
    json_decref(resolved);
    char *plan = file_read(state, "out/plan.txt", NULL);
    assert_says(plan, "a usual machine, not measured");
    free(plan);
    // With more room it would be another, but for the checkpoint.
    plan =
        succeed(state, LIST("plan", "run.json", MODEL, "--set", "memory.device=1GB"));
    assert_says(plan, "planner: micro-batch 6 x 1, wave 1");
    free(plan);
    o = run(state, LIST("train", "run.json", MODEL, "--steps", "12", "--set",
                        "memory.device=1GB"));
    if (o.status != 0) {
        fail_msg("%s", o.err);
    }
    assert_says(o.err, "optimizer on the host, ");
    assert_says(o.err, "(as in the checkpoint)");
    outcome_free(&o);
    // And with less it has to be.
    o = run(state, LIST("train", "run.json", MODEL, "--steps", "16", "--set",
                        "memory.device=1KB"));
    assert_int_equal(o.status, 3);
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_choices),  TEST(test_gpt2_alone), TEST(test_binding),
        TEST(test_smallest), TEST(test_refusals),   TEST(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
