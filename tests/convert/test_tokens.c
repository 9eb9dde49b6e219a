// Labels: check
// Tokenizers to GGUF files and back: the same ids for the same texts, and what cannot
// be said.
#include "convert/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "convert/pre.h"
#include "convert/tokens.h"
#include "files/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A tokenizer's metadata alone, as a file.
static tr_status describe(const char *folder, const char *file, int64_t vocabulary,
                          tr_error *err) {
    tr_gguf_writer *writer = tr__gguf_writer_create();
    if (!writer) {
        return tr_fail(err, TR_MEMORY, "no memory for a writer");
    }
    tr_status status = tr__tokens_describe(writer, folder, vocabulary, NULL, err);
    status = status == TR_OK ? tr__gguf_writer_open(writer, file, err) : status;
    status = status == TR_OK ? tr__gguf_writer_finish(writer, err) : status;
    tr__gguf_writer_destroy(writer);
    return status;
}

static tr_status restore(const char *file, const char *folder, int64_t vocabulary,
                         tr_error *err) {
    tr_gguf *gguf = NULL;
    must(tr__folder_create(folder, err), err);
    tr_status status = tr__gguf_open(file, &gguf, err);
    if (status == TR_OK) {
        status = tr__tokens_restore(gguf, folder, vocabulary, err);
    }
    tr__gguf_close(gguf);
    return status;
}

static const char *folder_with(void **state, const char *name, const char *json,
                               const char *config) {
    char path[PATH_MAX];
    tr_error err = {0};
    const char *folder = path_of(state, name);
    must(tr__folder_create(folder, &err), &err);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    put_content(path, json, strlen(json));
    if (config) {
        snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
        put_content(path, config, strlen(config));
    }
    return folder;
}

static char *committed(const char *name) {
    char path[PATH_MAX];
    size_t bytes = 0;
    snprintf(path, sizeof path, TOKENIZERS "/%s.json", name);
    return content(path, &bytes);
}

// ---- there and back

static void encode(const tr_tokenizer *t, const json_t *text, bool special,
                   tr_token_ids *ids) {
    tr_encode_options options = {.size = sizeof options, .add_special = special};
    tr_error err = {0};
    ids->count = 0;
    must(tr_tokenizer_encode(t, json_string_value(text), json_string_length(text),
                             &options, 1, ids, &err),
         &err);
}

static void same_ids(const tr_tokenizer *a, const tr_tokenizer *b, const json_t *text,
                     bool special) {
    tr_token_ids x = {0}, y = {0};
    encode(a, text, special, &x);
    encode(b, text, special, &y);
    if (x.count != y.count ||
        (x.count > 0 && memcmp(x.id, y.id, x.count * sizeof *x.id) != 0)) {
        fail_msg("\"%s\" has other ids", json_string_value(text));
    }
    tr_token_ids_release(&x);
    tr_token_ids_release(&y);
}

static void comes_back(void **state, const char *name, const char *kind,
                       const char *pre, const json_t *vectors) {
    enum { VOCABULARY = 801 }; // beyond all of them
    char out[64];
    size_t bytes = 0;
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    tr_tokenizer *before = NULL, *after = NULL;
    char *json = committed(name);
    const char *folder = folder_with(state, name, json, NULL);
    snprintf(out, sizeof out, "%s.back", name);
    const char *file = path_of(state, "t.gguf"), *back = path_of(state, out);
    must(describe(folder, file, VOCABULARY, &err), &err);
    must(restore(file, back, VOCABULARY, &err), &err);
    must(tr__gguf_open(file, &gguf, &err), &err);
    assert_string_equal(
        tr__gguf_text(tr__gguf_find(gguf, "tokenizer.ggml.model"), 0, &bytes), kind);
    assert_string_equal(
        tr__gguf_text(tr__gguf_find(gguf, "tokenizer.ggml.pre"), 0, &bytes), pre);
    assert_int_equal(tr__gguf_find(gguf, "tokenizer.ggml.tokens")->count, VOCABULARY);
    must(tr_tokenizer_load(folder, &before, &err), &err);
    must(tr_tokenizer_load(back, &after, &err), &err);
    size_t index, used = 0;
    json_t *vector;
    json_array_foreach(vectors, index, vector) {
        const char *whose = json_string_value(json_object_get(vector, "tokenizer"));
        if (strcmp(whose, name) == 0) {
            same_ids(before, after, json_object_get(vector, "text"), false);
            same_ids(before, after, json_object_get(vector, "text"), true);
            used++;
        }
    }
    assert_true(used > 10);
    // And once more the same file.
    must(describe(back, path_of(state, "again.gguf"), VOCABULARY, &err), &err);
    must(restore(path_of(state, "again.gguf"), path_of(state, "again"), VOCABULARY,
                 &err),
         &err);
    snprintf(out, sizeof out, "%s.back/tokenizer.json", name);
    assert_same_content(path_of(state, "again/tokenizer.json"), path_of(state, out));
    tr_tokenizer_destroy(before);
    tr_tokenizer_destroy(after);
    tr__gguf_close(gguf);
    tr__free(json);
}

