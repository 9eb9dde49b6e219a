// Labels: check
// Ids and texts as Hugging Face's `tokenizers` makes them
// (tools/goldens/tokenizer_vectors.py).
#include "text/tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char folder[] = TR_TEST_DATA "/tokenizers";

typedef struct loaded {
    const char *name;
    tr_tokenizer *tokenizer;
} loaded;

// The tokenizer of a vector, kept from one vector to the next.
static void load(loaded *l, const char *name) {
    char path[4096];
    tr_error err = {0};
    if (l->name && strcmp(l->name, name) == 0) {
        return;
    }
    tr_tokenizer_destroy(l->tokenizer);
    l->tokenizer = NULL;
    l->name = name;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    if (tr_tokenizer_load(path, &l->tokenizer, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
}

static json_t *vectors(void) {
    char path[4096];
    json_error_t problem;
    snprintf(path, sizeof path, "%s/vectors.json", folder);
    json_t *list = json_load_file(path, 0, &problem);
    if (!list) {
        fail_msg("%s: %s", path, problem.text);
    }
    return list;
}

static void check_ids(const json_t *vector, const char *key, const tr_token_ids *ids) {
    const json_t *expected = json_object_get(vector, key);
    const char *text = json_string_value(json_object_get(vector, "text"));
    const char *name = json_string_value(json_object_get(vector, "tokenizer"));
    size_t count = json_array_size(expected);
    for (size_t i = 0; i < count && i < ids->count; i++) {
        int id = (int)json_integer_value(json_array_get(expected, i));
        if (ids->id[i] != id) {
            fail_msg("%s, \"%s\", %s: token %zu is %d, not %d", name, text, key, i,
                     (int)ids->id[i], id);
        }
    }
    if (ids->count != count) {
        fail_msg("%s, \"%s\", %s: %zu tokens, not %zu", name, text, key, ids->count,
                 count);
    }
}

static void encode(const loaded *l, const json_t *vector, bool special, int threads,
                   tr_token_ids *ids) {
    const json_t *text = json_object_get(vector, "text");
    tr_encode_options options = {.size = sizeof(tr_encode_options),
                                 .add_special = special};
    tr_error err = {0};
    ids->count = 0;
    tr_status status =
        tr_tokenizer_encode(l->tokenizer, json_string_value(text),
                            json_string_length(text), &options, threads, ids, &err);
    if (status != TR_OK) {
        fail_msg("%s", err.message);
    }
}

static void test_encode(void **state) {
    (void)state;
    loaded l = {0};
    tr_token_ids ids = {0};
    json_t *list = vectors();
    assert_true(json_array_size(list) > 300);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *vector = json_array_get(list, i);
        load(&l, json_string_value(json_object_get(vector, "tokenizer")));
        encode(&l, vector, false, 1, &ids);
        check_ids(vector, "ids", &ids);
        encode(&l, vector, true, 2, &ids);
        check_ids(vector, "special", &ids);
    }
    tr_token_ids_release(&ids);
    tr_tokenizer_destroy(l.tokenizer);
    json_decref(list);
}

static void check_text(const loaded *l, const json_t *vector, bool skip,
                       const char *key) {
    const json_t *expected = json_object_get(vector, key);
    const json_t *list = json_object_get(vector, "ids");
    size_t count = json_array_size(list), bytes;
    int32_t *id = calloc(count + 1, sizeof *id);
    char *text = NULL;
    tr_error err = {0};
    for (size_t i = 0; i < count; i++) {
        id[i] = (int32_t)json_integer_value(json_array_get(list, i));
    }
    if (tr_tokenizer_decode(l->tokenizer, id, count, skip, &text, &bytes, &err) !=
        TR_OK) {
        fail_msg("%s", err.message);
    }
    if (strcmp(text, json_string_value(expected)) != 0) {
        fail_msg("%s, %s: \"%s\", not \"%s\"", l->name, key, text,
                 json_string_value(expected));
    }
    assert_int_equal(bytes, json_string_length(expected));
    tr_tokenizer_text_release(text);
    free(id);
}

static void test_decode(void **state) {
    (void)state;
    loaded l = {0};
    json_t *list = vectors();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *vector = json_array_get(list, i);
        load(&l, json_string_value(json_object_get(vector, "tokenizer")));
        check_text(&l, vector, false, "decoded");
        check_text(&l, vector, true, "skipped");
    }
    tr_tokenizer_destroy(l.tokenizer);
    json_decref(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
