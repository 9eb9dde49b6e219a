// Labels: check
// Models to GGUF files and back: every bit of every architecture's weights, what each
// type rounds, and what files cannot say.
#include "convert/support.h"

#include "base/files.h"
#include "base/half.h"
#include "base/memory.h"
#include "convert/names.h"
#include "files/gguf/gguf.h"
#include "files/safetensors/tensor_set.h"
#include "files/safetensors/tensor_writer.h"

#include <tranche/checkpoint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const models[] = {"gpt2",   "llama",        "llama-grouped",
                                     "llama3", "llama-linear", "llama-yarn",
                                     "qwen2",  "qwen3",        "mistral"};
enum { MODELS = sizeof models / sizeof *models };

static void export_as(const char *folder, const char *file, const char *type) {
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    tr_error err = {0};
    options.type = type;
    must(tr_gguf_export(folder, file, &options, &err), &err);
}

static tr_gguf *open_file(const char *path) {
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    must(tr__gguf_open(path, &gguf, &err), &err);
    return gguf;
}

static tr_tensor_set *open_folder(const char *path) {
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    must(tr__tensor_set_open(path, &set, &err), &err);
    return set;
}

static float *read_folder(const tr_tensor_set *set, const char *name, int64_t *count) {
    tr_error err = {0};
    const tr_stored_tensor *tensor = tr__tensor_set_find(set, name);
    assert_non_null(tensor);
    float *values = tr__calloc((size_t)tensor->count, sizeof *values);
    must(tr__tensor_read_f32(set, tensor, 0, tensor->count, values, &err), &err);
    *count = tensor->count;
    return values;
}

static float *read_file(const tr_gguf *gguf, const char *name) {
    tr_error err = {0};
    const tr_gguf_tensor *tensor = tr__gguf_find_tensor(gguf, name);
    assert_non_null(tensor);
    float *values = tr__calloc((size_t)tensor->count, sizeof *values);
    must(tr__gguf_read(gguf, tensor, 0, tensor->count, values, &err), &err);
    return values;
}

// ---- there and back

// Of a model of one's own, and of the files that it becomes, each is made again.
static void all_bits_come_back(void **state) {
    for (int m = 0; m < MODELS; m++) {
        char name[64];
        tr_error err = {0};
        snprintf(name, sizeof name, "%s.model", models[m]);
        const char *folder = model_of(state, models[m], name);
        const char *file = path_of(state, models[m]);
        export_as(folder, file, "f32");
        snprintf(name, sizeof name, "%s.back", models[m]);
        const char *back = path_of(state, name);
        must(tr_gguf_import(file, back, &err), &err);
        tr_diff *diff = NULL;
        must(tr_checkpoint_diff(folder, back, &diff, &err), &err);
        if (!diff->identical) {
            fail_msg("%s: %zu tensors differ", models[m], diff->different_tensors);
        }
        tr_diff_destroy(diff);
        snprintf(name, sizeof name, "%s.more", models[m]);
        must(tr__folder_create(path_of(state, name), &err), &err);
        snprintf(name, sizeof name, "%s.more/%s", models[m], models[m]);
        const char *again = path_of(state, name); // the same name, which is in the file
        export_as(back, again, NULL);
        assert_same_content(file, again);
    }
}

// The formula of llama.cpp's converter: heads of two halves become heads of pairs.
static void rows_of_heads_are_paired(void **state) {
    enum { HEADS = 4, HEAD = 4, WIDTH = 16 }; // the golden's
    const char *folder = model_of(state, "mistral", "model");
    export_as(folder, path_of(state, "m.gguf"), "f32");
    tr_tensor_set *set = open_folder(folder);
    tr_gguf *gguf = open_file(path_of(state, "m.gguf"));
    int64_t count = 0;
    float *ours = read_folder(set, "model.layers.1.self_attn.q_proj.weight", &count);
    float *theirs = read_file(gguf, "blk.1.attn_q.weight");
    assert_int_equal(count, HEADS * HEAD * WIDTH);
    for (int h = 0; h < HEADS; h++) {
        for (int i = 0; i < HEAD / 2; i++) {
            for (int k = 0; k < 2; k++) {
                int file = h * HEAD + 2 * i + k, row = h * HEAD + i + k * HEAD / 2;
                assert_memory_equal(theirs + file * WIDTH, ours + row * WIDTH,
                                    WIDTH * sizeof *ours);
            }
        }
    }
    assert_non_null(tr__gguf_find(gguf, "llama.block_count"));
    tr__free(ours);
    tr__free(theirs);
    tr__gguf_close(gguf);
    tr__tensor_set_close(set);
}

