#include "support.h"

#include <stdio.h>

const char *const tokenizer_names[] = {
    "gpt2",   "llama3",  "qwen2", "deepseek", "smollm", "falcon", "roberta",
    "llama2", "mistral", "bert",  "clip",     "spaces", NULL};

tr_tokenizer *tokenizer_load(const char *name) {
    char path[4096];
    tr_error err = {0};
    tr_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, TR_TEST_DATA "/tokenizers/%s.json", name);
    if (tr_tokenizer_load(path, &tokenizer, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return tokenizer;
}

tr_text tokenizer_texts(size_t bytes) {
    tr_text text = {0};
    json_t *list = json_load_file(TR_TEST_DATA "/tokenizers/vectors.json", 0, NULL);
    assert_non_null(list);
    for (size_t i = 0; text.count < bytes; i = (i + 7) % json_array_size(list)) {
        const json_t *one = json_object_get(json_array_get(list, i), "text");
        tr__text_add(&text, json_string_value(one), json_string_length(one));
        tr__text_add(&text, i % 3 ? " " : "\n", i % 5 != 0);
        tr__text_add(&text, "the men said to \xff", i % 11 == 0 ? 17 : 0);
    }
    json_decref(list);
    assert_false(text.failed);
    return text;
}
