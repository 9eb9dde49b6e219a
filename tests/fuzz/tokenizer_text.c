// A text for each of the committed tokenizers (the first byte says which): its ids are
// the same wherever it is cut, and where the tokenizer loses nothing, decoding gives
// the text back.
#include "fuzz.h"

#include "text/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

// The first ones lose nothing.
static const char *const names[] = {"gpt2",   "llama3", "deepseek", "smollm",
                                    "falcon", "qwen2",  "llama2",   "mistral",
                                    "bert",   "clip",   "spaces",   "roberta"};
enum { NAMES = sizeof names / sizeof *names, LOSSLESS = 5 };

static tr_tokenizer *load(int which) {
    static tr_tokenizer *loaded[NAMES];
    char path[4096];
    tr_error err = {0};
    if (!loaded[which]) {
        snprintf(path, sizeof path, TR_TEST_DATA "/tokenizers/%s.json", names[which]);
        fuzz_check(tr_tokenizer_load(path, &loaded[which], &err) == TR_OK, err.message);
    }
    return loaded[which];
}

static void encode(const tr_tokenizer *tokenizer, const unsigned char *text,
                   size_t bytes, size_t cut, tr_token_ids *ids) {
    tr_encoder *encoder = NULL;
    tr_error err = {0};
    fuzz_check(tr_encoder_create(tokenizer, &encoder, &err) == TR_OK, err.message);
    fuzz_check(tr__encode_part(encoder, text, cut, true, true, ids, &err) == TR_OK,
               err.message);
    fuzz_check(tr__encode_part(encoder, text + cut, bytes - cut, cut == 0, true, ids,
                               &err) == TR_OK,
               err.message);
    tr_encoder_destroy(encoder);
}

static void check_back(const tr_tokenizer *tokenizer, const tr_token_ids *ids,
                       const unsigned char *text, size_t bytes) {
    char *back = NULL;
    size_t back_bytes;
    tr_error err = {0};
    tr_text repaired = {0};
    tr__text_repair(&repaired, text, bytes);
    fuzz_check(tr_tokenizer_decode(tokenizer, ids->id, ids->count, false, &back,
                                   &back_bytes, &err) == TR_OK,
               err.message);
    fuzz_check(back_bytes == repaired.count &&
                   (back_bytes == 0 || memcmp(back, repaired.bytes, back_bytes) == 0),
               "decoding does not give the text back");
    tr__text_release(&repaired);
    tr_tokenizer_text_release(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_token_ids whole = {0}, both = {0};
    if (size < 2) {
        return 0;
    }
    int which = data[0] % NAMES;
    const tr_tokenizer *tokenizer = load(which);
    const unsigned char *text = data + 2;
    size_t bytes = size - 2;
    encode(tokenizer, text, bytes, 0, &whole);
    encode(tokenizer, text, bytes,
           bytes ? tr__tokenizer_cut(tokenizer, text, bytes, 1 + data[1] % bytes) : 0,
           &both);
    fuzz_check(whole.count == both.count &&
                   (whole.count == 0 ||
                    memcmp(whole.id, both.id, whole.count * sizeof *whole.id) == 0),
               "a cut that changes ids");
    if (which < LOSSLESS) {
        check_back(tokenizer, &whole, text, bytes);
    }
    tr_token_ids_release(&whole);
    tr_token_ids_release(&both);
    return 0;
}