static void matrices_of_gpt2_are_turned(void **state) {
    const char *folder = model_of(state, "gpt2", "model");
    export_as(folder, path_of(state, "m.gguf"), "f32");
    tr_tensor_set *set = open_folder(folder);
    tr_gguf *gguf = open_file(path_of(state, "m.gguf"));
    const tr_gguf_tensor *tensor = tr__gguf_find_tensor(gguf, "blk.0.ffn_up.weight");
    int64_t count = 0;
    float *ours = read_folder(set, "transformer.h.0.mlp.c_fc.weight", &count);
    float *theirs = read_file(gguf, "blk.0.ffn_up.weight");
    assert_non_null(tensor);
    int64_t in = tensor->dim[0], out = tensor->dim[1];
    assert_int_equal(in * out, count);
    assert_true(in != out);
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) {
            assert_true(theirs[o * in + i] == ours[i * out + o]);
        }
    }
    tr__free(ours);
    tr__free(theirs);
    tr__gguf_close(gguf);
    tr__tensor_set_close(set);
}

// ---- types

static float rounded(int number, float value) {
    return number == TR_GGUF_F16    ? tr__f16_to_f32(tr__f16_of_f32(value))
           : number == TR_GGUF_BF16 ? tr__bf16_to_f32(tr__bf16_of_f32(value))
                                    : value;
}

static void check_type(const char *path, const tr_tensor_set *set, int number) {
    tr_gguf *gguf = open_file(path);
    int64_t count = 0;
    float *ours = read_folder(set, "model.layers.0.mlp.up_proj.weight", &count);
    float *theirs = read_file(gguf, "blk.0.ffn_up.weight");
    assert_int_equal(tr__gguf_find_tensor(gguf, "blk.0.ffn_up.weight")->format->number,
                     number);
    assert_int_equal(tr__gguf_find_tensor(gguf, "output_norm.weight")->format->number,
                     TR_GGUF_F32);
    for (int64_t i = 0; i < count; i++) {
        if (number == TR_GGUF_Q8_0) { // within half of a step of its block
            float most = 0;
            for (int64_t k = i / 32 * 32; k < i / 32 * 32 + 32; k++) {
                most = fmaxf(most, fabsf(ours[k]));
            }
            assert_true(fabsf(theirs[i] - ours[i]) <= most / 127 * 0.57f + 1e-7f);
        } else {
            assert_true(theirs[i] == rounded(number, ours[i]));
        }
    }
    tr__free(ours);
    tr__free(theirs);
    tr__gguf_close(gguf);
}

// A llama of a width that q8_0's blocks divide, with rows too long for a piece.
static const char drawn_config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 96, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"head_dim\": 6, \"vocab_size\": 2051, "
    "\"max_position_embeddings\": 64, \"attention_bias\": true, "
    "\"mlp_bias\": true, \"rope_theta\": 1000}";
static const struct {
    const char *name;
    int64_t rows, columns; // 0: a vector
} drawn_tensors[] = {{"model.embed_tokens.weight", 2051, 64},
                     {"model.norm.weight", 64, 0},
                     {"lm_head.weight", 2051, 64},
                     {"input_layernorm.weight", 64, 0},
                     {"post_attention_layernorm.weight", 64, 0},
                     {"self_attn.q_proj.weight", 24, 64},
                     {"self_attn.q_proj.bias", 24, 0},
                     {"self_attn.k_proj.weight", 12, 64},
                     {"self_attn.k_proj.bias", 12, 0},
                     {"self_attn.v_proj.weight", 12, 64},
                     {"self_attn.v_proj.bias", 12, 0},
                     {"self_attn.o_proj.weight", 64, 24},
                     {"self_attn.o_proj.bias", 64, 0},
                     {"mlp.gate_proj.weight", 96, 64},
                     {"mlp.gate_proj.bias", 96, 0},
                     {"mlp.up_proj.weight", 96, 64},
                     {"mlp.up_proj.bias", 96, 0},
                     {"mlp.down_proj.weight", 64, 96},
                     {"mlp.down_proj.bias", 64, 0}};

enum {
    DRAWN = sizeof drawn_tensors / sizeof *drawn_tensors,
    DRAWN_MOST = 2051 * 64, // elements of a tensor
    DRAWN_FIRST = DRAWN - 4 // the matrix whose first number a test gives
};

