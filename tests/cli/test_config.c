// The run file: what is wrong in it is named with its line and what would be right.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrong {
    const char *more; // in run.json, from line 4 on
    const char *words[WORDS_MAX];
} wrong;

static void check(void **state, const wrong *all, size_t count, int status) {
    for (size_t i = 0; i < count; i++) {
        run_file(state, classifier_run, all[i].more);
        fail_with(state, NULL, LIST("train", "run.json"), status, all[i].words);
    }
}

#define CHECK(all, status) check(state, all, sizeof all / sizeof *all, status)

static void test_keys(void **state) {
    static const wrong all[] = {
        {", \n\"trian_batch_size\": 3",
         {"run.json:4: trian_batch_size: no such key",
          "did you mean \"train_batch_size\"?"}},
        {", \n\"optimizer\": {\"params\": {\"betas2\": 1}}",
         {"run.json:4: optimizer.params.betas2", "\"optimizer.params.betas\"?"}},
        {", \n\"lr\": 3", {"run.json:4: lr", "\"optimizer.params.lr\"?"}},
        {", \n\"seed\": 2", {"run.json:4:", "duplicate", "seed"}},
        {", \n\"steps_per_print\": \"many\"",
         {"run.json:4: steps_per_print is \"many\"", "wanted is an integer"}},
        {", \n\"optimizer\": 3", {"run.json:4: optimizer is 3", "an object"}},
        {", \n\"optimizer\": {\"type\": \"Adma\"}", {"run.json:4:", "mean \"Adam\"?"}},
        {", \n\"scheduler\": {\"type\": \"WarmupRL\"}", {":4:", "mean \"WarmupLR\"?"}},
        {", \n\"checkpoint\": {\"keep\": 0}", {"run.json:4: checkpoint.keep is 0"}},
        {", \n\"steps\": -3", {"run.json:4: steps is -3", "from 1"}},
        {", \n\"steps\": 1e30", {"run.json:4: steps is 1e+30", "from 1"}},
        {", \n\"steps\": 3", {"\"steps\" (3)", "\"epochs\" (2)", "keep one"}},
        {", \n\"optimizer\": {\"params\": {\"max_grad_norm\": 1}}",
         {"run.json:4: optimizer.params.max_grad_norm", "gradient_clipping"}},
        {", \n\"optimizer\": {\"type\": \"Lion\", \"params\": {\"eps\": 1}}",
         {"run.json:4: optimizer.params.eps"}},
        {", \n\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"min_coeff\": 11}}",
         {"max_coeff is 10", "min_coeff, which is 11"}},
        {", \n\"optimizer\": {\"type\": \"lamb\", \"params\": {\"form\": \"paper\", "
         "\"max_coeff\": 2}}",
         {"optimizer.params.max_coeff is of", "\"deepspeed\""}},
        {", \n\"optimizer\": {\"type\": \"LARS\", \"params\": {\"nesterov\": true, "
         "\"momentum\": 0}}",
         {"nesterov needs a momentum"}},
        {", \n\"%n%s\": 1", {"run.json:4: %n%s: no such key"}},
        {", \n\"a.b\": 1", {"\"a.b\": names have no dots"}},
        {", \n\"sede\" 3", {"run.json:4:8: not valid JSON"}},
        {", \n\"data\": {}", {"run.json:4:", "duplicate", "data"}},
        {"}{", {"run.json:3:", "not valid JSON"}},
    };
    CHECK(all, 2);
    file_text(state, "run.json", "");
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("run.json:1:0: not valid"));
    file_text(state, "run.json", "[1]");
    fail_with(state, NULL, LIST("train", "run.json"), 2, LIST("one JSON object"));
    file_write(state, "run.json", "{\"\xff\xfe\": 1}", 9);
    fail_with(state, NULL, LIST("train", "run.json"), 2, LIST("run.json:1:"));
    file_write(state, "run.json", "{\"a\0b\": 1}", 10);
    fail_with(state, NULL, LIST("train", "run.json"), 2, LIST("run.json:1:"));
}

