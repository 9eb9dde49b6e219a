// A folder that transformers saved (tests/data/goldens/gpt2/initial), trained for a
// step at rate 0 and saved: the same tensors, and a config.json that says the same.
// outside/hugging_face asks transformers itself, where it is installed.
#include "command.h"
#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char initial[] = TR_TEST_DATA "/goldens/gpt2/initial";

static void write_run(void **state) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model\": \"%s\", \"steps\": 1, \"data\": {\"format\": \"tokens\", "
             "\"train\": \"%s/goldens/gpt2/tokens.u16\"}, \"train_batch_size\": 4, "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0}}, "
             "\"out\": \"out\"}",
             initial, TR_TEST_DATA);
    file_text(state, "run.json", text);
    free(succeed(state, LIST("train", "run.json")));
}

static void test_tensors(void **state) {
    write_run(state);
    char *said = succeed(state, LIST("diff", initial, "out"));
    assert_says(said, "bit-identical");
    free(said);
    // from_pretrained refuses a file that does not say what wrote it.
    size_t bytes = 0;
    char *file = file_read(state, "out/checkpoints/latest/model.safetensors", &bytes);
    uint64_t header = 0;
    memcpy(&header, file, sizeof header);
    assert_true(header > 0 && header < bytes - sizeof header);
    json_t *names = json_loadb(file + sizeof header, (size_t)header, 0, NULL);
    const char *form = NULL;
    assert_int_equal(json_unpack(names, "{s:{s:s}}", "__metadata__", "format", &form),
                     0);
    assert_string_equal(form, "pt");
    assert_non_null(json_object_get(names, "transformer.h.1.attn.c_attn.weight"));
    assert_null(json_object_get(names, "lm_head.weight")); // tied
    json_decref(names);
    free(file);
}

// What differs in a number of inner units is what null stands for; left out are what
// the library writes for itself and features at their defaults, which Tranche refuses
// else.
static void test_config(void **state) {
    static const char *const own[] = {
        "add_cross_attention",
        "dtype",
        "n_inner",
        "scale_attn_by_inverse_layer_idx",
        "scale_attn_weights",
        "transformers_version",
    };
    json_error_t error;
    char path[1024];
    const char *key;
    json_t *value;
    write_run(state);
    snprintf(path, sizeof path, "%s/config.json", initial);
    json_t *theirs = json_load_file(path, 0, &error);
    json_t *ours = file_json(state, "out/checkpoints/latest/config.json");
    assert_true(json_object_size(theirs) > 20);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        assert_int_equal(json_object_del(theirs, own[i]), 0);
    }
    json_object_foreach(theirs, key, value) {
        if (!json_equal(value, json_object_get(ours, key))) {
            fail_msg("config.json: %s is not what it was", key);
        }
    }
    assert_int_equal(json_integer_value(json_object_get(ours, "n_inner")), 4 * 32);
    json_decref(theirs);
    json_decref(ours);
}

// In the latest checkpoint: the f32 weights rounded to bf16, in shards with an index.
static void test_bf16_in_shards(void **state) {
    static const char at[] = "rounded/checkpoints/latest/";
    json_t *names[2];
    write_run(state);
    file_text(
        state, "deep.json",
        "{\"model_type\": \"gpt2\", \"n_layer\": 20, \"n_embd\": 8, \"n_head\": 2, "
        "\"n_positions\": 16, \"vocab_size\": 61}");
    free(succeed(state, LIST("train", "run.json", "--out", "rounded", "--set",
                             "checkpoint.dtype=bf16", "--set",
                             "checkpoint.shard_bytes=16KiB")));
    outcome o = run(state, LIST("diff", initial, "rounded", "--json"));
    assert_int_equal(o.status, 1);
    json_t *diff = json_loads(o.out, 0, NULL);
    const char *kind = json_string_value(
        json_object_get(json_array_get(json_object_get(diff, "tensors"), 0), "status"));
    assert_non_null(kind);
    assert_string_equal(kind, "dtype");
    assert_true(json_number_value(json_object_get(diff, "max_rel")) <= 0x1p-8);
    json_decref(diff);
    outcome_free(&o);
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", at,
                 i ? "model.safetensors.index.json" : "config.json");
        names[i] = file_json(state, path);
    }
    assert_string_equal(json_string_value(json_object_get(names[0], "dtype")),
                        "bfloat16");
    assert_string_equal(json_string_value(json_object_get(names[0], "torch_dtype")),
                        "bfloat16");
    assert_true(json_object_size(json_object_get(names[1], "weight_map")) > 20);
    json_decref(names[0]);
    json_decref(names[1]);
    assert_int_equal(
        access(file_path(state, "rounded/checkpoints/latest/model.safetensors"), F_OK),
        -1);
    // The others read it.
    char *said = succeed(state, LIST("inspect", "rounded"));
    assert_says(said, "BF16");
    assert_says(said, "transformer.ln_f.weight.master");
    free(said);
    free(succeed(state,
                 LIST("sample", "rounded", "--prompt", "1 2 3", "--tokens", "4")));
    free(succeed(state,
                 LIST("evaluate", "rounded/checkpoints/latest", "--data",
                      TR_TEST_DATA "/goldens/gpt2/tokens.u16", "--format", "tokens")));
    // More files than a checkpoint may have.
    fail_with(state, NULL,
              LIST("train", "run.json", "--model", "deep.json", "--out", "many",
                   "--set", "checkpoint.shard_bytes=1"),
              2, LIST("checkpoint.shard_bytes is 1"));
}

