// Adapters as GGUF files: two matrices for each layer, and the number by which their
// product is multiplied.
#include "convert/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/gguf/gguf.h"
#include "files/safetensors/tensor_set.h"
#include "files/safetensors/tensor_writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ADAPTERS TR_TEST_DATA "/adapters"

// PEFT's adapter of a golden without what it has in modules_to_save: a folder of the
// test's with this adapter_config.json.
static const char *adapter_of(void **state, const char *golden, const char *config) {
    char from[PATH_MAX];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    tr_tensor_spec specs[64];
    char names[64][160];
    const tr_stored_tensor *tensors[64];
    size_t count = 0;
    tr_tensor_writer *writer = NULL;
    const char *folder = path_of(state, "adapter");
    must(tr__folder_create(folder, &err), &err);
    snprintf(from, sizeof from, ADAPTERS "/%s/adapter/adapter_model.safetensors",
             golden);
    must(tr__tensor_set_open(from, &set, &err), &err);
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *t = tr__tensor_set_at(set, i);
        if (strstr(t->name, "lora_")) {
            snprintf(names[count], sizeof names[count], "%s", t->name);
            specs[count] =
                (tr_tensor_spec){names[count], TR_F32, TR_SHAPE2(t->dim[0], t->dim[1])};
            tensors[count++] = t;
        }
    }
    must(tr__tensor_writer_create(path_of(state, "adapter/adapter_model.safetensors"),
                                  specs, count, &writer, &err),
         &err);
    for (size_t i = 0; i < count; i++) {
        float values[4096];
        must(tr__tensor_read_f32(set, tensors[i], 0, tensors[i]->count, values, &err),
             &err);
        must(tr__tensor_writer_put(writer, i, 0, tensors[i]->count, values, &err),
             &err);
    }
    int64_t bytes = 0;
    uint64_t hash = 0;
    must(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
    tr__tensor_set_close(set);
    put_content(path_of(state, "adapter/adapter_config.json"), config, strlen(config));
    return folder;
}

static const char llama_config[] =
    "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 5, "
    "\"base_model_name_or_path\": \"" ADAPTERS "/llama/base\", "
    "\"target_modules\": [\"q_proj\", \"v_proj\", \"down_proj\", \"up_proj\"]}";

static float *read_file(const tr_gguf *gguf, const char *name,
                        const tr_gguf_tensor **out) {
    tr_error err = {0};
    *out = tr__gguf_find_tensor(gguf, name);
    assert_non_null(*out);
    float *values = tr__calloc((size_t)(*out)->count, sizeof *values);
    must(tr__gguf_read(gguf, *out, 0, (*out)->count, values, &err), &err);
    return values;
}

static void is_text(const tr_gguf *gguf, const char *key, const char *wanted) {
    size_t bytes = 0;
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    assert_non_null(value);
    assert_string_equal(tr__gguf_text(value, 0, &bytes), wanted);
}

// Of the queries' B the rows are in pairs, as those of the base's weight are; A and
// other layers' B are as they were.
static void llamas_adapter_is_whole(void **state) {
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    tr_tensor_set *set = NULL;
    const tr_gguf_tensor *tensor;
    const char *folder = adapter_of(state, "llama", llama_config);
    must(tr_gguf_export(folder, path_of(state, "a.gguf"), NULL, &err), &err);
    must(tr__gguf_open(path_of(state, "a.gguf"), &gguf, &err), &err);
    must(tr__tensor_set_open_files(folder, TR_FILES_ADAPTER, &set, &err), &err);
    is_text(gguf, "general.type", "adapter");
    is_text(gguf, "general.architecture", "llama");
    is_text(gguf, "adapter.type", "lora");
    double alpha = 0;
    assert_true(tr__gguf_number(tr__gguf_find(gguf, "adapter.lora.alpha"), 0, &alpha));
    assert_true(alpha > 4.999 && alpha < 5.001);
    assert_int_equal(tr__gguf_tensor_count(gguf), tr__tensor_set_count(set));
    float *b = read_file(gguf, "blk.0.attn_q.weight.lora_b", &tensor);
    float ours[4096];
    const tr_stored_tensor *stored = tr__tensor_set_find_prefixed(
        set, "model.layers.0.self_attn.q_proj.lora_B.weight");
    assert_non_null(stored);
    assert_true(tensor->dim[0] == 3 && tensor->dim[1] == stored->dim[0]);
    must(tr__tensor_read_f32(set, stored, 0, stored->count, ours, &err), &err);
    int64_t heads = 4, head = stored->dim[0] / heads; // the golden's base has four
    for (int64_t row = 0; row < stored->dim[0]; row++) {
        int64_t i = row % head / 2, k = row % 2;
        int64_t from = row / head * head + i + k * head / 2;
        assert_memory_equal(b + row * 3, ours + from * 3, 3 * sizeof *b);
    }
    float *a = read_file(gguf, "blk.0.ffn_down.weight.lora_a", &tensor);
    stored =
        tr__tensor_set_find_prefixed(set, "model.layers.0.mlp.down_proj.lora_A.weight");
    must(tr__tensor_read_f32(set, stored, 0, stored->count, ours, &err), &err);
    assert_memory_equal(a, ours, (size_t)stored->count * sizeof *a);
    tr__free(a);
    tr__free(b);
    tr__tensor_set_close(set);
    tr__gguf_close(gguf);
}

