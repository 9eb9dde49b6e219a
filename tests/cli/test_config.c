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
         {"run.json:4: steps_per_print is \"many\"", "expected an integer"}},
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

// A pattern of names that no parameter has would leave all as they are.
static void test_patterns(void **state) {
    static const wrong all[] = {
        {", \n\"optimizer\": {\"groups\": [{\"match\": \"*.bais\", \"lr\": 0}]}",
         {"optimizer.groups[0].match: \"*.bais\" matches no parameter",
          "did you mean \"*.bias\"?"}},
        {", \n\"optimizer\": {\"groups\": [{\"match\": \"*.bias\", \"lr\": 1}, "
         "{\"match\": [\"*.weight\", \"layers.2.weigth\"], \"lr\": 1}]}",
         {"optimizer.groups[1].match: \"layers.2.weigth\" matches no parameter",
          "mean \"layers."}},
        {", \n\"optimizer\": {\"groups\": [{\"match\": \"zzzzzzzzzz\", \"lr\": 1}]}",
         {"\"zzzzzzzzzz\" matches no parameter", "a parameter is \"layers.0."}},
        {", \n\"freeze\": [\"*.weight\", \"*.bais\"]",
         {"freeze: \"*.bais\" matches no parameter", "did you mean \"*.bias\"?"}},
        {", \n\"freeze\": [\"*.weight\", \"*.bias\"]",
         {"freeze: its patterns match every parameter", "nothing would be trained"}},
        {", \n\"freeze\": {\"match\": \"*\"}", {"run.json:4: freeze"}},
    };
    CHECK(all, 2);
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
        {", \"execution\": {\"logits_mib\": 0}", {"execution.logits_mib is 0"}},
        {", \"execution\": {\"attention\": \"cudnn-9.18\"}",
         {"execution.attention", "\"cudnn-9.19\""}},
    };
    CHECK(all, 2);
    run_file(state, classifier_run, "");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "train_batch_size=2000000000", "--set",
                   "train_micro_batch_size_per_gpu=1"),
              2, LIST("2000000000 accumulation steps", "micro_batch_size_per_gpu to"));
    file_text(state, "run.json", "{\"model\": \"gpt2\"}");
    fail_with(state, NULL, LIST("plan", "run.json"), 2,
              LIST("no batch size", "train_batch_size", "--set train_batch_size=8"));
}

