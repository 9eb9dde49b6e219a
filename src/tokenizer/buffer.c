#include "tokenizer/buffer.h"

#include "base/checked.h"
#include "base/memory.h"

bool tr__text_reserve(tr_text *text, size_t more) {
    size_t need;
    if (!tr__add_size(text->count, more, &need) ||
        !tr__grow((void **)&text->bytes, &text->capacity, need, 1)) {
        text->failed = true;
        return false;
    }
    return true;
}

bool tr__spans_reserve(tr_text_spans *spans) {
    if (!tr__grow((void **)&spans->span, &spans->capacity, spans->count + 1,
                  sizeof *spans->span)) {
        spans->failed = true;
        return false;
    }
    return true;
}

void tr__text_release(tr_text *text) {
    tr__free(text->bytes);
    *text = (tr_text){0};
}

void tr__spans_release(tr_text_spans *spans) {
    tr__free(spans->span);
    *spans = (tr_text_spans){0};
}
