// What a run file says, as the rooms read it.
#include "config/helper.h"

#include "base/memory.h"
#include "run/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

static void test_defaults(void **state) {
    (void)state;
    tr_config *config = good_config("{}", NULL);
    assert_string_equal(tr__config_text(config, "optimizer.type"), "AdamW");
    assert_true(tr__config_number(config, "optimizer.params.lr") == 1e-3);
    assert_true(tr__config_number_at(config, "optimizer.params.betas", 1) == 0.999);
    assert_true(tr__config_number(config, "gradient_clipping") == 1.0);
    assert_int_equal(tr__config_int(config, "zero_optimization.stage"), 0);
    assert_true(tr__config_bool(config, "optimizer.params.adam_w_mode"));
    assert_true(tr__config_is_auto(config, "execution.wave"));
    assert_false(tr__config_is_given(config, "execution.wave"));
    assert_false(tr__config_is_set(config, "train_batch_size"));
    assert_int_equal(tr__config_type(config, "model"), 0);
    assert_int_equal(tr__config_count(config, "data.train"), 0);
    assert_int_equal(tr__config_origin(config, "seed"), TR_ORIGIN_DEFAULT);
    assert_null(tr__config_no_meaning(config));
    // Not a parameter of AdamW: no value.
    assert_false(tr__config_is_set(config, "optimizer.params.momentum"));
    tr__config_destroy(config);
}

// As DeepSpeed reads it: comments, and commas behind the last element.
static void test_plain(void **state) {
    (void)state;
    tr_config *config = good_config(
        "# a /* comment\n"
        "{ // another: \"seed\": 1,\n"
        "  \"seed\": 7, /* over\n lines, \" */ \"out\": \"a//b#c/*d*/,}\\\"#e\",\n"
        "  \"data\": {\"train\": [\"x\", \"y\" , # z\n ], },\n}\n# end",
        NULL);
    assert_int_equal(tr__config_int(config, "seed"), 7);
    assert_string_equal(tr__config_text(config, "out"), "a//b#c/*d*/,}\"#e");
    assert_int_equal(tr__config_count(config, "data.train"), 2);
    tr__config_destroy(config);
}

// A size in place of a group.
static void test_of_group(void **state) {
    (void)state;
    static const char *const sets[] = {"memory=1GiB", "memory.host=5", NULL};
    tr_config *config = good_config("{\"memory\": \"2GiB\"}", NULL);
    assert_int_equal(tr__config_size(config, "memory.total"), (int64_t)2 << 30);
    tr__config_destroy(config);
    config = good_config("{\"memory\": {\"total\": 3, \"device\": 4}}", sets);
    assert_int_equal(tr__config_size(config, "memory.total"), 1 << 30);
    assert_int_equal(tr__config_size(config, "memory.host"), 5);
    assert_false(tr__config_is_set(config, "memory.device"));
    assert_int_equal(tr__config_origin(config, "memory.total"), TR_ORIGIN_SET);
    tr__config_destroy(config);
}

// The rows of the tables say which field of the settings a value goes into.
static void test_fields(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"seed\": 7, \"steps_per_print\": \"auto\", \"checkpoint\": {\"best\": true, "
        "\"keep\": 5, \"shard_bytes\": \"2KiB\"}, \"spike_guard\": {\"action\": "
        "\"skip\", "
        "\"threshold\": 4}, \"fp16\": {\"enabled\": true, \"hysteresis\": \"auto\"}}",
        NULL);
    tr_settings settings = {.log_steps = 9};
    tr__config_read_fields(config, &settings);
    assert_int_equal(settings.seed, 7);
    assert_int_equal(settings.log_steps, 9); // "auto" without a default is no value
    assert_true(settings.checkpoint_best);
    assert_int_equal(settings.keep, 5);
    assert_int_equal(settings.shard_bytes, 2048);
    assert_int_equal(settings.guard.action, TR_GUARD_SKIP);
    assert_true(settings.guard.threshold == 4);
    assert_int_equal(settings.guard.after, 20);     // a default
    assert_int_equal(settings.scale.hysteresis, 2); // the default of "auto"
    assert_true(settings.checkpoint_minutes == 10);
    tr__config_destroy(config);
}