// With use_rslora PEFT divides by the root of the rank, and llama.cpp by the rank.
static void alpha_is_llama_cpps(void **state) {
    static const char config[] =
        "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6, \"use_rslora\": true, "
        "\"target_modules\": [\"q_proj\", \"v_proj\", \"down_proj\", \"up_proj\"]}";
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    double alpha = 0;
    options.base = ADAPTERS "/llama/base";
    must(tr_gguf_export(adapter_of(state, "llama", config), path_of(state, "a.gguf"),
                        &options, &err),
         &err);
    must(tr__gguf_open(path_of(state, "a.gguf"), &gguf, &err), &err);
    assert_true(tr__gguf_number(tr__gguf_find(gguf, "adapter.lora.alpha"), 0, &alpha));
    assert_true(alpha > 10.392 && alpha < 10.393); // 6 times the root of 3
    tr__gguf_close(gguf);
}

// PEFT's matrices of GPT-2 are [rank, in] and [out, rank], whichever way the base's
// are.
static void gpt2s_adapter_is_not_turned(void **state) {
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    const tr_gguf_tensor *tensor;
    options.base = ADAPTERS "/gpt2/base";
    must(tr_gguf_export(ADAPTERS "/gpt2/adapter", path_of(state, "a.gguf"), &options,
                        &err),
         &err);
    must(tr__gguf_open(path_of(state, "a.gguf"), &gguf, &err), &err);
    tr__free(read_file(gguf, "blk.0.attn_qkv.weight.lora_a", &tensor));
    assert_true(tensor->dim[0] == 20 && tensor->dim[1] == 4);
    tr__free(read_file(gguf, "blk.0.attn_qkv.weight.lora_b", &tensor));
    assert_true(tensor->dim[0] == 4 && tensor->dim[1] == 60);
    tr__gguf_close(gguf);
}

static void what_adapters_cannot_have_is_refused(void **state) {
    tr_error err = {0};
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    const char *file = path_of(state, "a.gguf");
    options.base = ADAPTERS "/llama/base";
    must_fail(tr_gguf_export(ADAPTERS "/llama/adapter", file, &options, &err), &err,
              TR_USAGE, "lm_head.weight is one of modules_to_save");
    assert_int_not_equal(access(file, F_OK), 0);
    err = (tr_error){0};
    options.base = ADAPTERS "/gpt2/base";
    tr_status status =
        tr_gguf_export(adapter_of(state, "llama", llama_config), file, &options, &err);
    assert_int_equal(status, TR_USAGE);
    assert_non_null(strstr(err.message, "layers that the base lacks"));
}

static void an_adapters_file_is_no_model(void **state) {
    tr_error err = {0};
    const char *folder = adapter_of(state, "llama", llama_config);
    must(tr_gguf_export(folder, path_of(state, "a.gguf"), NULL, &err), &err);
    must_fail(tr_gguf_import(path_of(state, "a.gguf"), path_of(state, "x"), &err), &err,
              TR_IO, "general.type is \"adapter\"; only models can be imported");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(llamas_adapter_is_whole),      TEST(alpha_is_llama_cpps),
        TEST(gpt2s_adapter_is_not_turned),  TEST(what_adapters_cannot_have_is_refused),
        TEST(an_adapters_file_is_no_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
