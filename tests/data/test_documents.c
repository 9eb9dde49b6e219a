// Format text: documents and what is between them, the ids of Hugging Face's tokenizers
// (tests/data/tokenizers/vectors.json), and the token that ends a text.
#include "data/scratch.h"

#include "base/files.h"

#include <tranche/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#define TOKENIZER TR_TEST_DATA "/tokenizers/gpt2.json"

enum { EOS = 0, LENGTH = 1 }; // <|end|>

static int own_cache(void **state) {
    char folder[SCRATCH_PATH_MAX];
    if (scratch_make(state) != 0) {
        return 1;
    }
    return setenv("XDG_CACHE_HOME", scratch_path(folder, state, ".cache"), 1);
}

static tr_data_options text_options(const char *const *paths, size_t count) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "text",
                             .paths = paths,
                             .path_count = count,
                             .sequence_length = LENGTH,
                             .tokenizer = TOKENIZER,
                             .eos_token = "<|end|>"};
}

// The ids that the samples come from, as far as they fill windows.
static tr_token_ids ids_of(const tr_data_options *options) {
    tr_dataset *data = scratch_open(options);
    int64_t count = tr_dataset_samples(data), n = options->sequence_length;
    tr_token_ids ids = {calloc((size_t)(count * n) + 1, sizeof(int32_t)),
                        (size_t)(count * n) + 1, 0};
    int32_t *target = calloc((size_t)n, sizeof *target);
    tr_error err = {0};
    assert_non_null(ids.id);
    assert_non_null(target);
    for (int64_t i = 0; i < count; i++) {
        int32_t *input = ids.id + i * n;
        assert_true(i == 0 || target[n - 1] >= 0);
        assert_int_equal(tr_dataset_read(data, &i, 1, (void *[]){input, target}, &err),
                         TR_OK);
        assert_memory_equal(input + 1, target, (size_t)(n - 1) * sizeof *target);
    }
    ids.id[count * n] = target[n - 1];
    free(target);
    tr_dataset_destroy(data);
    return ids;
}

static void add_text(tr_token_ids *ids, const tr_tokenizer *tokenizer, const char *text,
                     size_t bytes) {
    tr_error err = {0};
    assert_int_equal(tr_tokenizer_encode(tokenizer, text, bytes, NULL, 1, ids, &err),
                     0);
}

static tr_tokenizer *load(void) {
    tr_tokenizer *tokenizer = NULL;
    assert_int_equal(tr_tokenizer_load(TOKENIZER, &tokenizer, NULL), TR_OK);
    return tokenizer;
}

// documents: texts, NULL at the end.
static void assert_documents(const tr_data_options *options,
                             const char *const *documents) {
    tr_tokenizer *tokenizer = load();
    tr_token_ids got = ids_of(options), wanted = {0};
    for (size_t i = 0; documents[i]; i++) {
        if (i > 0) {
            add_text(&wanted, tokenizer, "<|end|>", 7);
            assert_int_equal(wanted.id[wanted.count - 1], EOS);
        }
        add_text(&wanted, tokenizer, documents[i], strlen(documents[i]));
    }
    assert_int_equal(got.count, wanted.count);
    assert_memory_equal(got.id, wanted.id, wanted.count * sizeof *wanted.id);
    free(got.id);
    tr_token_ids_release(&wanted);
    tr_tokenizer_destroy(tokenizer);
}

#define DOCUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void files_are_documents(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], c[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(a, state, "a", "the men\nsaid"),
                           scratch_text(b, state, "b", ""),
                           scratch_text(c, state, "c", "\n\nnaïve 漢字 \xff it\n")};
    tr_data_options options = text_options(paths, 3);
    // An empty file is none.
    assert_documents(&options, DOCUMENTS("the men\nsaid", "\n\nnaïve 漢字 \xff it\n"));
    options.path_count = 2;
    assert_documents(&options, DOCUMENTS("the men\nsaid"));
}

static void separators(void **state) {
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX];
    const char *paths[] = {
        scratch_text(a, state, "a", "====one====two==three========the==="),
        scratch_text(b, state, "b", "=four====")};
    tr_data_options options = text_options(paths, 2);
    options.document_separator = "====";
    // Nothing spans two files.
    assert_documents(&options, DOCUMENTS("one", "two==three", "the===", "=four"));
    options.document_separator = "=";
    assert_documents(&options, DOCUMENTS("one", "two", "three", "the", "four"));
    options.document_separator = "nowhere";
    assert_documents(&options,
                     DOCUMENTS("====one====two==three========the===", "=four===="));
    options.document_separator = "";
    scratch_refuse(&options, TR_USAGE, "data.document_separator: is empty");
}