// A key that the user has said has no effect where its row's rule says so.
static bool is_idle(const void *object) {
    return *(const bool *)object;
}

static void test_idle(void **state) {
    (void)state;
    static const tr_key keys[] = {
        {.path = "a", .types = TR_KEY_INT, .idle = is_idle, .why = "of this"},
        {.path = "b", .types = TR_KEY_INT, .idle = is_idle, .allow_auto = true},
        {.path = "c", .types = TR_KEY_INT, .fallback = "1", .idle = is_idle},
    };
    static const tr_key_table table = {.keys = keys, .count = 3};
    const tr_key_table *const tables[] = {&table};
    const char *text = "{\"a\": 3, \"b\": \"auto\"}";
    bool yes = true, no = false;
    tr_config *config = NULL;
    assert_int_equal(tr__config_parse(&(tr_config_text){"run", text, strlen(text)},
                                      tables, 1, NULL, 0, &config, NULL),
                     TR_OK);
    assert_ptr_equal(tr__config_idle(config, &yes, 0), &keys[0]);
    assert_null(tr__config_idle(config, &yes, 1));
    assert_null(tr__config_idle(config, &no, 0));
    tr__config_destroy(config);
}

static void test_given(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"train_batch_size\": 5e2, \"optimizer\": {\"type\": \"sgd\", \"params\":"
        "{\"lr\": 1, \"momentum\": 0.9}}, \"model\": {\"model_type\": \"mlp\"},"
        "\"data\": {\"format\": \"csv\", \"train\": [\"a\", \"b\"], \"validation\": "
        "0.1,"
        "           \"label_column\": 3}, \"seed\": null,"
        "\"train_micro_batch_size_per_gpu\": \"auto\"}",
        NULL);
    assert_int_equal(tr__config_int(config, "train_batch_size"), 500);
    assert_string_equal(tr__config_text(config, "optimizer.type"), "SGD");
    assert_true(tr__config_number(config, "optimizer.params.lr") == 1.0);
    assert_true(tr__config_number(config, "optimizer.params.momentum") == 0.9);
    assert_int_equal(tr__config_origin(config, "optimizer.params.lr"), TR_ORIGIN_FILE);
    assert_int_equal(tr__config_type(config, "model"), TR_KEY_OBJECT);
    assert_int_equal(json_object_size(tr__config_json(config, "model")), 1);
    assert_int_equal(tr__config_count(config, "data.train"), 2);
    assert_string_equal(tr__config_text_at(config, "data.train", 1), "b");
    assert_int_equal(tr__config_type(config, "data.validation"), TR_KEY_NUMBER);
    assert_true(tr__config_number(config, "data.validation") == 0.1);
    assert_int_equal(tr__config_type(config, "data.label_column"), TR_KEY_INT);
    assert_int_equal(tr__config_int(config, "seed"), 0);
    assert_false(tr__config_is_given(config, "seed"));
    assert_true(tr__config_is_auto(config, "train_micro_batch_size_per_gpu"));
    assert_true(tr__config_is_given(config, "train_micro_batch_size_per_gpu"));
    assert_false(tr__config_is_set(config, "train_micro_batch_size_per_gpu"));
    tr__config_destroy(config);
}

static void test_one_or_list(void **state) {
    (void)state;
    tr_config *config = good_config("{\"data\": {\"train\": \"a\"}}", NULL);
    assert_int_equal(tr__config_count(config, "data.train"), 1);
    assert_string_equal(tr__config_text_at(config, "data.train", 0), "a");
    tr__config_destroy(config);
}

// Names without regard to case, numbered ones, too; null in an element as elsewhere.
static void test_spelling(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"device\": \"CUDA:1\", \"optimizer\": {\"type\": \"adamw\", \"groups\": "
        "[{\"match\": \"*\", \"lr\": null, \"weight_decay\": 1}]}}",
        NULL);
    assert_string_equal(tr__config_text(config, "device"), "cuda:1");
    assert_string_equal(tr__config_text(config, "optimizer.type"), "AdamW");
    json_t *group = json_array_get(tr__config_json(config, "optimizer.groups"), 0);
    assert_int_equal(json_object_size(group), 2);
    tr__config_destroy(config);
}