static void test_model(void **state) {
    static const struct {
        const char *model;
        const char *words[WORDS_MAX];
    } all[] = {
        {"gpt-2", {"\"gpt-2\"", "nearest name is \"gpt2\""}},
        {"gpt2-meduim", {"nearest name is \"gpt2-medium\""}},
        {"{}", {"has no \"model_type\"", "gpt2", "mlp"}},
        {"{\"model_type\": \"gpt3\"}", {"\"gpt3\"", "mean \"gpt2\"?"}},
        {"{\"model_type\": \"t5\"}",
         {"\"t5\"", "supported are \"gpt2\", \"llama\"", "\"resnet\""}},
        {"{\"model_type\": \"gpt2\", \"n_embdd\": 3}", {"\"n_embdd\"", "\"n_embd\"?"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 12, \"n_head\": 5}",
         {"12", "n_head 5"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": -12}", {"n_embd is -12"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": \"a\"}", {"n_embd", "whole number"}},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 1e30}", {"n_embd", "whole number"}},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 99999999}", {"n_layer is 99999999"}},
        {"{\"model_type\": \"llama\", \"rope_scaling\": 5}",
         {"rope_scaling must be an object"}},
        {"{\"model_type\": \"llama\", \"rope_parameters\": \"linear\"}",
         {"rope_parameters must be an object"}},
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

static int64_t parameters_with(void **state, const char *set) {
    json_t *plan =
        succeed_json(state, LIST("plan", "run.json", "--json", "--set", set));
    int64_t count = json_integer_value(json_object_get(plan, "parameters"));
    json_decref(plan);
    return count;
}

// Of bytes, a vocabulary that is null is one that is left out.
static void test_null_vocabulary(void **state) {
    run_file(state, text_run, "");
    int64_t of_bytes = parameters_with(state, "model.vocab_size=256");
    assert_int_equal(parameters_with(state, "seed=0"), of_bytes);
    assert_int_equal(parameters_with(state, "model.vocab_size=null"), of_bytes);
    assert_true(parameters_with(state, "model.vocab_size=300") > of_bytes);
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
        {", \n\"optimizer\": {\"type\": \"MuSGD\"}", {":4: optimizer.type", "not yet"}},
        {", \n\"zero_optimization\": {\"stage\": 4}", {":4:", "stage is 4", "0 to 3"}},
        {", \n\"pipeline\": {\"schedule\": \"w\"}", {":4: pipeline", "zero_bubble"}},
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

// Every problem of a file at once, each with its line.
static void test_all_at_once(void **state) {
    run_file(state, classifier_run,
             ", \n\"trian_batch_size\": 3, \n\"seed_\": 1,"
             "\n\"optimizer\": {\"type\": \"Adma\", \"params\": {\"eps\": -1}},"
             "\n\"zero_optimization\": {\"stage\": 4, \"zenflow\": {\"a\": 1}}");
    outcome o = run(state, LIST("train", "run.json", "--set", "checkpoint.keep=0"));
    assert_int_equal(o.status, 2);
    static const char *const lines[] = {
        "tranche: 7 problems:\n",
        "\n    run.json:4: trian_batch_size: no such key; did you mean ",
        "\n    run.json:5: seed_: no such key; did you mean \"seed\"?\n",
        "\n    run.json:6: optimizer.type is \"Adma\"; expected one of ",
        "\n    run.json:6: optimizer.params.eps is -1; expected a number of at least 0",
        "\n    run.json:7: zero_optimization.stage is 4; expected an integer from 0 to "
        "3",
        "\n    run.json:7: zero_optimization.zenflow: not yet supported",
        "\n    --set: checkpoint.keep is 0; expected an integer from 1 to 2147483648\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_says(o.err, lines[i]);
    }
    outcome_free(&o);
    // Also what is well written and contradicts itself, and what is missing.
    file_text(state, "run.json",
              "{\"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}");
    fail_with(state, NULL, LIST("train", "run.json"), 2,
              LIST("4 problems:", "no \"model\"", "no training data", "no batch size",
                   "nor \"epochs\" is given"));
    run_file(state, classifier_run,
             ", \"gradient_accumulation_steps\": 4, \"fp16\": {\"enabled\": true}, "
             "\"bf16\": {\"enabled\": true}");
    fail_with(state, NULL,
              LIST("train", "run.json", "--set", "train_micro_batch_size_per_gpu=5"), 2,
              LIST("2 problems:", "\n    train_batch_size 6 is not ",
                   "\n    both fp16.enabled and bf16.enabled are true"));
}

// What does nothing here is said once by name, groups of such keys as one.
static void test_no_meaning(void **state) {
    run_file(state, classifier_run,
             ", \"zero_optimization\": {\"stage\": 2, \"reduce_scatter\": true, "
             "\"reduce_bucket_size\": 5e8}, \"zero_allow_untested_optimizer\": true, "
             "\"aio\": {\"block_size\": 4096, \"queue_depth\": 8}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "ignored (no effect in Tranche): "
                       "zero_optimization.reduce_scatter, "
                       "zero_optimization.reduce_bucket_size,\n"
                       "    zero_allow_untested_optimizer, aio.*\n");
    outcome_free(&o);
}

// All of them are there, however many; a monitor that is on has a line of its own.
static void test_monitors(void **state) {
    run_file(state, classifier_run,
             ", \"tensorboard\": {\"enabled\": false, \"output_path\": \"x\"}, "
             "\"wandb\": {\"enabled\": true, \"project\": \"p\"}, "
             "\"comet\": {\"enabled\": false, \"project\": \"p\"}, "
             "\"flops_profiler\": {\"enabled\": true, \"detailed\": true}, "
             "\"zero_optimization\": {\"stage3_max_live_parameters\": 1, "
             "\"stage3_max_reuse_distance\": 1, \"stage3_prefetch_bucket_size\": 1, "
             "\"stage3_param_persistence_threshold\": 1, \"sub_group_size\": 1, "
             "\"stage3_module_granularity_threshold\": 1, \"reduce_scatter\": true, "
             "\"stage3_model_persistence_threshold\": 1, \"grad_hooks\": true, "
             "\"stage3_gather_16bit_weights_on_model_save\": true, "
             "\"stage3_gather_fp16_weights_on_model_save\": true, "
             "\"stage3_use_all_reduce_for_fetch_params\": true, "
             "\"stage3_allgather_sequential\": true, \"legacy_stage1\": false, "
             "\"load_from_fp32_weights\": true, \"elastic_checkpoint\": true, "
             "\"round_robin_gradients\": true, \"override_module_apply\": true, "
             "\"ignore_unused_parameters\": true, \"leaf_module\": {\"a\": 1}, "
             "\"pipeline_loading_checkpoint\": true, \"contiguous_gradients\": true, "
             "\"log_trace_cache_warnings\": true, \"enable_sanity_checks\": true, "
             "\"save_muon_momentum_buffer_in_memory\": true}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    static const char *const lines[] = {
        "warning: wandb.enabled is true, which has no effect in Tranche: metrics.jsonl "
        "has the metrics of every step, and tensorboard.enabled writes event files",
        "warning: flops_profiler.enabled is true, which has no effect in Tranche: ",
        "zero_optimization.leaf_module\n", // the last one
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_says(o.err, lines[i]);
    }
    assert_null(strstr(o.err, "comet"));
    assert_null(strstr(o.err, "wandb.project"));
    for (const char *line = o.err; line; line = strchr(line + 1, '\n')) {
        assert_true(strcspn(line + 1, "\n") <= 200);
    }
    outcome_free(&o);
}

// What was asked for and will not come is said.
static void test_idle_evaluation(void **state) {
    run_file(state, classifier_run, ", \"evaluation\": {\"every\": 2}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "warning: evaluation.every has no effect: there is no "
                       "data.validation");
    outcome_free(&o);
}

// One micro-batch is the whole batch: nothing is measured, and it is said why.
static void test_idle_noise(void **state) {
    static const char *const micro[] = {"train_micro_batch_size_per_gpu=6",
                                        "train_micro_batch_size_per_gpu=3"};
    run_file(state, classifier_run, ", \"noise_scale\": {\"measure\": true}");
    for (int i = 0; i < 2; i++) {
        outcome o = run(state, LIST("train", "run.json", "--set", micro[i], "--set",
                                    i ? "out=\"b\"" : "out=\"a\""));
        assert_int_equal(o.status, 0);
        const char *said = strstr(o.err, "noise_scale.measure measures nothing: it "
                                         "compares the gradient of one micro-batch");
        assert_true(i == 0 ? said != NULL : said == NULL);
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_keys),
        TEST(test_patterns),
        TEST(test_batch),
        TEST(test_model),
        TEST(test_stages),
        TEST(test_no_meaning),
        TEST(test_idle_evaluation),
        TEST(test_idle_noise),
        TEST(test_sums),
        TEST(test_not_yet),
        TEST(test_too_large),
        TEST(test_null_vocabulary),
        TEST(test_memory_refused),
        TEST(test_all_at_once),
        TEST(test_monitors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