// Special tokens in the text are tokens, or text.
static void special_tokens(void **state) {
    char a[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(a, state, "a", "it<|end|>the")};
    tr_data_options options = text_options(paths, 1);
    tr_token_ids as_token = ids_of(&options);
    options.plain_special = true;
    tr_token_ids as_text = ids_of(&options);
    assert_true(as_text.count > as_token.count);
    size_t ends = 0;
    for (size_t i = 0; i < as_token.count; i++) {
        ends += as_token.id[i] == EOS;
    }
    assert_int_equal(ends, 1);
    for (size_t i = 0; i < as_text.count; i++) {
        assert_int_not_equal(as_text.id[i], EOS);
    }
    free(as_token.id);
    free(as_text.id);
}

// Files of the vectors' texts: the joined ids of Hugging Face, the token between.
static void as_hugging_face(void **state) {
    char path[SCRATCH_PATH_MAX], name[32];
    json_t *list = json_load_file(TR_TEST_DATA "/tokenizers/vectors.json", 0, NULL);
    json_t *wanted = json_array();
    size_t files = 0, i;
    json_t *one;
    assert_int_equal(mkdir(scratch_path(path, state, "data"), 0777), 0);
    json_array_foreach(list, i, one) {
        const json_t *text = json_object_get(one, "text");
        if (strcmp(json_string_value(json_object_get(one, "tokenizer")), "gpt2") != 0 ||
            json_string_length(text) == 0) {
            continue;
        }
        snprintf(name, sizeof name, "data/%03zu.txt", files);
        scratch_file(path, state, name, json_string_value(text),
                     json_string_length(text));
        if (files++ > 0) {
            json_array_append_new(wanted, json_integer(EOS));
        }
        json_array_extend(wanted, json_object_get(one, "ids"));
    }
    assert_true(files > 20);
    scratch_path(path, state, "data");
    const char *paths[] = {path};
    tr_data_options options = text_options(paths, 1);
    tr_token_ids got = ids_of(&options);
    assert_int_equal(got.count, json_array_size(wanted));
    for (i = 0; i < got.count; i++) {
        assert_int_equal(got.id[i], json_integer_value(json_array_get(wanted, i)));
    }
    free(got.id);
    json_decref(wanted);
    json_decref(list);
}

// More than is in memory at a time, with documents of all sizes; separators lie across
// what is read at once, and one document is longer than that.
static void long_text(void **state) {
    enum { BYTES = 21 << 20 };
    static const char words[] = "the man said, it is 1234 == great \n and so on; ";
    static const char separator[] = "<-- next -->";
    char a[SCRATCH_PATH_MAX];
    char *text = malloc(BYTES);
    tr_tokenizer *tokenizer = load();
    tr_token_ids wanted = {0};
    unsigned seed = 3;
    size_t at = 0, begin = 0;
    assert_non_null(text);
    while (at + 400 < BYTES) {
        bool huge = at > 4 << 20 && at < 15 << 20;
        if (!huge && rand_r(&seed) % 3000 == 0 && at > begin) {
            add_text(&wanted, tokenizer, wanted.count > 0 ? "<|end|>" : "",
                     wanted.count > 0 ? 7 : 0);
            add_text(&wanted, tokenizer, text + begin, at - begin);
            memcpy(text + at, separator, sizeof separator - 1);
            at += sizeof separator - 1;
            begin = at;
        }
        size_t from = (size_t)rand_r(&seed) % 20, some = (size_t)rand_r(&seed) % 27;
        memcpy(text + at, words + from, some);
        at += some;
    }
    add_text(&wanted, tokenizer, "<|end|>", 7);
    add_text(&wanted, tokenizer, text + begin, at - begin);
    const char *paths[] = {scratch_file(a, state, "a", text, at)};
    tr_data_options options = text_options(paths, 1);
    options.document_separator = separator;
    options.sequence_length = 4096;
    tr_token_ids got = ids_of(&options);
    assert_in_range(got.count, wanted.count - 4096, wanted.count);
    assert_memory_equal(got.id, wanted.id, got.count * sizeof *wanted.id);
    free(got.id);
    free(text);
    tr_token_ids_release(&wanted);
    tr_tokenizer_destroy(tokenizer);
}