static void tokenizers_come_back(void **state) {
    static const struct {
        const char *name, *kind, *pre;
    } all[] = {{"gpt2", "gpt2", "gpt-2"},
               {"llama3", "gpt2", "llama-bpe"},
               {"qwen2", "gpt2", "qwen2"},
               {"smollm", "gpt2", "smollm"},
               {"llama2", "llama", "default"}};
    json_t *vectors = json_load_file(TOKENIZERS "/vectors.json", 0, NULL);
    assert_non_null(vectors);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        comes_back(state, all[i].name, all[i].kind, all[i].pre, vectors);
    }
    json_decref(vectors);
}

// Names of pre-tokenizers that are read lead to what is written, and to one name.
static void names_of_pre_tokenizers(void **state) {
    static const char *const names[] = {
        "gpt-2",     "phi-2",     "llama-bpe", "llama3", "llama-v3",  "pixtral",
        "qwen2",     "stablelm2", "megrez",    "smollm", "starcoder", "refact",
        "command-r", "tekken",    "gpt-4o",    "dbrx"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tr_pre *pre = tr__pre_named(names[i]);
        assert_non_null(pre);
        json_t *json = tr__pre_json(pre);
        const tr_pre *again = tr__pre_of(json, pre->ignore_merges);
        assert_non_null(again);
        assert_true(again->expression == pre->expression ||
                    strcmp(again->expression, pre->expression) == 0);
        assert_true(again->digits == pre->digits);
        json_decref(json);
    }
    assert_null(tr__pre_named("default"));
    assert_null(tr__pre_named("viking"));
}

// ---- special tokens and templates

static void special_tokens_and_the_template(void **state) {
    static const char config[] =
        "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"<|end|>\", "
        "\"chat_template\": [{\"name\": \"other\", \"template\": \"b\"}, "
        "{\"name\": \"default\", \"template\": \"{{ messages }}\"}], "
        "\"model_max_length\": 1000000000000000019884624838656}";
    size_t bytes = 0;
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    char *json = committed("llama3");
    const char *folder = folder_with(state, "t", json, config);
    const char *file = path_of(state, "t.gguf");
    must(describe(folder, file, 500, &err), &err);
    must(tr__gguf_open(file, &gguf, &err), &err);
    int64_t id = -1;
    assert_true(
        tr__gguf_integer(tr__gguf_find(gguf, "tokenizer.ggml.bos_token_id"), 0, &id));
    assert_int_equal(id, 0);
    assert_true(
        tr__gguf_integer(tr__gguf_find(gguf, "tokenizer.ggml.eos_token_id"), 0, &id));
    assert_int_equal(id, 1);
    assert_int_equal(tr__gguf_find(gguf, "tokenizer.ggml.add_bos_token")->data[0], 1);
    const tr_gguf_value *types = tr__gguf_find(gguf, "tokenizer.ggml.token_type");
    assert_true(tr__gguf_integer(types, 0, &id) && id == TR_GGUF_CONTROL);
    assert_true(tr__gguf_integer(types, 9, &id) && id == TR_GGUF_NORMAL);
    assert_string_equal(
        tr__gguf_text(tr__gguf_find(gguf, "tokenizer.chat_template"), 0, &bytes),
        "{{ messages }}");
    tr__gguf_close(gguf);
    must(restore(file, path_of(state, "back"), 500, &err), &err);
    char *text = content(path_of(state, "back/chat_template.jinja"), &bytes);
    assert_string_equal(text, "{{ messages }}");
    tr__free(text);
    text = content(path_of(state, "back/tokenizer_config.json"), &bytes);
    assert_non_null(strstr(text, "\"bos_token\": \"<s>\""));
    tr__free(text);
    tr__free(json);
}

// ---- what is refused

