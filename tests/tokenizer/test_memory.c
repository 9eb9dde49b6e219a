// Whichever allocation fails, there is a status and a message, and nothing is lost.
#include "support.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { STEP_FAR = 41 }; // allocations between those that fail, once there were many

static tr_status work(const char *file, size_t bytes, const tr_text *text,
                      tr_error *err) {
    tr_tokenizer *tokenizer = NULL;
    tr_token_ids ids = {0};
    char *back = NULL;
    size_t back_bytes;
    tr_encode_options options = {.size = sizeof(tr_encode_options),
                                 .add_special = true};
    tr_status status = tr__tokenizer_parse("file", file, bytes, &tokenizer, err);
    if (status == TR_OK) {
        status = tr_tokenizer_encode(tokenizer, (const char *)text->bytes, text->count,
                                     &options, 1, &ids, err);
    }
    if (status == TR_OK) {
        status = tr_tokenizer_decode(tokenizer, ids.id, ids.count, false, &back,
                                     &back_bytes, err);
    }
    tr_tokenizer_text_release(back);
    tr_token_ids_release(&ids);
    tr_tokenizer_destroy(tokenizer);
    return status;
}

static void fail_each(const char *name) {
    char path[4096], *file = NULL;
    size_t bytes;
    tr_error first = {0};
    tr_text text = tokenizer_texts(3000);
    snprintf(path, sizeof path, TR_TEST_DATA "/tokenizers/%s.json", name);
    assert_int_equal(tr__file_read(path, 1 << 24, &file, &bytes, &first), TR_OK);
    int64_t before = tr__memory_calls();
    assert_int_equal(work(file, bytes, &text, &first), TR_OK);
    int64_t calls = tr__memory_calls() - before;
    assert_true(calls > 20);
    for (int64_t nth = 1; nth <= calls; nth += nth < 150 ? 1 : STEP_FAR) {
        tr_error err = {0};
        tr__memory_fail_at(nth);
        tr_status status = work(file, bytes, &text, &err);
        tr__memory_fail_at(0);
        if (status != TR_MEMORY || err.status != TR_MEMORY || !err.message[0]) {
            fail_msg("%s, allocation %lld of %lld: status %d, \"%s\"", name,
                     (long long)nth, (long long)calls, (int)status, err.message);
        }
    }
    tr__free(file);
    tr__text_release(&text);
}

static void test_each(void **state) {
    (void)state;
    for (size_t i = 0; tokenizer_names[i]; i++) {
        fail_each(tokenizer_names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
