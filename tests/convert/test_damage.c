// Files of models that are damaged, or that say what is not supported: each is named,
// and no model is left behind. And one of GPT-2 by gguf-py, as older converters wrote
// it.
#include "convert/support.h"

#include "base/memory.h"
#include "files/gguf/gguf.h"
#include "files/safetensors/tensor_set.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// ---- by gguf-py (tools/goldens/gguf_files.py)

static void older_files_of_gpt2(void **state) {
    char *text, *rest;
    size_t bytes = 0, lines = 0;
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    must(tr_gguf_import(TR_TEST_DATA "/gguf/gpt2.gguf", path_of(state, "m"), &err),
         &err);
    must(tr__tensor_set_open(path_of(state, "m"), &set, &err), &err);
    text = rest = content(TR_TEST_DATA "/gguf/gpt2.txt", &bytes);
    for (char *line; (line = strtok_r(rest, "\n", &rest)); lines++) {
        const char *name = strtok_r(line, " ", &line);
        const char *hex = strtok_r(line, " ", &line);
        const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
        float values[64];
        assert_non_null(tensor);
        assert_int_equal(strlen(hex), tensor->count * 8);
        must(tr__tensor_read_f32(set, tensor, 0, tensor->count, values, &err), &err);
        for (int64_t i = 0; i < tensor->count * 4; i++) {
            unsigned byte = 0;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
            assert_int_equal(((unsigned char *)values)[i], byte);
        }
    }
    assert_int_equal(lines, tr__tensor_set_count(set));
    tr__tensor_set_close(set);
    tr__free(text);
}

// ---- changed bytes

// The place of these bytes, which end with no zero.
static size_t find(const char *data, size_t bytes, const char *text) {
    for (size_t i = 0; i + strlen(text) <= bytes; i++) {
        if (memcmp(data + i, text, strlen(text)) == 0) {
            return i;
        }
    }
    fail_msg("no '%s'", text);
    return 0;
}

static void refuse(void **state, const char *data, size_t bytes, const char *words) {
    tr_error err = {0};
    const char *file = path_of(state, "bad.gguf"), *out = path_of(state, "out");
    put_content(file, data, bytes);
    must_fail(tr_gguf_import(file, out, &err), &err, TR_IO, words);
    assert_non_null(strstr(err.message, "bad.gguf"));
    assert_int_not_equal(access(path_of(state, "out/config.json"), F_OK), 0);
}

// `skip` bytes behind the text there are these instead. number: of four bytes, where
// `to` is NULL.
typedef struct change {
    const char *golden, *behind;
    size_t skip;
    const char *to;
    uint32_t number;
    const char *words;
} change;

static const change changes[] = {
    {"llama", "general.architecture", 12, "gamma", 0,
     "its architecture \"gamma\" is not supported"},
    {"llama", "general.type", 12, "modem", 0, "general.type is \"modem\""},
    {"llama", "llama.block_count", 4, NULL, 3, "has no tensor blk.2.attn_norm.weight"},
    {"llama", "llama.block_count", 4, NULL, 1,
     "tensor blk.1.attn_norm.weight is none that"},
    {"llama", "llama.block_count", 4, NULL, 0, "num_hidden_layers"},
    {"llama", "llama.block_count", 4, NULL, UINT32_MAX, "num_hidden_layers"},
    {"llama", "llama.block_coun", 0, "d", 0, "the metadata's llama.block_cound"},
    {"llama", "llama.embedding_length", 4, NULL, 20, "by the metadata it must be"},
    {"llama", "llama.attention.head_count_kv", 4, NULL, 3, "num_key_value_heads"},
    {"llama", "llama.attention.key_length", 4, NULL, 2, "heads have keys of 2 numbers"},
    {"llama", "llama.rope.dimension_count", 4, NULL, 2, "parts of heads"},
    {"llama", "llama.context_length", 0, NULL, 6, "must be a whole number"},
    {"llama", "blk.0.attn_q.weigh", 0, "T", 0, "has no tensor blk.0.attn_q.weight"},
    {"llama", "output_norm.weigh", 0, "d", 0, "has no tensor output_norm.weight"},
    {"llama-linear", "llama.rope.scaling.type", 12, "circle", 0,
     "a scaling of positions \"circle\""},
    {"llama-yarn", "llama.rope.scaling.original_context_length", 4, NULL, 0,
     "\"yarn\" without llama.rope.scaling.original_context_length"},
    {"qwen2", "qwen2.attention.layer_norm_rms_epsilo", 0, "m", 0,
     "qwen2.attention.layer_norm_rms_epsilom is not supported"},
};