static void tokenizers_without_a_name_are_refused(void **state) {
    static const struct {
        const char *name, *words;
    } all[] = {{"deepseek", "its pre-tokenizer is none that llama.cpp has"},
               {"falcon", "its pre-tokenizer is none"},
               {"spaces", "its pre-tokenizer is none"},
               {"clip", "its pre-tokenizer is none"},
               {"bert", "its model is none"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tr_error err = {0};
        char *json = committed(all[i].name);
        const char *folder = folder_with(state, all[i].name, json, NULL);
        must_fail(describe(folder, path_of(state, "x"), 5000, &err), &err, TR_DATA,
                  all[i].words);
        tr__free(json);
    }
    tr_error err = {0};
    must_fail(describe(path_of(state, "bert"), path_of(state, "x"), 3, &err), &err,
              TR_DATA, "is this its tokenizer?");
}

// A file with a tokenizer of two tokens, which one change makes wrong.
typedef struct wrong {
    const char *model, *pre, *first, *merge;
    int64_t vocabulary;
    bool types_as_text;
    const char *words;
} wrong;

static void put(tr_gguf_writer *w, const char *key, const char *text) {
    tr__gguf_put_text(w, key, text, strlen(text));
}

static void write_wrong(const char *file, const wrong *c) {
    tr_error err = {0};
    tr_gguf_writer *w = tr__gguf_writer_create();
    put(w, "tokenizer.ggml.model", c->model);
    put(w, "tokenizer.ggml.pre", c->pre);
    tr__gguf_put_list(w, "tokenizer.ggml.tokens", TR_GGUF_TEXT, 3);
    tr__gguf_add_text(w, c->first, strlen(c->first));
    tr__gguf_add_text(w, "b", 1);
    tr__gguf_add_text(w, "ab", 2);
    tr__gguf_put_list(w, "tokenizer.ggml.merges", TR_GGUF_TEXT, 1);
    tr__gguf_add_text(w, c->merge, strlen(c->merge));
    if (c->types_as_text) {
        put(w, "tokenizer.ggml.token_type", "normal");
    }
    must(tr__gguf_writer_open(w, file, &err), &err);
    must(tr__gguf_writer_finish(w, &err), &err);
    tr__gguf_writer_destroy(w);
}

static void damaged_tokenizers_are_named(void **state) {
    static const wrong all[] = {
        {"bert", "gpt-2", "a", "a b", 3, false, "a tokenizer of kind \"bert\""},
        {"gpt2", "default", "a", "a b", 3, false, "the pre-tokenizer \"default\""},
        {"gpt2", "gpt-2", "b", "a b", 3, false, "token 1 of tokenizer.ggml.tokens is"},
        {"gpt2", "gpt-2", "", "a b", 3, false, "token 0 of tokenizer.ggml.tokens is"},
        {"gpt2", "gpt-2", "\xff", "a b", 3, false, "is no text in UTF-8"},
        {"gpt2", "gpt-2", "a", "a b", 4, false, "as many tokens as"},
        {"gpt2", "gpt-2", "a", "b b", 3, false, "merge 0 of tokenizer.ggml.merges"},
        {"gpt2", "gpt-2", "a", "ab", 3, false, "merge 0 of tokenizer.ggml.merges"},
        {"gpt2", "gpt-2", "a", " ", 3, false, "merge 0 of tokenizer.ggml.merges"},
        {"gpt2", "gpt-2", "a", "a b", 3, true, "must be numbers"},
        {"gpt2", "gpt-2", "a", "a b", 3, false, NULL},
        {"llama", "default", "a", "a b", 3, false, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char folder[32];
        tr_error err = {0};
        const char *file = path_of(state, "w.gguf");
        write_wrong(file, &all[i]);
        snprintf(folder, sizeof folder, "w%zu", i);
        tr_status status =
            restore(file, path_of(state, folder), all[i].vocabulary, &err);
        if (all[i].words) {
            must_fail(status, &err, TR_IO, all[i].words);
        } else {
            tr_tokenizer *t = NULL;
            must(status, &err);
            must(tr_tokenizer_load(path_of(state, folder), &t, &err), &err);
            assert_int_equal(tr_tokenizer_find(t, "ab"), 2);
            tr_tokenizer_destroy(t);
        }
    }
}

// Whichever request for memory fails, it is said.
static void no_memory_is_told(void **state) {
    char *json = committed("gpt2");
    const char *folder = folder_with(state, "t", json, NULL);
    const char *file = path_of(state, "t.gguf"), *back = path_of(state, "back");
    tr_error none = {0};
    must(tr__folder_create(back, &none), &none);
    for (int both = 0; both < 2; both++) {
        tr_status status = TR_MEMORY;
        for (int64_t nth = 1; status != TR_OK; nth += 1 + nth / 8) {
            tr_error err = {0};
            tr__memory_fail_at(nth);
            status = both ? restore(file, back, 500, &err)
                          : describe(folder, file, 500, &err);
            tr__memory_fail_at(0);
            if (status != TR_OK) {
                must_fail(status, &err, TR_MEMORY, "memory");
            }
            assert_true(nth < 1 << 20);
        }
    }
    tr__free(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(tokenizers_come_back),
        cmocka_unit_test(names_of_pre_tokenizers),
        TEST(special_tokens_and_the_template),
        TEST(tokenizers_without_a_name_are_refused),
        TEST(damaged_tokenizers_are_named),
        TEST(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
