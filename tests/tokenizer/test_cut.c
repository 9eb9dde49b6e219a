// However a text is cut into parts, blocks and threads, its ids are those of the whole.
#include "support.h"

#include "text/tokenizer/stream.h"

#include <stdlib.h>
#include <string.h>

static tr_token_ids encode_whole(const tr_tokenizer *tokenizer, const tr_text *text) {
    tr_token_ids ids = {0};
    tr_encoder *encoder = NULL;
    tr_error err = {0};
    assert_int_equal(tr_encoder_create(tokenizer, &encoder, &err), TR_OK);
    if (tr__encode_part(encoder, text->bytes, text->count, true, true, &ids, &err) !=
        TR_OK) {
        fail_msg("%s", err.message);
    }
    tr_encoder_destroy(encoder);
    return ids;
}

static void assert_same(const char *name, const char *how, const tr_token_ids *a,
                        const tr_token_ids *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (a->id[i] != b->id[i]) {
            fail_msg("%s, %s: token %zu is %d, not %d", name, how, i, (int)b->id[i],
                     (int)a->id[i]);
        }
    }
    if (a->count != b->count) {
        fail_msg("%s, %s: %zu tokens, not %zu", name, how, b->count, a->count);
    }
}

static void test_threads(void **state) {
    (void)state;
    tr_text text = tokenizer_texts(400000);
    for (size_t i = 0; tokenizer_names[i]; i++) {
        tr_tokenizer *tokenizer = tokenizer_load(tokenizer_names[i]);
        tr_token_ids whole = encode_whole(tokenizer, &text), parts = {0};
        tr_error err = {0};
        tr_status status = tr_tokenizer_encode(tokenizer, (const char *)text.bytes,
                                               text.count, NULL, 3, &parts, &err);
        assert_int_equal(status, TR_OK);
        assert_same(tokenizer_names[i], "on threads", &whole, &parts);
        tr_token_ids_release(&whole);
        tr_token_ids_release(&parts);
        tr_tokenizer_destroy(tokenizer);
    }
    tr__text_release(&text);
}

// Blocks of all sizes, as far as each goes.
static void encode_blocks(const tr_tokenizer *tokenizer, const tr_text *text,
                          tr_token_ids *ids) {
    size_t begin = 0, size = 50, used;
    unsigned seed = 1;
    tr_text_stream stream = {.tokenizer = tokenizer, .threads = 2};
    tr_error err = {0};
    while (begin < text->count) {
        size_t left = text->count - begin, bytes = size < left ? size : left;
        tr_block block = {(const char *)text->bytes + begin, bytes, begin == 0,
                          bytes == left, NULL};
        tr_status status = tr__text_stream_encode(&stream, &block, 1, ids, &used, &err);
        if (status != TR_OK) {
            fail_msg("%s", err.message);
        }
        assert_true(used <= bytes && (used == bytes || bytes < left));
        begin += used;
        size = used ? 1 + (size_t)rand_r(&seed) % 3000 : size * 2;
    }
    tr__text_stream_release(&stream);
}

static void test_blocks(void **state) {
    (void)state;
    int cut = 0;
    tr_text text = tokenizer_texts(60000);
    for (size_t i = 0; tokenizer_names[i]; i++) {
        tr_tokenizer *tokenizer = tokenizer_load(tokenizer_names[i]);
        tr_token_ids whole = encode_whole(tokenizer, &text), blocks = {0};
        encode_blocks(tokenizer, &text, &blocks);
        assert_same(tokenizer_names[i], "in blocks", &whole, &blocks);
        cut += tr__tokenizer_last_cut(tokenizer, text.bytes, text.count) > 0;
        tr_token_ids_release(&whole);
        tr_token_ids_release(&blocks);
        tr_tokenizer_destroy(tokenizer);
    }
    assert_true(cut >= 6); // those of gpt2, llama3, qwen2, deepseek, llama2, bert
    tr__text_release(&text);
}

// Every place that is taken for a cut is one: the ids of both sides are those of all.
static void test_every_cut(void **state) {
    (void)state;
    tr_text text = tokenizer_texts(9000);
    text.count = text.count < 9000 ? text.count : 9000;
    for (size_t i = 0; tokenizer_names[i]; i++) {
        tr_tokenizer *tokenizer = tokenizer_load(tokenizer_names[i]);
        tr_token_ids whole = encode_whole(tokenizer, &text);
        tr_encoder *encoder = NULL;
        tr_error err = {0};
        assert_int_equal(tr_encoder_create(tokenizer, &encoder, &err), TR_OK);
        for (size_t at = 1; at < text.count; at++) {
            tr_token_ids both = {0};
            at = tr__tokenizer_cut(tokenizer, text.bytes, text.count, at);
            assert_int_equal(
                tr__encode_part(encoder, text.bytes, at, true, true, &both, &err),
                TR_OK);
            assert_int_equal(tr__encode_part(encoder, text.bytes + at, text.count - at,
                                             at == 0, true, &both, &err),
                             TR_OK);
            assert_same(tokenizer_names[i], "in two", &whole, &both);
            tr_token_ids_release(&both);
        }
        tr_encoder_destroy(encoder);
        tr_token_ids_release(&whole);
        tr_tokenizer_destroy(tokenizer);
    }
    tr__text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_every_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