// A folder with a tokenizer.json, whose eos_token is said by `file`.
static void write_folder(void **state, const char *file, const char *text) {
    char path[SCRATCH_PATH_MAX];
    char *json = NULL;
    size_t bytes = 0;
    assert_int_equal(tr__folder_remove(scratch_path(path, state, "folder"), NULL), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(tr__file_read(TOKENIZER, 1 << 20, &json, &bytes, NULL), TR_OK);
    scratch_file(path, state, "folder/tokenizer.json", json, bytes);
    if (file) {
        scratch_text(path, state, file, text);
    }
    free(json);
}

static void end_of_text(void **state) {
    static const char *const says[][2] = {
        {"folder/tokenizer_config.json", "{\"eos_token\": \"<|end|>\"}"},
        {"folder/tokenizer_config.json",
         "{\"eos_token\": {\"content\": \"<|end|>\", \"lstrip\": false}}"},
        {"folder/special_tokens_map.json", "{\"eos_token\": \"<|end|>\"}"},
        {"folder/config.json", "{\"eos_token_id\": 0}"},
        {"folder/config.json", "{\"eos_token_id\": [0, 7]}"}};
    static const char *const silent[][2] = {
        {NULL, NULL},
        {"folder/tokenizer_config.json", "{\"eos_token\": null}"},
        {"folder/config.json", "{\"eos_token_id\": 50256}"}};
    char a[SCRATCH_PATH_MAX], b[SCRATCH_PATH_MAX], folder[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(a, state, "a", "the men"),
                           scratch_text(b, state, "b", "it is")};
    tr_data_options options = text_options(paths, 2);
    options.tokenizer = scratch_path(folder, state, "folder");
    options.eos_token = NULL;
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        write_folder(state, says[i][0], says[i][1]);
        assert_documents(&options, DOCUMENTS("the men", "it is"));
    }
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        write_folder(state, silent[i][0], silent[i][1]);
        options.path_count = 2;
        scratch_refuse(&options, TR_USAGE, "data.eos_token: ");
        options.path_count = 1; // one document needs none
        assert_documents(&options, DOCUMENTS("the men"));
    }
    write_folder(state, "folder/tokenizer_config.json", "{\"eos_token\": \"no\"}");
    scratch_refuse(&options, TR_DATA, "tokenizer_config.json: eos_token: ");
    write_folder(state, "folder/tokenizer_config.json", "{\"eos_token\": 5}");
    scratch_refuse(&options, TR_DATA, "eos_token: is not a string");
    write_folder(state, "folder/special_tokens_map.json", "{");
    scratch_refuse(&options, TR_DATA, "special_tokens_map.json: line 1");
    options.eos_token = "nothing";
    scratch_refuse(&options, TR_DATA, "data.eos_token: \"nothing\" is no token");
}

static void refusals(void **state) {
    char a[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(a, state, "a", "the men")};
    tr_data_options options = text_options(paths, 1);
    options.vocabulary = 400;
    scratch_refuse(&options, TR_DATA, "data.tokenizer: the ids of");
    options.vocabulary = 0;
    options.sequence_length = 64;
    scratch_refuse(&options, TR_DATA, "tokens are too short");
    options.tokenizer = NULL;
    scratch_refuse(&options, TR_USAGE, "data.tokenizer: ");
    options.tokenizer = a;
    scratch_refuse(&options, TR_DATA, "not valid JSON");
    tr_data_options bytes = {.size = sizeof(tr_data_options),
                             .format = "bytes",
                             .paths = paths,
                             .path_count = 1,
                             .sequence_length = 2,
                             .eos_token = "x"};
    scratch_refuse(&bytes, TR_USAGE, "data.eos_token: has no meaning for format bytes");
    unsetenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *kept = home ? strdup(home) : NULL;
    unsetenv("HOME");
    options = text_options(paths, 1);
    scratch_refuse(&options, TR_IO, "set HOME or XDG_CACHE_HOME");
    if (kept) {
        setenv("HOME", kept, 1);
    }
    free(kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, own_cache, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_are_documents),
        TEST(separators),
        TEST(special_tokens),
        TEST(as_hugging_face),
        TEST(long_text),
        TEST(end_of_text),
        TEST(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
