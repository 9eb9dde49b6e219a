#include "text/tokenizer/decoder.h"

#include "base/memory.h"
#include "text/tokenizer/byte_level.h"

#include <stdlib.h>

void tr__strings_end(tr_strings *s, size_t begin) {
    if (!tr__grow((void **)&s->span, &s->capacity, s->count + 1, sizeof *s->span)) {
        s->text.failed = true;
        return;
    }
    s->span[s->count++] = (tr_text_span){begin, s->text.count};
}

void tr__strings_release(tr_strings *s) {
    tr__text_release(&s->text);
    tr__free(s->span);
    *s = (tr_strings){0};
}

static const unsigned char *string_at(const tr_strings *s, size_t i, size_t *count) {
    *count = s->span[i].end - s->span[i].begin;
    return *count ? s->text.bytes + s->span[i].begin : (const unsigned char *)"";
}

// Bytes that belong to one text; what is no UTF-8 of them becomes U+FFFD.
static void byte_level(const tr_strings *from, tr_strings *to) {
    tr_text bytes = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t count;
        const unsigned char *token = string_at(from, i, &count);
        if (!tr__byte_level_bytes(token, count, &bytes)) {
            tr__text_add(&bytes, token, count);
        }
    }
    tr__text_repair(&to->text, bytes.bytes, bytes.count);
    to->text.failed |= bytes.failed;
    tr__text_release(&bytes);
    tr__strings_end(to, 0);
}

// The byte of "<0x41>", -1: the token is another one.
static int fallback_byte(const unsigned char *token, size_t count) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    if (count != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>') {
        return -1;
    }
    const char *high = memchr(digits, token[3], 32),
               *low = memchr(digits, token[4], 32);
    return high && low ? (int)((high - digits) % 16 * 16 + (low - digits) % 16) : -1;
}

// A run of bytes is a text where it is UTF-8, else U+FFFD for each byte.
static void end_bytes(tr_text *bytes, tr_strings *to) {
    size_t begin = to->text.count;
    if (bytes->count == 0) {
        return;
    }
    if (tr__utf8_valid(bytes->bytes, bytes->count) == bytes->count) {
        tr__text_add(&to->text, bytes->bytes, bytes->count);
        tr__strings_end(to, begin);
    } else {
        for (size_t i = 0; i < bytes->count; i++) {
            begin = to->text.count;
            tr__text_put(&to->text, 0xfffd);
            tr__strings_end(to, begin);
        }
    }
    tr__text_clear(bytes);
}

static void byte_fallback(const tr_strings *from, tr_strings *to) {
    tr_text bytes = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t count;
        const unsigned char *token = string_at(from, i, &count);
        int byte = fallback_byte(token, count);
        unsigned char one = (unsigned char)byte;
        if (byte >= 0) {
            tr__text_add(&bytes, &one, 1);
            continue;
        }
        end_bytes(&bytes, to);
        size_t begin = to->text.count;
        tr__text_add(&to->text, token, count);
        tr__strings_end(to, begin);
    }
    end_bytes(&bytes, to);
    to->text.failed |= bytes.failed;
    tr__text_release(&bytes);
}

static void fuse(const tr_strings *from, tr_strings *to) {
    for (size_t i = 0; i < from->count; i++) {
        size_t count;
        const unsigned char *bytes = string_at(from, i, &count);
        tr__text_add(&to->text, bytes, count);
    }
    tr__strings_end(to, 0);
}

// Where one token is and what is known of it.
typedef struct token {
    const tr_decode_step *step;
    const unsigned char *bytes;
    size_t count;
    bool first, last;
} token;

static tr_status replace(const token *t, tr_text *to, tr_error *err) {
    tr_text_spans spans = {0};
    tr_text kinds = {0};
    tr_status status = tr__pattern_cut(
        &t->step->pattern, t->bytes, (tr_text_span){0, t->count}, &spans, &kinds, err);
    for (size_t i = 0; i < spans.count && status == TR_OK && !to->failed; i++) {
        if (kinds.bytes[i]) {
            tr__text_add(to, t->step->text.bytes, t->step->text.count);
        } else {
            tr__text_add(to, t->bytes + spans.span[i].begin,
                         spans.span[i].end - spans.span[i].begin);
        }
    }
    tr__spans_release(&spans);
    tr__text_release(&kinds);
    return status;
}

static void strip(const token *t, tr_text *to) {
    const tr_text *what = &t->step->text;
    size_t begin = 0, end = t->count;
    for (int64_t i = 0; i < t->step->start && end - begin >= what->count &&
                        memcmp(t->bytes + begin, what->bytes, what->count) == 0;
         i++) {
        begin += what->count;
    }
    for (int64_t i = 0;
         i < t->step->stop && end - begin >= what->count &&
         memcmp(t->bytes + end - what->count, what->bytes, what->count) == 0;
         i++) {
        end -= what->count;
    }
    tr__text_add(to, t->bytes + begin, end - begin);
}