static void test_set(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"steps\": 3, \"model\": {\"n_layer\": 2}, \"data\": null, \"seed\": 7}",
        WORDS("steps=4", "steps=5", "model.n_layer=12", "out=123",
              "optimizer.params.betas=[0.5, 0.6]", "data.train=a=b.txt", "seed=null",
              "scheduler={\"type\": \"WarmupLR\"}",
              "scheduler.params.warmup_num_steps=1e1", "data.drop_last=true"));
    assert_int_equal(tr__config_int(config, "steps"), 5);
    assert_int_equal(tr__config_origin(config, "steps"), TR_ORIGIN_SET);
    json_t *layers = json_object_get(tr__config_json(config, "model"), "n_layer");
    assert_int_equal(json_integer_value(layers), 12);
    assert_string_equal(tr__config_text(config, "out"), "123");
    assert_true(tr__config_number_at(config, "optimizer.params.betas", 0) == 0.5);
    assert_string_equal(tr__config_text_at(config, "data.train", 0), "a=b.txt");
    assert_int_equal(tr__config_int(config, "seed"), 0);
    assert_int_equal(tr__config_int(config, "scheduler.params.warmup_num_steps"), 10);
    assert_int_equal(tr__config_origin(config, "scheduler.type"), TR_ORIGIN_SET);
    assert_true(tr__config_bool(config, "data.drop_last"));
    tr__config_destroy(config);
}

static void test_command_line(void **state) {
    (void)state;
    const tr_config_override options[] = {
        {.key = "data.train",
         .value = "1",
         .literal = true,
         .append = true,
         .source = "command line"},
        {.key = "steps", .value = "9", .source = "command line"},
        {.key = "data.train",
         .value = "null",
         .literal = true,
         .append = true,
         .source = "command line"},
        {.key = "model", .value = "gpt2", .literal = true, .source = "command line"},
    };
    const char text[] = "{\"data\": {\"train\": [\"x\", \"y\", \"z\"]}, \"steps\": 2}";
    tr_config *config = NULL;
    tr_error err = {0};
    assert_int_equal(tr__config_parse(&(tr_config_text){"run.json", text, strlen(text)},
                                      tr__key_tables, TR_KEY_TABLES, options, 4,
                                      &config, &err),
                     TR_OK);
    assert_int_equal(tr__config_count(config, "data.train"), 2);
    assert_string_equal(tr__config_text_at(config, "data.train", 0), "1");
    assert_string_equal(tr__config_text_at(config, "data.train", 1), "null");
    assert_int_equal(tr__config_int(config, "steps"), 9);
    assert_int_equal(tr__config_origin(config, "steps"), TR_ORIGIN_SET);
    assert_string_equal(tr__config_text(config, "model"), "gpt2");
    tr__config_destroy(config);
}

static void test_no_meaning(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"zero_optimization\": {\"stage\": 2, \"reduce_scatter\": true,"
        " \"reduce_bucket_size\": 5e8, \"allgather_bucket_size\": \"auto\"},"
        "\"tensorboard\": {\"enabled\": false, \"output_path\": \"x\"},"
        "\"comet\": {\"enabled\": true, \"project\": \"j\"}}",
        NULL);
    assert_string_equal(tr__config_no_meaning(config),
                        "zero_optimization.reduce_scatter, "
                        "zero_optimization.reduce_bucket_size, "
                        "zero_optimization.allgather_bucket_size");
    // A switch that is on has a line of its own, for all of its group.
    assert_string_equal(tr__config_unmet(config, 0)->path, "comet.enabled");
    assert_null(tr__config_unmet(config, 1));
    tr__config_destroy(config);
}

