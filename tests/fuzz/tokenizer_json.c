// A tokenizer.json, with which texts are then encoded, whole and in two, and decoded.
#include "fuzz.h"

#include "text/tokenizer/tokenizer.h"

static const char text[] =
    "The  man's 1234 na\xc3\xafve e\xcc\x81 \xe6\xbc\xa2\xe5\xad\x97 <s>a</s> "
    "b<s> \xff\n\n\t x=y;  aaaa abab [UNK] \xf0\x9f\x91\x8d";

static void check_decoding(const tr_tokenizer *tokenizer, const tr_token_ids *ids) {
    char *back = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    for (size_t i = 0; i < ids->count; i++) {
        fuzz_check(ids->id[i] >= 0, "an id below 0");
    }
    fuzz_check_told(
        tr_tokenizer_decode(tokenizer, ids->id, ids->count, false, &back, &bytes, &err),
        &err);
    fuzz_check(!back || tr__utf8_valid((unsigned char *)back, bytes) == bytes,
               "a decoded text that is no UTF-8");
    tr_tokenizer_text_release(back);
}

// A text that can be cut has the ids of its two parts.
static void check_cut(const tr_tokenizer *tokenizer, const tr_token_ids *ids) {
    const unsigned char *whole = (const unsigned char *)text;
    size_t bytes = sizeof text - 1, at = tr__tokenizer_cut(tokenizer, whole, bytes, 1);
    tr_encoder *encoder = NULL;
    tr_token_ids both = {0};
    tr_error err = {0};
    fuzz_check(tr_encoder_create(tokenizer, &encoder, &err) == TR_OK, err.message);
    if (tr__encode_part(encoder, whole, at, true, true, &both, &err) == TR_OK &&
        tr__encode_part(encoder, whole + at, bytes - at, false, true, &both, &err) ==
            TR_OK) {
        fuzz_check(both.count == ids->count &&
                       (both.count == 0 ||
                        memcmp(both.id, ids->id, both.count * sizeof *ids->id) == 0),
                   "a cut that changes ids");
    }
    tr_encoder_destroy(encoder);
    tr_token_ids_release(&both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_tokenizer *tokenizer = NULL;
    tr_token_ids ids = {0};
    tr_error err = {0};
    tr_status status =
        tr__tokenizer_parse("file", (const char *)data, size, &tokenizer, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        status =
            tr_tokenizer_encode(tokenizer, text, sizeof text - 1, NULL, 1, &ids, &err);
        fuzz_check_told(status, &err);
        if (status == TR_OK) {
            check_decoding(tokenizer, &ids);
            check_cut(tokenizer, &ids);
        }
    }
    tr_token_ids_release(&ids);
    tr_tokenizer_destroy(tokenizer);
    return 0;
}