static void each_change_is_named(void **state) {
    const char *golden = "";
    char *data = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const change *c = &changes[i];
        char kept[16];
        if (strcmp(golden, c->golden) != 0) {
            tr_error err = {0};
            golden = c->golden;
            tr__free(data);
            must(tr_gguf_export(model_of(state, golden, golden),
                                path_of(state, "good.gguf"), NULL, &err),
                 &err);
            data = content(path_of(state, "good.gguf"), &bytes);
        }
        size_t at = find(data, bytes, c->behind) + strlen(c->behind) + c->skip;
        size_t count = c->to ? strlen(c->to) : sizeof c->number;
        memcpy(kept, data + at, count);
        memcpy(data + at, c->to ? c->to : (const char *)&c->number, count);
        refuse(state, data, bytes, c->words);
        memcpy(data + at, kept, count);
    }
    tr__free(data);
}

// The factors of frequencies are those of Llama 3's scaling, or of none that is known.
static void other_factors_are_refused(void **state) {
    tr_error err = {0};
    size_t bytes = 0;
    must(tr_gguf_export(model_of(state, "llama3", "m"), path_of(state, "good.gguf"),
                        NULL, &err),
         &err);
    char *data = content(path_of(state, "good.gguf"), &bytes);
    tr_gguf *gguf = NULL;
    must(tr__gguf_open(path_of(state, "good.gguf"), &gguf, &err), &err);
    float factor = 3;
    memcpy(data + tr__gguf_find_tensor(gguf, "rope_freqs.weight")->offset, &factor,
           sizeof factor);
    refuse(state, data, bytes, "rope_freqs.weight is none of a scaling \"llama3\"");
    tr__gguf_close(gguf);
    tr__free(data);
}

static void another_output_is_refused(void **state) {
    size_t bytes = 0;
    char *data = content(TR_TEST_DATA "/gguf/gpt2.gguf", &bytes);
    tr_gguf *gguf = NULL;
    tr_error err = {0};
    must(tr__gguf_open(TR_TEST_DATA "/gguf/gpt2.gguf", &gguf, &err), &err);
    data[tr__gguf_find_tensor(gguf, "output.weight")->offset] ^= 1;
    refuse(state, data, bytes, "output.weight differs from token_embd.weight");
    tr__gguf_close(gguf);
    tr__free(data);
}

// Whichever request for memory fails, it is said, and nothing is lost or left.
static void no_memory_is_told(void **state) {
    tr_status status = TR_MEMORY;
    char folder[PATH_MAX], file[PATH_MAX], partial[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", model_of(state, "llama3", "m"));
    snprintf(file, sizeof file, "%s", path_of(state, "x.gguf"));
    snprintf(partial, sizeof partial, "%s", path_of(state, "x.gguf.partial"));
    for (int64_t nth = 1; status != TR_OK; nth += 1 + nth / 16) {
        tr_error err = {0};
        tr__memory_fail_at(nth);
        status = tr_gguf_export(folder, file, NULL, &err);
        tr__memory_fail_at(0);
        if (status != TR_OK) {
            must_fail(status, &err, TR_MEMORY, "memory");
        }
        assert_int_equal(access(file, F_OK) == 0, status == TR_OK);
        assert_int_not_equal(access(partial, F_OK), 0);
        assert_true(nth < 1 << 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(older_files_of_gpt2),       TEST(each_change_is_named),
        TEST(other_factors_are_refused), TEST(another_output_is_refused),
        TEST(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
