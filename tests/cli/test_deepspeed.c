// An existing ds_config.json is a run file: with --model, --data and --steps it trains.
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES = 60000 };

static const char small_model[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 16, \"n_head\": 2, "
    "\"n_positions\": 16, \"vocab_size\": 256}";

// As the tutorials have it.
static const char classic[] =
    "{\n"
    "  \"train_batch_size\": 8,\n"
    "  \"steps_per_print\": 2000,\n"
    "  \"optimizer\": {\n"
    "    \"type\": \"Adam\",\n"
    "    \"params\": {\"lr\": 0.001, \"betas\": [0.8, 0.999], \"eps\": 1e-8,\n"
    "               \"weight_decay\": 3e-7}\n"
    "  },\n"
    "  \"scheduler\": {\n"
    "    \"type\": \"WarmupLR\",\n"
    "    \"params\": {\"warmup_min_lr\": 0, \"warmup_max_lr\": 0.001,\n"
    "               \"warmup_num_steps\": 1000}\n"
    "  },\n"
    "  \"gradient_clipping\": 1.0,\n"
    "  \"prescale_gradients\": false,\n"
    "  \"wall_clock_breakdown\": false,\n"
    "  \"fp16\": {\"enabled\": false, \"loss_scale\": 0, \"initial_scale_power\": 15,\n"
    "           \"loss_scale_window\": 500, \"hysteresis\": 2, \"min_loss_scale\": "
    "1},\n"
    "  \"zero_optimization\": {\"stage\": 0, \"allgather_partitions\": true,\n"
    "    \"reduce_scatter\": true, \"allgather_bucket_size\": 50000000,\n"
    "    \"reduce_bucket_size\": 50000000, \"overlap_comm\": true,\n"
    "    \"contiguous_gradients\": true, \"cpu_offload\": false}\n"
    "}\n";

// As launchers of large models write it: everything left to be filled in.
static const char all_auto[] =
    "{\n"
    "  \"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0, \"loss_scale_window\": "
    "1000,\n"
    "           \"initial_scale_power\": 16, \"hysteresis\": 2, \"min_loss_scale\": "
    "1},\n"
    "  \"bf16\": {\"enabled\": \"auto\"},\n"
    "  \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\",\n"
    "    \"betas\": \"auto\", \"eps\": \"auto\", \"weight_decay\": \"auto\"}},\n"
    "  \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\n"
    "    \"total_num_steps\": \"auto\", \"warmup_min_lr\": \"auto\",\n"
    "    \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\"}},\n"
    "  \"zero_optimization\": {\"stage\": 3,\n"
    "    \"offload_optimizer\": {\"device\": \"none\", \"pin_memory\": true},\n"
    "    \"offload_param\": {\"device\": \"none\", \"pin_memory\": true},\n"
    "    \"overlap_comm\": true, \"contiguous_gradients\": true, \"sub_group_size\": "
    "1e9,\n"
    "    \"reduce_bucket_size\": \"auto\", \"stage3_prefetch_bucket_size\": \"auto\",\n"
    "    \"stage3_param_persistence_threshold\": \"auto\",\n"
    "    \"stage3_max_live_parameters\": 1e9, \"stage3_max_reuse_distance\": 1e9,\n"
    "    \"stage3_gather_16bit_weights_on_model_save\": true},\n"
    "  \"gradient_accumulation_steps\": \"auto\",\n"
    "  \"gradient_clipping\": \"auto\",\n"
    "  \"steps_per_print\": 2000,\n"
    "  \"train_batch_size\": \"auto\",\n"
    "  \"train_micro_batch_size_per_gpu\": 4,\n"
    "  \"wall_clock_breakdown\": false\n"
    "}\n";

// As in the documentation of Hugging Face's Trainer, for stage 2 with offload.
static const char trainer[] =
    "{\n"
    "  \"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0, \"loss_scale_window\": "
    "1000,\n"
    "           \"initial_scale_power\": 16, \"hysteresis\": 2, \"min_loss_scale\": "
    "1},\n"
    "  \"bf16\": {\"enabled\": \"auto\"},\n"
    "  \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\",\n"
    "    \"betas\": \"auto\", \"eps\": \"auto\", \"weight_decay\": \"auto\"}},\n"
    "  \"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\n"
    "    \"warmup_min_lr\": \"auto\", \"warmup_max_lr\": \"auto\",\n"
    "    \"warmup_num_steps\": \"auto\"}},\n"
    "  \"zero_optimization\": {\"stage\": 2,\n"
    "    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true},\n"
    "    \"allgather_partitions\": true, \"allgather_bucket_size\": 2e8,\n"
    "    \"overlap_comm\": true, \"reduce_scatter\": true,\n"
    "    \"reduce_bucket_size\": 2e8, \"contiguous_gradients\": true},\n"
    "  \"gradient_accumulation_steps\": \"auto\",\n"
    "  \"gradient_clipping\": \"auto\",\n"
    "  \"steps_per_print\": 2000,\n"
    "  \"train_batch_size\": \"auto\",\n"
    "  \"train_micro_batch_size_per_gpu\": \"auto\",\n"
    "  \"wall_clock_breakdown\": false\n"
    "}\n";

static const char accumulating[] =
    "{\n"
    "  \"train_micro_batch_size_per_gpu\": 2,\n"
    "  \"gradient_accumulation_steps\": 3,\n"
    "  \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 3e-4, \"torch_adam\": "
    "true}},\n"
    "  \"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"total_num_steps\": "
    "10,\n"
    "    \"warmup_num_steps\": 2}},\n"
    "  \"gradient_clipping\": 0.5,\n"
    "  \"data_types\": {\"grad_accum_dtype\": \"bf16\"},\n"
    "  \"activation_checkpointing\": {\"partition_activations\": false,\n"
    "    \"cpu_checkpointing\": false, \"number_checkpoints\": 2},\n"
    "  \"tensorboard\": {\"enabled\": false, \"output_path\": \"logs/\", \"job_name\": "
    "\"x\"},\n"
    "  \"csv_monitor\": {\"enabled\": false}, \"wandb\": {\"enabled\": false},\n"
    "  \"flops_profiler\": {\"enabled\": false, \"profile_step\": 1},\n"
    "  \"zero_optimization\": {\"stage\": 1},\n"
    "  \"zero_allow_untested_optimizer\": true,\n"
    "  \"communication_data_type\": \"fp32\",\n"
    "  \"dump_state\": false\n"
    "}\n";

static outcome train(void **state, const char *config) {
    file_text(state, "ds_config.json", config);
    file_text(state, "model.json", small_model);
    file_words(state, "text.txt", DATA_BYTES);
    return run(state, LIST("train", "--model", "model.json", "--data", "text.txt",
                           "ds_config.json", "--steps", "4"));
}

// The resolved value of a top-level number of run.json, derived ones included.
static double resolved(const json_t *run, const char *name) {
    const json_t *value = json_object_get(run, name);
    if (!value) {
        value = json_object_get(json_object_get(run, "derived"), name);
    }
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void check_batch(void **state, int batch, int micro, int steps) {
    json_t *run = file_json(state, "out/run.json");
    assert_true(resolved(run, "train_batch_size") == batch);
    assert_true(resolved(run, "train_micro_batch_size_per_gpu") == micro);
    assert_true(resolved(run, "gradient_accumulation_steps") == steps);
    assert_true(resolved(run, "steps") == 4);
    json_decref(run);
}

static void test_classic(void **state) {
    outcome o = train(state, classic);
    assert_int_equal(o.status, 0);
    assert_says(o.err, "batch 8 = 8 x 1 accumulation step; 4 optimizer steps");
    assert_says(o.err, "gradient_clipping 1; rate of update 1: 0");
    assert_says(o.err, "zero_optimization.allgather_partitions");
    assert_says(o.out, "step 4/4");
    outcome_free(&o);
    check_batch(state, 8, 8, 1);
}

static void test_auto(void **state) {
    outcome o = train(state, all_auto); // nobody but its user knows the rate
    assert_int_equal(o.status, 2);
    assert_says(o.err, "optimizer.params.lr is \"auto\", which nothing decides here");
    assert_says(o.err, "--set optimizer.params.lr=5e-5");
    outcome_free(&o);
    o = run(state,
            LIST("train", "ds_config.json", "--model", "model.json", "--data",
                 "text.txt", "--steps", "4", "--set", "optimizer.params.lr=1e-3"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "gradient_clipping 1");
    // Each "auto" is told with its value and where that is from.
    assert_says(o.err, "\"auto\" (the default of DeepSpeed): ");
    assert_says(o.err, "optimizer.params.betas [0.9, 0.999]");
    assert_says(o.err, "\"auto\" (steps of the run): "
                       "scheduler.params.total_num_steps 4\n");
    assert_says(o.err, "\"auto\" (each parameter group's own lr): "
                       "scheduler.params.warmup_max_lr\n");
    assert_says(o.err, "rate of update 1: 0; peak rate 0.001: down in a line to 0 at "
                       "update 4\n");
    outcome_free(&o);
    check_batch(state, 4, 4, 1);
    json_t *run = file_json(state, "out/run.json");
    const json_t *params = json_object_get(json_object_get(run, "optimizer"), "params");
    assert_true(json_number_value(json_object_get(params, "lr")) == 1e-3);
    assert_true(json_array_size(json_object_get(params, "betas")) == 2);
    json_decref(run);
}

// What "auto" cannot decide is asked for, all of it; then the file runs as it is.
static void test_trainer(void **state) {
    file_text(state, "ds_config.json", trainer);
    fail_with(state, NULL, LIST("train", "ds_config.json"), 2,
              LIST("5 problems:", "or use --model", "or --data PATH",
                   "--set train_batch_size=8", "--set optimizer.params.lr=5e-5",
                   "or use --steps"));
    file_text(state, "model.json", small_model);
    file_words(state, "text.txt", DATA_BYTES);
    outcome o =
        run(state, LIST("train", "ds_config.json", "--model", "model.json", "--data",
                        "text.txt", "--steps", "4", "--set", "train_batch_size=8",
                        "--set", "optimizer.params.lr=5e-5"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "precision f32 (bf16.enabled and fp16.enabled are \"auto\": ");
    assert_says(o.err,
                "ZeRO stage 2 (no effect on one rank); offload: optimizer to cpu");
    assert_says(o.out, "step 4/4");
    outcome_free(&o);
    free(succeed(state, LIST("plan", "ds_config.json", "--model", "model.json",
                             "--steps", "4", "--set", "train_batch_size=8")));
}

// A resumed run tells what has changed since, and its next rate.
static void test_changes(void **state) {
    outcome o = train(state, classic);
    assert_int_equal(o.status, 0);
    assert_says(o.err, "new random weights (seed 0)\nAdam, ");
    outcome_free(&o);
    o = run(state, LIST("train", "--model", "model.json", "--data", "text.txt",
                        "ds_config.json", "--steps", "6", "--set",
                        "scheduler.params.warmup_max_lr=0.002"));
    assert_int_equal(o.status, 0);
    assert_says(o.err, "changed since the checkpoint's run:\n    steps: 4 -> 6\n"
                       "    scheduler.params.warmup_max_lr: 0.001 -> 0.002\n");
    assert_says(o.err, "; rate of update 5: 0.000");
    assert_null(strstr(o.err, "new random weights"));
    outcome_free(&o);
    o = run(state, LIST("train", "--model", "model.json", "--data", "text.txt",
                        "ds_config.json", "--steps", "6", "--set",
                        "scheduler.params.warmup_max_lr=0.002"));
    assert_int_equal(o.status, 0);
    assert_null(strstr(o.err, "changed since"));
    outcome_free(&o);
}

static void test_accumulating(void **state) {
    outcome o = train(state, accumulating);
    assert_int_equal(o.status, 0);
    assert_says(o.err, "batch 6 = 2 x 3 accumulation steps");
    outcome_free(&o);
    check_batch(state, 6, 2, 3);
    char *plan = file_read(state, "out/plan.txt", NULL);
    assert_null(strstr(plan, "recomputed: no unit"));
    assert_says(plan, "(keeps nothing)");
    assert_says(plan, "gradients summed in bf16");
    free(plan);
}

// DeepSpeed has a folder of its own for NVMe; here it is named.
static void test_offload(void **state) {
    file_text(state, "ds_config.json",
              "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 1,\n"
              "  \"offload_optimizer\": {\"device\": \"nvme\"}}}");
    file_words(state, "text.txt", DATA_BYTES);
    fail_with(state, NULL,
              LIST("train", "--model", "gpt2", "--data", "text.txt", "ds_config.json",
                   "--steps", "1"),
              2, LIST("offload to NVMe needs a folder", "memory.nvme.path"));
}

// A published name is its published shape, on bytes too.
static void test_published_name(void **state) {
    file_text(state, "ds_config.json", classic);
    file_words(state, "text.txt", DATA_BYTES);
    char *plan = succeed(
        state, LIST("plan", "--model", "gpt2", "--data", "text.txt", "ds_config.json"));
    assert_says(plan, "model gpt2: 14 units, 124439808 parameters");
    free(plan);
}

// ---- files for other programs, as they are

// What trainers' files begin and end with.
#define OPEN_16                                                                        \
    "\"bf16\": {\"enabled\": \"auto\"}, \"fp16\": {\"enabled\": \"auto\", "            \
    "\"auto_cast\": "                                                                  \
    "false, \"loss_scale\": 0, \"initial_scale_power\": 32, \"loss_scale_window\": "   \
    "1000, \"hysteresis\": 2, \"min_loss_scale\": 1}, "
#define OPEN_BATCH                                                                     \
    "\"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\", "     \
    "\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\", "   \
    "\"wall_clock_breakdown\": false}"
#define STAGE_3                                                                        \
    "\"stage\": 3, \"overlap_comm\": true, \"contiguous_gradients\": true, "           \
    "\"sub_group_size\": 0, \"reduce_bucket_size\": \"auto\""
#define TO_CPU "{\"device\": \"cpu\", \"pin_memory\": true}"

static const char *const files[] = {
    "{\"zero_optimization\": {\"stage\": 1, \"overlap_comm\": true}, " OPEN_16
    "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\", \"betas\": "
    "\"auto\", \"eps\": \"auto\", \"weight_decay\": \"auto\"}}, " OPEN_BATCH,
    "{\"compile\": {\"disable\": false, \"backend\": \"inductor\"}, "
    "\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": "
    "\"cpu\"}, "
    "\"contiguous_gradients\": true, \"overlap_comm\": true}, " OPEN_16 OPEN_BATCH,
    "{\"zero_optimization\": {" STAGE_3 ", \"stage3_prefetch_bucket_size\": \"auto\", "
    "\"stage3_param_persistence_threshold\": \"auto\", "
    "\"stage3_max_live_parameters\": 0, \"stage3_max_reuse_distance\": 0, "
    "\"stage3_gather_16bit_weights_on_model_save\": true}, " OPEN_16 OPEN_BATCH,
    "{\"zero_optimization\": {" STAGE_3 ", \"prefetch_bucket_size\": \"auto\", "
    "\"param_persistence_threshold\": \"auto\", \"max_live_parameters\": 0, "
    "\"max_reuse_distance\": 0, \"gather_16bit_weights_on_model_save\": true}, "
    "\"bf16\": {\"enabled\": true}, " OPEN_BATCH,
    "{\"zero_force_ds_cpu_optimizer\": false, \"zero_allow_untested_optimizer\": true, "
    "\"zero_optimization\": {" STAGE_3 ", \"offload_optimizer\": " TO_CPU
    ", \"offload_param\": " TO_CPU ", \"stage3_prefetch_bucket_size\": \"auto\", "
    "\"stage3_param_persistence_threshold\": \"auto\", \"max_live_parameters\": 0, "
    "\"max_reuse_distance\": 0, \"gather_16bit_weights_on_model_save\": true}, "
    "\"bf16\": {\"enabled\": true}, " OPEN_BATCH,
    "{\"bfloat16\": {\"enabled\": \"auto\"}, \"scheduler\": {\"type\": "
    "\"WarmupDecayLR\", \"params\": {\"total_num_steps\": \"auto\", "
    "\"warmup_min_lr\": \"auto\", \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": "
    "\"auto\"}}, \"zero_optimization\": {" STAGE_3 ", \"offload_param\": {\"device\": "
    "\"cpu\", \"nvme_path\": \"/nvme\", \"pin_memory\": true, \"buffer_count\": 5, "
    "\"buffer_size\": 1e8, \"max_in_cpu\": 1e9}, \"aio\": {\"block_size\": 262144}, "
    "\"stage3_gather_fp16_weights_on_model_save\": \"auto\"}, \"steps_per_print\": "
    "2000, " OPEN_BATCH,
};

// Keys that do what they say, or are in a group that is not enabled.
static bool acts(const char *key) {
    static const char *const acting[] = {"zero_optimization.stage",
                                         "zero_optimization.overlap_comm",
                                         "zero_optimization.offload_optimizer.device",
                                         "zero_optimization.offload_param.device",
                                         "bf16.enabled",
                                         "bfloat16.enabled",
                                         "fp16.",
                                         "optimizer.",
                                         "scheduler.",
                                         "gradient_accumulation_steps",
                                         "gradient_clipping",
                                         "train_batch_size",
                                         "train_micro_batch_size_per_gpu",
                                         "steps_per_print"};
    for (size_t i = 0; i < sizeof acting / sizeof *acting; i++) {
        size_t length = strlen(acting[i]);
        bool group = acting[i][length - 1] == '.';
        if (group ? strncmp(key, acting[i], length) == 0 : !strcmp(key, acting[i])) {
            return true;
        }
    }
    return false;
}

// Every key has an effect, or its name, or that of its group, is in what the run says.
static void check_told(const json_t *object, const char *group, const char *said) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        char key[256];
        snprintf(key, sizeof key, "%s%s%s", group, *group ? "." : "", name);
        bool told = strstr(said, key);
        if (json_is_object(value) && !told) {
            check_told(value, key, said);
        } else if (!told && !acts(key)) {
            fail_msg("nothing is said of %s:\n%s", key, said);
        }
    }
}

static void test_as_they_are(void **state) {
    file_text(state, "model.json", small_model);
    file_words(state, "text.txt", DATA_BYTES);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        file_text(state, "ds_config.json", files[i]);
        outcome o = run(state, LIST("train", "ds_config.json", "--model", "model.json",
                                    "--data", "text.txt", "--steps", "2", "--set",
                                    "train_batch_size=4", "--set",
                                    "optimizer.params.lr=5e-5", "--resume", "never"));
        if (o.status != 0) {
            fail_msg("%s\n%s", files[i], o.err);
        }
        json_t *given = json_loads(files[i], 0, NULL);
        assert_non_null(given);
        check_told(given, "", o.err);
        json_decref(given);
        if (strstr(files[i], "bfloat16")) {
            assert_says(o.err, "f32 (bfloat16.enabled is \"auto\": set it to true");
        }
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_classic),        TEST(test_auto),        TEST(test_accumulating),
        TEST(test_offload),        TEST(test_trainer),     TEST(test_changes),
        TEST(test_published_name), TEST(test_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