static void test_batch(void **state) {
    static const wrong all[] = {
        {", \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 7",
         {"train_batch_size 6", "train_micro_batch_size_per_gpu 4",
          "gradient_accumulation_steps 7", "28", "what would fit"}},
        {", \"train_micro_batch_size_per_gpu\": -3",
         {"train_micro_batch_size_per_gpu", "-3", "from 1"}},
        {", \"gradient_accumulation_steps\": 0", {"gradient_accumulation_steps is 0"}},
        {", \"gradient_accumulation_steps\": 1e30", {"is 1e+30", "from 1"}},
        {", \"execution\": {\"wave\": 9}", {"execution.wave is 9", "1 accumulation"}},
        {", \"execution\": {\"threads\": 0}", {"execution.threads is 0"}},
    };
    CHECK(all, 2);
    run_file(state, classifier_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "train_batch_size=2000000000", "--set",
                   "train_micro_batch_size_per_gpu=1"),
              2, LIST("2000000000 accumulation steps", "micro_batch_size_per_gpu to"));
    file_text(state, "run.json", "{\"model\": \"gpt2\"}");
    fail_with(state, NULL, LIST("plan", "run.json"), 2,
              LIST("Either train_batch_size or train_micro_batch_size_per_gpu"));
}

static void test_model(void **state) {
    static const struct {
        const char *model;
        const char *words[WORDS_MAX];
    } all[] = {
        {"gpt-2", {"\"gpt-2\"", "nearest name is \"gpt2\""}},
        {"gpt2-meduim", {"nearest name is \"gpt2-medium\""}},
        {"{}", {"has no \"model_type\"", "gpt2", "mlp"}},
        {"{\"model_type\": \"gpt3\"}", {"\"gpt3\"", "nearest: \"gpt2\""}},
        {"{\"model_type\": \"gpt2\", \"n_embdd\": 3}", {"\"n_embdd\"", "\"n_embd\"?"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 12, \"n_head\": 5}",
         {"12", "n_head 5"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": -12}", {"n_embd is -12"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": \"a\"}", {"n_embd", "whole number"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 1e30}", {"n_embd", "whole number"}},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 99999999}", {"n_layer is 99999999"}},
        {"{\"model_type\": \"mlp\"}", {"layer_sizes", "list of 2"}},
        {"{\"model_type\": \"mlp\", \"layer_sizes\": [6, -1]}", {"layer_sizes[1]"}},
        {"{\"model_type\": \"mlp\", \"layer_sizes\": [6, 1e30]}", {"layer_sizes[1]"}},
    };
    run_file(state, classifier_run, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char set[256];
        snprintf(set, sizeof set, "model=%s", all[i].model);
        fail_with(state, NULL, LIST("plan", "run.json", "--set", set), 2, all[i].words);
    }
    // In the file: the line of the object. Whole numbers may be written as everywhere.
    file_text(state, "run.json",
              "{\n  \"train_batch_size\": 1,\n  \"model\": {\"model_type\": \"mlp\","
              "\n    \"layer_size\": [2, 2]}}");
    fail_with(
        state, NULL, LIST("plan", "run.json"), 2,
        LIST("run.json:3: model: unknown key \"layer_size\"", "\"layer_sizes\"?"));
    fail_with(state, NULL, LIST("plan", "run.json", "--set", "model.layer_size=null"),
              2, LIST("--set: model: "));
    free(succeed(state, LIST("plan", "run.json", "--set",
                             "model={\"model_type\": \"gpt2\", \"n_embd\": 1.2e1, "
                             "\"n_head\": 2, \"n_layer\": 1e0, \"n_positions\": 8}")));
    free(succeed(state, LIST("plan", "run.json", "--set",
                             "model={\"model_type\": \"mlp\", \"layer_sizes\": "
                             "[6.0, 3e0]}")));
    file_text(state, "model.json", "{\"model_type\": ");
    fail_with(state, NULL, LIST("plan", "run.json", "--model", "model.json"), 2,
              LIST("model.json:1:", "not valid JSON"));
}

// What no machine has is refused before anything is taken, with what would do.
static void test_too_large(void **state) {
    static const char *const wide = "model={\"model_type\": \"gpt2\", \"n_embd\": "
                                    "1000000000, \"n_head\": 1}";
    file_words(state, "text.txt", 200000);
    file_text(state, "run.json", "{\"train_batch_size\": 8, \"steps\": 1}");
    fail_with(state, NULL,
              LIST("train", "run.json", "--data", "text.txt", "--set", wide), 2,
              LIST("larger than 2^46 bytes", "smaller"));
    fail_with(
        state, NULL,
        LIST("train", "run.json", "--data", "text.txt", "--set",
             "model={\"model_type\": \"gpt2\", \"n_embd\": 1000000, \"n_head\": 10}"),
        3, LIST("the plan needs", "PiB", "this machine has"));
    run_file(state, classifier_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "train_batch_size=1000000000", "--set",
                   "data.samples=1000000000"),
              3,
              LIST("the plan needs", "this machine has",
                   "with train_micro_batch_size_per_gpu", "in place of 1000000000"));
}

// Where the system refuses the memory itself.
static void test_memory_refused(void **state) {
    static const setting small = {.memory_limit = INT64_C(1) << 30};
    if (!CAN_LIMIT_MEMORY) {
        skip();
    }
    run_file(state, classifier_run, "");
    fail_with(state, &small,
              LIST("train", "run.json", "--set", "model.layer_sizes=[6, 40000000, 3]"),
              8, LIST("no memory for"));
    fail_with(state, NULL, LIST("inspect", "out"), 4, LIST("out: no files"));
}

static void test_sums(void **state) {
    static const wrong all[] = {
        {", \n\"data_types\": {\"grad_accum_dtype\": \"bf17\"}",
         {":4: data_types.grad_accum_dtype", "\"bf16\""}},
        {", \n\"data_types\": {\"grad_accum_dtype\": \"bf16\"}, "
         "\"execution\": {\"reproducible\": true}",
         {"data_types.grad_accum_dtype is bf16", "execution.reproducible"}},
    };
    CHECK(all, 2);
    run_file(state, classifier_run,
             ", \"data_types\": {\"grad_accum_dtype\": \"bfloat16\"}");
    char *plan = succeed(state, LIST("plan", "run.json"));
    assert_says(plan, "gradients summed in bf16");
    free(plan);
    free(succeed(state, LIST("train", "run.json")));
    free(succeed(state, LIST("check", "run.json")));
}

static void test_not_yet(void **state) {
    static const wrong all[] = {
        {", \n\"amp\": {\"enabled\": true}", {":4: amp.enabled", "not yet supported"}},
        {", \n\"data_types\": {\"param_dtype\": \"bf16\"}",
         {":4: data_types.param_dtype", "not yet supported"}},
        {", \n\"optimizer\": {\"type\": \"Muon\"}", {":4: optimizer.type", "not yet"}},
        {", \n\"zero_optimization\": {\"stage\": 4}", {":4:", "stage is 4", "0 to 3"}},
        {", \n\"pipeline\": {\"stages\": 2}", {":4: pipeline", "not yet supported"}},
    };
    CHECK(all, 2);
}

// ZeRO's stages are ways to share among ranks: one rank has all of it.
static void test_stages(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json")));
    for (int stage = 0; stage <= 3; stage++) {
        char set[64], out[16];
        snprintf(set, sizeof set, "zero_optimization.stage=%d", stage);
        snprintf(out, sizeof out, "out%d", stage);
        free(succeed(state, LIST("train", "run.json", "--out", out, "--set", set)));
        free(succeed(state, LIST("diff", "out", out)));
    }
}

// What does nothing here is said once, in one line, by name.
static void test_no_meaning(void **state) {
    static const char line[] =
        "accepted, but without meaning here: "
        "zero_optimization.reduce_bucket_size, zero_optimization.reduce_scatter, "
        "zero_allow_untested_optimizer\n";
    run_file(state, classifier_run,
             ", \"zero_optimization\": {\"stage\": 2, \"reduce_scatter\": true, "
             "\"reduce_bucket_size\": 5e8}, \"zero_allow_untested_optimizer\": true");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    const char *found = strstr(o.err, "accepted, but");
    assert_non_null(found);
    assert_int_equal(strchr(found, '\n') + 1 - found, strlen(line));
    static const char *const names[] = {"zero_optimization.reduce_bucket_size",
                                        "zero_optimization.reduce_scatter",
                                        "zero_allow_untested_optimizer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = strstr(o.err, names[i]);
        assert_non_null(name);
        assert_null(strstr(name + 1, names[i]));
    }
    outcome_free(&o);
}

// What was asked for and will not come is said.
static void test_idle_evaluation(void **state) {
    run_file(state, classifier_run, ", \"evaluation\": {\"every\": 2}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "warning: evaluation.every is set, but there is no "
                       "data.validation");
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_keys),           TEST(test_batch),      TEST(test_model),
        TEST(test_stages),         TEST(test_no_meaning), TEST(test_idle_evaluation),
        TEST(test_sums),           TEST(test_not_yet),    TEST(test_too_large),
        TEST(test_memory_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
