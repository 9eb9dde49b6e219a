#include "text/unicode/buffer.h"

#include "base/checked.h"
#include "base/memory.h"

bool tr__text_reserve(tr_text *text, size_t more) {
    size_t need;
    bool fits = tr__add_size(text->count, more, &need);
    if (text->limit > 0 && (!fits || need > text->limit)) {
        text->failed = text->over = true;
        return false;
    }
    if (!fits || !tr__grow((void **)&text->bytes, &text->capacity, need, 1)) {
        text->failed = true;
        return false;
    }
    return true;
}

// Long texts have room for four bytes of each, and 256 MiB.
size_t tr__text_growth(size_t bytes) {
    const size_t much = (size_t)256 << 20;
    size_t small = bytes < much ? TR_GROWTH * bytes + TR_GROWTH_FREE : SIZE_MAX;
    size_t large = bytes < SIZE_MAX / 8 ? TR_GROWTH_LARGE * bytes + much : SIZE_MAX / 2;
    return small < large ? small : large;
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