static void test_resolve(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"train_batch_size\": 30, \"train_micro_batch_size_per_gpu\": \"auto\","
        "\"gradient_clipping\": \"auto\"}",
        NULL);
    tr_error err = {0};
    const char *why = "memory";
    assert_int_equal(tr__config_resolve_int(config, "train_micro_batch_size_per_gpu", 4,
                                            TR_ORIGIN_AUTO, why, &err),
                     TR_OK);
    assert_int_equal(tr__config_resolve_int(config, "gradient_accumulation_steps", 8,
                                            TR_ORIGIN_DERIVED, NULL, &err),
                     TR_OK);
    // What the user wrote stays.
    assert_int_equal(tr__config_resolve_int(config, "train_batch_size", 31,
                                            TR_ORIGIN_DERIVED, NULL, &err),
                     TR_OK);
    assert_int_equal(tr__config_settle(config, &err), TR_OK);
    assert_int_equal(tr__config_int(config, "train_batch_size"), 30);
    assert_int_equal(tr__config_int(config, "train_micro_batch_size_per_gpu"), 4);
    assert_int_equal(tr__config_int(config, "gradient_accumulation_steps"), 8);
    assert_int_equal(tr__config_origin(config, "gradient_accumulation_steps"),
                     TR_ORIGIN_DERIVED);
    assert_false(tr__config_is_auto(config, "gradient_clipping"));
    assert_true(tr__config_number(config, "gradient_clipping") == 1.0);
    assert_int_equal(tr__config_origin(config, "gradient_clipping"), TR_ORIGIN_AUTO);
    tr__config_destroy(config);
}

static json_t *written(const tr_config *config) {
    char *text = NULL;
    tr_error err = {0};
    assert_int_equal(tr__config_write_resolved(config, &text, &err), TR_OK);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    tr__free(text);
    return json;
}

static void test_round_trip(void **state) {
    (void)state;
    tr_config *config = good_config(
        "{\"train_batch_size\": 30, \"model\": {\"n\": 1, \"x\": [0.1, null]},"
        "\"optimizer\": {\"params\": {\"lr\": 3.3333333333333331e-5}, \"groups\":"
        " [{\"match\": [\"*.bias\", \"ln_*\"], \"weight_decay\": 0}]},"
        "\"zero_optimization\": {\"reduce_scatter\": true},"
        "\"out\": \"a \\\"b\\\" \\\\ %s \\u00e9 \\n\"}",
        WORDS("seed=11", "train_micro_batch_size_per_gpu=4"));
    tr_error err = {0};
    assert_int_equal(tr__config_resolve_int(config, "gradient_accumulation_steps", 8,
                                            TR_ORIGIN_DERIVED, "ceil(T / (m * W))",
                                            &err),
                     TR_OK);
    assert_int_equal(tr__config_resolve_int(config, "execution.wave", 8, TR_ORIGIN_AUTO,
                                            "plan", &err),
                     TR_OK);
    json_t *first = written(config);
    json_t *origins = json_object_get(first, "origins");
#define ORIGIN(key) json_string_value(json_object_get(origins, key))
    assert_string_equal(ORIGIN("train_batch_size"), "file");
    assert_string_equal(ORIGIN("seed"), "--set");
    assert_string_equal(ORIGIN("gradient_clipping"), "default");
    assert_string_equal(ORIGIN("execution.wave"), "auto: plan");
    assert_string_equal(ORIGIN("gradient_accumulation_steps"),
                        "derived: ceil(T / (m * W))");
    assert_null(json_object_get(first, "gradient_accumulation_steps"));
    json_t *derived = json_object_get(first, "derived");
    assert_int_equal(
        json_integer_value(json_object_get(derived, "gradient_accumulation_steps")), 8);
    assert_null(json_object_get(first, "amp"));
    assert_null(ORIGIN("optimizer.params.momentum"));

    // It is a run file, and says the same.
    char *text = json_dumps(first, JSON_REAL_PRECISION(17));
    tr_config *again = good_config(text, NULL);
    assert_true(tr__config_number(again, "optimizer.params.lr") ==
                3.3333333333333331e-5);
    assert_string_equal(tr__config_text(again, "out"), "a \"b\" \\ %s \xc3\xa9 \n");
    assert_false(tr__config_is_set(again, "gradient_accumulation_steps"));
    assert_int_equal(tr__config_int(again, "execution.wave"), 8);
    assert_non_null(tr__config_no_meaning(again));
    assert_int_equal(tr__config_resolve_int(again, "gradient_accumulation_steps", 8,
                                            TR_ORIGIN_DERIVED, NULL, &err),
                     TR_OK);
    json_t *second = written(again);
    json_object_del(first, "origins");
    json_object_del(second, "origins");
    assert_true(json_equal(first, second));
    json_decref(second);
    tr__config_destroy(again);
    free(text);
    json_decref(first);
    tr__config_destroy(config);
}