static void name_drawn(tr_tensor_spec specs[DRAWN], char names[DRAWN][128]) {
    for (int i = 0; i < DRAWN; i++) {
        bool layer = i >= 3;
        int64_t rows = drawn_tensors[i].rows, columns = drawn_tensors[i].columns;
        snprintf(names[i], sizeof names[i], "%s%s", layer ? "model.layers.0." : "",
                 drawn_tensors[i].name);
        specs[i] = (tr_tensor_spec){
            names[i], TR_F32, columns ? TR_SHAPE2(rows, columns) : TR_SHAPE1(rows)};
    }
}

static void write_drawn(const char *path, float first) {
    tr_tensor_spec specs[DRAWN];
    char names[DRAWN][128];
    tr_error err = {0};
    tr_tensor_writer *writer = NULL;
    float *values = tr__calloc(DRAWN_MOST, sizeof *values);
    int64_t bytes = 0;
    uint64_t hash = 0;
    uint32_t draw = 1;
    name_drawn(specs, names);
    must(tr__tensor_writer_create(path, specs, DRAWN, &writer, &err), &err);
    for (int i = 0; i < DRAWN; i++) {
        int64_t count = tr_shape_count(specs[i].shape);
        for (int64_t k = 0; k < count; k++) {
            draw = draw * 1664525 + 1013904223;
            values[k] = (float)(int32_t)draw / 0x1p33f;
        }
        values[0] = i == DRAWN_FIRST ? first : values[0];
        must(tr__tensor_writer_put(writer, (size_t)i, 0, count, values, &err), &err);
    }
    must(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
    tr__free(values);
}

// Its folder. first: the first number of one of its matrices.
static const char *drawn_llama(void **state, float first) {
    tr_error err = {0};
    const char *folder = path_of(state, "drawn");
    must(tr__folder_create(folder, &err), &err);
    put_content(path_of(state, "drawn/config.json"), drawn_config,
                strlen(drawn_config));
    write_drawn(path_of(state, "drawn/model.safetensors"), first);
    return folder;
}

static void types_round_as_they_say(void **state) {
    static const struct {
        const char *name;
        int number;
    } types[] = {{"f32", TR_GGUF_F32},
                 {"f16", TR_GGUF_F16},
                 {"bf16", TR_GGUF_BF16},
                 {"q8_0", TR_GGUF_Q8_0}};
    const char *folder = drawn_llama(state, 1);
    tr_tensor_set *set = open_folder(folder);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *file = path_of(state, types[i].name);
        export_as(folder, file, types[i].name);
        check_type(file, set, types[i].number);
    }
    // Rows of 24 numbers are no blocks of 32.
    tr_gguf *gguf = open_file(path_of(state, "q8_0"));
    assert_int_equal(
        tr__gguf_find_tensor(gguf, "blk.0.attn_output.weight")->format->number,
        TR_GGUF_F16);
    tr__gguf_close(gguf);
    tr__tensor_set_close(set);
}

// What is stored as bf16 or f16 keeps its type and its bits, both ways.
static void stored_types_are_kept(void **state) {
    static const char *const types[] = {"bf16", "f16"};
    const char *folder = drawn_llama(state, 1);
    for (int i = 0; i < 2; i++) {
        char name[32];
        tr_error err = {0};
        export_as(folder, path_of(state, types[i]), types[i]);
        snprintf(name, sizeof name, "%s.folder", types[i]);
        must(tr_gguf_import(path_of(state, types[i]), path_of(state, name), &err),
             &err);
        tr_tensor_set *set = open_folder(path_of(state, name));
        assert_int_equal(tr__tensor_set_find(set, "lm_head.weight")->dtype,
                         i == 0 ? TR_BF16 : TR_F16);
        tr__tensor_set_close(set);
        must(tr__folder_create(path_of(state, "again"), &err), &err);
        char again[32];
        snprintf(again, sizeof again, "again/%s", types[i]);
        export_as(path_of(state, name), path_of(state, again), NULL);
        assert_same_content(path_of(state, types[i]), path_of(state, again));
    }
}

// ---- what files cannot say

typedef struct heard {
    char text[2048];
    size_t used;
} heard;

static bool hear(void *user, const char *text, size_t bytes) {
    heard *h = user;
    if (bytes > sizeof h->text - 1 - h->used) {
        return false;
    }
    memcpy(h->text + h->used, text, bytes);
    h->used += bytes;
    return true;
}

