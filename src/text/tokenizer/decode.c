#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer.h"

enum { TEXT_MAX = 1 << 30 }; // bytes of all tokens that are decoded at once

// What decoding shows of a token; NULL: no token has the id.
static const unsigned char *find_text(const tr_tokenizer *t, int32_t id,
                                      size_t *bytes) {
    tr_tokens tokens = tr__tokenizer_tokens(t);
    const tr_token *token = tr__tokens_at(&tokens, id);
    if (!token || token->renamed == 0) {
        return tr__tokens_bytes(&tokens, id, bytes);
    }
    tr_text_span shown = t->added.token[token->renamed - 1].shown;
    *bytes = shown.end - shown.begin;
    return *bytes ? t->added.shown.bytes + shown.begin : (const unsigned char *)"";
}

// The tokens of ids, as the decoder takes them.
static void collect(const tr_tokenizer *t, const int32_t *id, size_t count,
                    bool skip_special, tr_strings *strings) {
    tr_tokens tokens = tr__tokenizer_tokens(t);
    for (size_t i = 0; i < count && !strings->text.failed; i++) {
        size_t bytes = 0, begin = strings->text.count;
        const unsigned char *text = find_text(t, id[i], &bytes);
        if (!text || (skip_special && tr__tokens_at(&tokens, id[i])->special)) {
            continue;
        }
        // Without a decoder, blanks stand between tokens.
        tr__text_add(&strings->text, " ", !t->decoder.any && strings->count > 0);
        tr__text_add(&strings->text, text, bytes);
        tr__strings_end(strings, begin);
    }
}

tr_status tr_tokenizer_decode(const tr_tokenizer *t, const int32_t *id, size_t count,
                              bool skip_special, char **text, size_t *bytes,
                              tr_error *err) {
    tr_strings strings = {.text.limit = (size_t)TEXT_MAX};
    collect(t, id, count, skip_special, &strings);
    tr_status status = tr__decoder_run(&t->decoder, &strings, err);
    if (status == TR_OK) {
        strings.text.limit = 0;
        tr__text_add(&strings.text, "", 1);
    }
    if (status == TR_OK && strings.text.failed) {
        status = tr_fail(err, TR_MEMORY, "no memory for a text");
    }
    if (status == TR_OK) {
        *text = (char *)strings.text.bytes;
        *bytes = strings.text.count - 1;
        strings.text = (tr_text){0};
    }
    tr__strings_release(&strings);
    return status;
}

void tr_tokenizer_text_release(char *text) {
    tr__free(text);
}
