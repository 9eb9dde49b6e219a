// Labels: check
// Texts and pairs with their special tokens and types, whole and cut, as Hugging Face's
// `tokenizers` makes them (tools/goldens/encoders.py).
#include "text/tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *load(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/encoders/%s/%s", TR_TEST_DATA, folder, name);
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    return json;
}

static void check(const json_t *golden, const char *key, size_t text,
                  const tr_token_ids *ids) {
    const json_t *want = json_object_get(golden, key);
    assert_int_equal(json_array_size(want), ids->count);
    for (size_t i = 0; i < ids->count; i++) {
        int id = (int)json_integer_value(json_array_get(want, i));
        if (ids->id[i] != id) {
            fail_msg("text %zu, %s[%zu] is %d, not %d", text, key, i, ids->id[i], id);
        }
    }
}

static bool encode(const tr_tokenizer *tokenizer, const json_t *record, size_t most,
                   tr_token_ids *ids, tr_token_ids *types) {
    tr_error err = {0};
    tr_encoder *encoder = NULL;
    const json_t *first = json_object_get(record, "text");
    const json_t *second = json_object_get(record, "text_pair");
    const tr_text_pair texts = {.size = sizeof(tr_text_pair),
                                .first = json_string_value(first),
                                .first_bytes = json_string_length(first),
                                .second = json_string_value(second),
                                .second_bytes = json_string_length(second),
                                .most = most};
    bool cut = false;
    ids->count = types->count = 0;
    assert_int_equal(tr_encoder_create(tokenizer, &encoder, &err), TR_OK);
    if (tr_encoder_encode_pair(encoder, &texts, ids, types, &cut, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(ids->count, types->count);
    tr_encoder_destroy(encoder);
    return cut;
}

static void check_folder(const char *folder) {
    char path[4096], line[4096];
    tr_error err = {0};
    tr_tokenizer *tokenizer = NULL;
    tr_token_ids ids = {0}, types = {0};
    json_t *golden = load(folder, "golden.json");
    const json_t *list = json_object_get(golden, "texts");
    size_t most = (size_t)json_integer_value(json_object_get(golden, "cut")), text = 0;
    snprintf(path, sizeof path, "%s/encoders/%s", TR_TEST_DATA, folder);
    assert_int_equal(tr_tokenizer_load(path, &tokenizer, &err), TR_OK);
    snprintf(path, sizeof path, "%s/encoders/%s/texts.jsonl", TR_TEST_DATA, folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); text++) {
        json_t *record = json_loads(line, 0, NULL);
        const json_t *want = json_array_get(list, text);
        assert_false(encode(tokenizer, record, 0, &ids, &types));
        check(want, "ids", text, &ids);
        check(want, "types", text, &types);
        size_t whole = ids.count;
        assert_int_equal(encode(tokenizer, record, most, &ids, &types), whole > most);
        check(want, "cut_ids", text, &ids);
        check(want, "cut_types", text, &types);
        json_decref(record);
    }
    assert_int_equal(text, json_array_size(list));
    fclose(file);
    tr_token_ids_release(&ids);
    tr_token_ids_release(&types);
    tr_tokenizer_destroy(tokenizer);
    json_decref(golden);
}

static void template_processing(void **state) {
    (void)state;
    check_folder("bert");
}

static void roberta_processing(void **state) {
    (void)state;
    check_folder("roberta");
}

// ---- other post-processors

#define MODEL                                                                          \
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"u\", \"vocab\": {\"u\": "   \
    "0, "                                                                              \
    "\"a\": 1, \"b\": 2, \"C\": 3, \"S\": 4}}, \"pre_tokenizer\": {\"type\": "         \
    "\"WhitespaceSplit\"}"

// The ids and the types of "a b" and "b", by a tokenizer with this post-processor.
static tr_status with(const char *processor, tr_token_ids *ids, tr_token_ids *types,
                      tr_error *err) {
    char text[2048];
    tr_tokenizer *tokenizer = NULL;
    tr_encoder *encoder = NULL;
    snprintf(text, sizeof text, "{" MODEL ", \"post_processor\": %s}", processor);
    tr_status status =
        tr__tokenizer_parse("t.json", text, strlen(text), &tokenizer, err);
    ids->count = types->count = 0;
    if (status == TR_OK) {
        status = tr_encoder_create(tokenizer, &encoder, err);
    }
    if (status == TR_OK) {
        const tr_text_pair texts = {sizeof texts, "a b", "b", 3, 1, false, 0};
        status = tr_encoder_encode_pair(encoder, &texts, ids, types, NULL, err);
    }
    tr_encoder_destroy(encoder);
    tr_tokenizer_destroy(tokenizer);
    return status;
}

static void is(const char *processor, size_t count, const int32_t *id,
               const int32_t *type) {
    tr_error err = {0};
    tr_token_ids ids = {0}, types = {0};
    if (with(processor, &ids, &types, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.id, id, count * sizeof *id);
    assert_memory_equal(types.id, type, count * sizeof *type);
    tr_token_ids_release(&ids);
    tr_token_ids_release(&types);
}

static void other_processors(void **state) {
    (void)state;
    is("null", 3, (int32_t[]){1, 2, 2}, (int32_t[]){0, 0, 1});
    is("{\"type\": \"BertProcessing\", \"sep\": [\"S\", 4], \"cls\": [\"C\", 3]}", 6,
       (int32_t[]){3, 1, 2, 4, 2, 4}, (int32_t[]){0, 0, 0, 0, 1, 1});
}

static void refuses(const char *processor, const char *says) {
    tr_error err = {0};
    tr_token_ids ids = {0}, types = {0};
    assert_int_equal(with(processor, &ids, &types, &err), TR_DATA);
    if (!strstr(err.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    }
    tr_token_ids_release(&ids);
    tr_token_ids_release(&types);
}

static void bad_pairs(void **state) {
    (void)state;
    static const char single[] =
        "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": "
        "\"A\", \"type_id\": 0}}], \"special_tokens\": {}";
    char text[1024];
    snprintf(text, sizeof text, "%s}", single);
    refuses(text, "\"pair\"");
    snprintf(text, sizeof text,
             "%s, \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]}",
             single);
    refuses(text, "pair: has the text B 0 times");
    snprintf(text, sizeof text,
             "%s, \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": -1}}]}",
             single);
    refuses(text, "type_id");
    snprintf(text, sizeof text,
             "%s, \"pair\": [{\"Sequence\": {\"id\": \"C\", \"type_id\": 1}}]}",
             single);
    refuses(text, "Sequence A or B");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(template_processing),
        cmocka_unit_test(roberta_processing),
        cmocka_unit_test(other_processors),
        cmocka_unit_test(bad_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