// A file as it is passed around for DeepSpeed with a Hugging Face trainer.
static const char ds_config[] =
    "{\n"
    "  \"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0, \"loss_scale_window\": "
    "1000,\n"
    "    \"initial_scale_power\": 16, \"hysteresis\": 2, \"min_loss_scale\": 1},\n"
    "  \"bf16\": {\"enabled\": \"auto\"},\n"
    "  \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\",\n"
    "    \"betas\": \"auto\", \"eps\": \"auto\", \"weight_decay\": \"auto\"}},\n"
    "  \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_min_lr\":\n"
    "    \"auto\", \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\",\n"
    "    \"total_num_steps\": \"auto\"}},\n"
    "  \"zero_optimization\": {\"stage\": 3,\n"
    "    \"offload_optimizer\": {\"device\": \"none\", \"pin_memory\": true},\n"
    "    \"offload_param\": {\"device\": \"none\", \"pin_memory\": true},\n"
    "    \"overlap_comm\": true, \"contiguous_gradients\": true,\n"
    "    \"sub_group_size\": 1e9, \"reduce_bucket_size\": \"auto\",\n"
    "    \"stage3_prefetch_bucket_size\": \"auto\",\n"
    "    \"stage3_param_persistence_threshold\": \"auto\",\n"
    "    \"stage3_max_live_parameters\": 1e9, \"stage3_max_reuse_distance\": 1e9,\n"
    "    \"stage3_gather_16bit_weights_on_model_save\": true},\n"
    "  \"gradient_accumulation_steps\": \"auto\",\n"
    "  \"gradient_clipping\": \"auto\",\n"
    "  \"steps_per_print\": 2000,\n"
    "  \"train_batch_size\": \"auto\",\n"
    "  \"train_micro_batch_size_per_gpu\": \"auto\",\n"
    "  \"activation_checkpointing\": {\"partition_activations\": false,\n"
    "    \"cpu_checkpointing\": false, \"contiguous_memory_optimization\": false,\n"
    "    \"number_checkpoints\": null, \"synchronize_checkpoint_boundary\": false,\n"
    "    \"profile\": false},\n"
    "  \"flops_profiler\": {\"enabled\": false, \"profile_step\": 1,\n"
    "    \"module_depth\": -1, \"top_modules\": 3, \"detailed\": true,\n"
    "    \"output_file\": null},\n"
    "  \"tensorboard\": {\"enabled\": false, \"output_path\": \"logs/\"},\n"
    "  \"aio\": {\"block_size\": 1048576, \"queue_depth\": 8, \"thread_count\": 1,\n"
    "    \"single_submit\": false, \"overlap_events\": true},\n"
    "  \"wall_clock_breakdown\": false\n"
    "}\n";

static void test_deepspeed_file(void **state) {
    (void)state;
    tr_config *config = good_config(ds_config, NULL);
    assert_int_equal(tr__config_int(config, "zero_optimization.stage"), 3);
    assert_true(tr__config_is_auto(config, "train_batch_size"));
    assert_int_equal(tr__config_int(config, "steps_per_print"), 2000);
    const char *unused = tr__config_no_meaning(config);
    assert_non_null(strstr(unused, "zero_optimization.contiguous_gradients, "));
    assert_non_null(strstr(unused, "wall_clock_breakdown"));
    assert_non_null(strstr(unused, "aio.*"));
    assert_null(strstr(unused, "aio.block_size"));
    assert_non_null(strstr(unused, "reduce_bucket_size")); // "auto"
    assert_null(strstr(unused, "tensorboard"));
    tr__config_destroy(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_fields),
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_of_group),
        cmocka_unit_test(test_idle),           cmocka_unit_test(test_given),
        cmocka_unit_test(test_one_or_list),    cmocka_unit_test(test_set),
        cmocka_unit_test(test_command_line),   cmocka_unit_test(test_no_meaning),
        cmocka_unit_test(test_resolve),        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_deepspeed_file), cmocka_unit_test(test_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