// Each of `what` in the token becomes `with`.
static void exchange(const token *t, const void *what, size_t bytes, const char *with,
                     size_t with_bytes, tr_text *to) {
    const unsigned char *at = t->bytes, *end = t->bytes + t->count, *found;
    while (bytes > 0 && (found = memmem(at, (size_t)(end - at), what, bytes)) != NULL) {
        tr__text_add(to, at, (size_t)(found - at));
        tr__text_add(to, with, with_bytes);
        at = found + bytes;
    }
    tr__text_add(to, at, (size_t)(end - at));
}

// The first token loses its marks where one stands for no blank.
static void metaspace(const token *t, tr_text *to) {
    exchange(t, t->step->text.bytes, t->step->text.count, " ",
             !(t->first && t->step->drop_first), to);
}

static void clean(tr_text *text) {
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !text->failed; i++) {
        tr_text cleaned = {0};
        token t = {.bytes = text->bytes, .count = text->count};
        exchange(&t, pairs[i][0], strlen(pairs[i][0]), pairs[i][1], strlen(pairs[i][1]),
                 &cleaned);
        tr__text_release(text);
        *text = cleaned;
    }
}

static void wordpiece(const token *t, tr_text *to) {
    const tr_text *prefix = &t->step->text;
    tr_text text = {0};
    bool goes_on = t->count >= prefix->count &&
                   memcmp(t->bytes, prefix->bytes, prefix->count) == 0;
    size_t skip = !t->first && goes_on ? prefix->count : 0;
    tr__text_add(&text, " ", !t->first && !goes_on);
    tr__text_add(&text, t->bytes + skip, t->count - skip);
    if (t->step->cleanup && text.count > 0 && memchr(text.bytes, ' ', text.count)) {
        clean(&text);
    }
    tr__text_add(to, text.bytes, text.count);
    to->failed |= text.failed;
    tr__text_release(&text);
}

static tr_status run_token(const token *t, tr_text *to, tr_error *err) {
    switch (t->step->kind) {
    case TR_DECODE_REPLACE:
        return replace(t, to, err);
    case TR_DECODE_STRIP:
        strip(t, to);
        return TR_OK;
    case TR_DECODE_METASPACE:
        metaspace(t, to);
        return TR_OK;
    case TR_DECODE_WORDPIECE:
        wordpiece(t, to);
        return TR_OK;
    case TR_DECODE_SUFFIX:
        exchange(t, t->step->text.bytes, t->step->text.count, " ", !t->last, to);
        return TR_OK;
    case TR_DECODE_BYTE_LEVEL:
    case TR_DECODE_BYTE_FALLBACK:
    case TR_DECODE_FUSE:
        break;
    }
    return TR_OK;
}

static tr_status each_token(const tr_decode_step *step, const tr_strings *from,
                            tr_strings *to, tr_error *err) {
    for (size_t i = 0; i < from->count && !to->text.failed; i++) {
        size_t begin = to->text.count;
        token t = {.step = step, .first = i == 0, .last = i + 1 == from->count};
        t.bytes = string_at(from, i, &t.count);
        tr_status status = run_token(&t, &to->text, err);
        if (status != TR_OK) {
            return status;
        }
        tr__strings_end(to, begin);
    }
    return TR_OK;
}

static tr_status run_step(const tr_decode_step *step, const tr_strings *from,
                          tr_strings *to, tr_error *err) {
    switch (step->kind) {
    case TR_DECODE_BYTE_LEVEL:
        byte_level(from, to);
        return TR_OK;
    case TR_DECODE_BYTE_FALLBACK:
        byte_fallback(from, to);
        return TR_OK;
    case TR_DECODE_FUSE:
        fuse(from, to);
        return TR_OK;
    default:
        return each_token(step, from, to, err);
    }
}

static const char *name_of(tr_decode_kind kind) {
    static const char *const names[] = {"ByteLevel", "ByteFallback", "Fuse",
                                        "Replace",   "Strip",        "Metaspace",
                                        "WordPiece", "BPEDecoder"};
    return names[kind];
}

// step: the one that failed, counted from 1; 0: the tokens themselves.
static tr_status fail_text(const tr_decoder *decoder, const tr_strings *strings,
                           size_t step, size_t limit, tr_error *err) {
    if (!strings->text.over) {
        return tr_fail(err, TR_MEMORY, "no memory for a text");
    }
    if (step == 0) {
        return tr_fail(err, TR_DATA, "the tokens have over %zu bytes together", limit);
    }
    return tr_fail(err, TR_DATA,
                   "the tokenizer's decoder %zu of %zu (%s) makes more than %zu bytes "
                   "of the tokens, which are allowed of their bytes and number",
                   step, decoder->count, name_of(decoder->step[step - 1].kind), limit);
}

tr_status tr__decoder_run(const tr_decoder *decoder, tr_strings *strings,
                          tr_error *err) {
    tr_status status = TR_OK;
    // each token may get a blank
    size_t limit = tr__text_growth(strings->text.count + strings->count), i = 0;
    for (; i < decoder->count && status == TR_OK && !strings->text.failed; i++) {
        tr_strings next = {.text.limit = limit};
        status = run_step(&decoder->step[i], strings, &next, err);
        tr__strings_release(strings);
        *strings = next;
    }
    return status == TR_OK && strings->text.failed
               ? fail_text(decoder, strings, i, i ? limit : strings->text.limit, err)
               : status;
}