// Keys that Tranche has no use for go from the folder's config.json into a
// checkpoint's, but not into run.json, which would not take them; and the name of
// transformers' class is there in any case.
static void test_other_keys(void **state) {
    char text[1024];
    file_text(
        state, "model.json",
        "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 8, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"vocab_size\": 61, "
        "\"max_position_embeddings\": 16, \"unk_token_id\": 7, \"dtype\": "
        "\"bfloat16\", \"of_somebody\": {\"else\": [1, null]}}");
    snprintf(text, sizeof text,
             "{\"model\": \"model.json\", \"steps\": 1, \"data\": {\"format\": "
             "\"tokens\", \"train\": \"%s/goldens/gpt2/tokens.u16\"}, "
             "\"train_batch_size\": 4}",
             TR_TEST_DATA);
    file_text(state, "run.json", text);
    free(succeed(state, LIST("train", "run.json")));
    json_t *ours = file_json(state, "out/checkpoints/latest/config.json");
    int unknown = 0, one = 0;
    const char *class = NULL, *dtype = NULL;
    assert_int_equal(json_unpack(ours, "{s:i, s:{s:[i,n]}, s:[s], s:s}", "unk_token_id",
                                 &unknown, "of_somebody", "else", &one, "architectures",
                                 &class, "dtype", &dtype),
                     0);
    assert_int_equal(unknown, 7);
    assert_string_equal(class, "LlamaForCausalLM");
    assert_string_equal(dtype, "float32"); // that of the weights there
    json_decref(ours);
    free(succeed(state, LIST("train", "out/run.json", "--steps", "2")));
    ours = file_json(state, "out/checkpoints/latest/config.json");
    assert_non_null(json_object_get(ours, "architectures"));
    json_decref(ours);
}

// What a schedule does behind its total_num_steps is said where the run goes on there.
static void test_schedule_beyond(void **state) {
    static const struct {
        const char *type, *total, *says;
    } cases[] = {
        {"cosine", "4", "rises again, up to 0.854 of the rate"},
        {"linear", "4", "the updates after these have rate 0"},
        {"cosine", "7", NULL}, // update 8 is at its end
        {"WarmupCosineLR", "4", NULL},
    };
    run_file(state, text_run, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char scheduler[128];
        snprintf(scheduler, sizeof scheduler,
                 "scheduler={\"type\": \"%s\", \"params\": {\"total_num_steps\": %s}}",
                 cases[i].type, cases[i].total);
        outcome o = run(
            state, LIST("plan", "run.json", "--set", "steps=8", "--set", scheduler));
        assert_int_equal(o.status, 0);
        if (cases[i].says) {
            assert_says(o.err, "total_num_steps is 4, but the run has 8 updates");
            assert_says(o.err, cases[i].says);
        } else {
            assert_null(strstr(o.err, "total_num_steps"));
        }
        outcome_free(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_tensors),    TEST(test_config),          TEST(test_bf16_in_shards),
        TEST(test_other_keys), TEST(test_schedule_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