static void windows_are_noted(void **state) {
    heard notes = {{0}, 0};
    const tr_sink to = {hear, &notes};
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    tr_error err = {0};
    options.notes = &to;
    must(tr_gguf_export(model_of(state, "mistral", "model"), path_of(state, "m"),
                        &options, &err),
         &err);
    assert_non_null(strstr(notes.text, "no sliding windows"));
    assert_non_null(strstr(notes.text, "beyond 5 tokens"));
    assert_non_null(strstr(notes.text, "token ids alone"));
}

// Of the model's config.json, one text becomes another.
static void change(const char *path, const char *from, const char *to) {
    size_t bytes = 0;
    char *text = content(path, &bytes);
    char *found = strstr(text, from);
    assert_non_null(found);
    char *made =
        tr__format("%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
    put_content(path, made, strlen(made));
    tr__free(made);
    tr__free(text);
}

static void refuse_export(void **state, const char *golden, const char *from,
                          const char *to, const char *words) {
    tr_error err = {0};
    const char *folder = model_of(state, golden, "refused");
    if (from) {
        change(path_of(state, "refused/config.json"), from, to);
    }
    const char *file = path_of(state, "refused.gguf");
    tr_status status = tr_gguf_export(folder, file, NULL, &err);
    if (status == TR_OK || !strstr(err.message, words)) {
        fail_msg("%s: status %d, '%s' without '%s'", golden, (int)status, err.message,
                 words);
    }
    assert_int_not_equal(access(file, F_OK), 0);
    assert_int_not_equal(access(path_of(state, "refused.gguf.partial"), F_OK), 0);
}

static void what_files_cannot_say_is_refused(void **state) {
    refuse_export(state, "mlp", NULL, NULL, "models of type mlp cannot be exported");
    refuse_export(state, "bert-class", NULL, NULL, "models of type bert");
    refuse_export(state, "qwen3-class", NULL, NULL, "no language model");
    refuse_export(state, "gpt2-odd", NULL, NULL, "activation_function \"gelu\"");
    refuse_export(state, "llama-yarn", "\"rope_type\": \"yarn\"",
                  "\"rope_type\": \"yarn\", \"truncate\": false", "truncate");
    refuse_export(state, "qwen2", "\"rope_type\": \"default\"",
                  "\"rope_type\": \"llama3\", \"factor\": 8, "
                  "\"original_max_position_embeddings\": 8",
                  "\"llama3\" of positions cannot be exported");
    refuse_export(state, "llama", "\"num_hidden_layers\": 2",
                  "\"num_hidden_layers\": 3", "has no tensor model.layers.2");
}

static void a_wrong_call_is_named(void **state) {
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    tr_error err = {0};
    const char *folder = model_of(state, "llama", "model");
    options.type = "q4_k";
    must_fail(tr_gguf_export(folder, path_of(state, "x"), &options, &err), &err,
              TR_USAGE, "the type \"q4_k\" is unknown");
    options.type = NULL;
    options.base = folder;
    err = (tr_error){0};
    must_fail(tr_gguf_export(folder, path_of(state, "x"), &options, &err), &err,
              TR_USAGE, "holds no adapter");
    err = (tr_error){0};
    must_fail(tr_gguf_export(path_of(state, "model/model.safetensors"),
                             path_of(state, "x"), NULL, &err),
              &err, TR_USAGE, "name the folder");
    err = (tr_error){0};
    must_fail(tr_gguf_import(folder, path_of(state, "y"), &err), &err, TR_IO,
              "not a regular file");
    assert_int_equal(tr_gguf_export(folder, NULL, NULL, NULL), TR_USAGE);
    assert_int_equal(tr_gguf_import(NULL, folder, NULL), TR_USAGE);
}

// A value that the type has no room for ends the export, and leaves the old file.
static void values_beyond_a_type_are_named(void **state) {
    tr_error err = {0};
    size_t bytes = 0;
    const char *folder = drawn_llama(state, 1e6f), *file = path_of(state, "old.gguf");
    put_content(file, "old", 3);
    tr_gguf_options options = TR_GGUF_OPTIONS_INIT;
    options.type = "f16";
    must_fail(tr_gguf_export(folder, file, &options, &err), &err, TR_IO,
              "has a value that F16 cannot hold");
    char *text = content(file, &bytes);
    assert_string_equal(text, "old");
    tr__free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_bits_come_back),
        TEST(rows_of_heads_are_paired),
        TEST(matrices_of_gpt2_are_turned),
        TEST(types_round_as_they_say),
        TEST(stored_types_are_kept),
        TEST(windows_are_noted),
        TEST(what_files_cannot_say_is_refused),
        TEST(a_wrong_call_is_named),
        TEST(values_beyond_a_type_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
