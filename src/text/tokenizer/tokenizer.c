// What a loaded tokenizer tells of its tokens, and its end.
#include "text/tokenizer/tokenizer.h"

#include "base/memory.h"

#include <string.h>

void tr_tokenizer_destroy(tr_tokenizer *t) {
    if (!t) {
        return;
    }
    tr__added_release(&t->added);
    tr__normalizer_release(&t->normalizer);
    tr__pretokenizer_release(&t->pretokenizer);
    tr__bpe_release(&t->bpe);
    tr__wordpiece_release(&t->wordpiece);
    tr__template_release(&t->template);
    tr__decoder_release(&t->decoder);
    tr__vocabulary_release(&t->vocabulary);
    tr__vocabulary_release(&t->extra);
    tr__unicode_release(&t->unicode);
    tr__free(t);
}

int64_t tr_tokenizer_vocabulary(const tr_tokenizer *t) {
    size_t model = t->vocabulary.count, extra = t->extra.count;
    return (int64_t)(model > extra ? model : extra);
}

int32_t tr_tokenizer_find(const tr_tokenizer *t, const char *token) {
    tr_tokens tokens = tr__tokenizer_tokens(t);
    return tr__tokens_find(&tokens, token, strlen(token));
}

const char *tr_tokenizer_token(const tr_tokenizer *t, int32_t id, size_t *bytes) {
    tr_tokens tokens = tr__tokenizer_tokens(t);
    return (const char *)tr__tokens_bytes(&tokens, id, bytes);
}
