#include "text/tokenizer/normalizer.h"

// One step at work.
typedef struct work {
    const tr_normalizer_step *step;
    const tr_unicode *unicode;
    const unsigned char *from;
    size_t bytes;
    tr_text *to;
    tr_normalized *scratch;
    bool continues;
} work;

void tr__normalized_release(tr_normalized *normalized) {
    tr__text_release(&normalized->text[0]);
    tr__text_release(&normalized->text[1]);
    tr__spans_release(&normalized->spans);
    tr__text_release(&normalized->kinds);
}

// Appends the text without the characters that have one of these flags.
static void drop(const work *w, const unsigned char *from, size_t bytes,
                 uint32_t flags) {
    size_t kept = 0, length;
    for (size_t at = 0; at < bytes; at += length) {
        if (w->unicode->flags[tr__utf8_read(from + at, &length)] & flags) {
            tr__text_add(w->to, from + kept, at - kept);
            kept = at + length;
        }
    }
    tr__text_add(w->to, from + kept, bytes - kept);
}

static void lowercase(const work *w) {
    size_t length;
    if (!tr__text_reserve(w->to, w->bytes)) {
        return;
    }
    for (size_t at = 0; at < w->bytes; at += length) {
        uint32_t c = tr__utf8_read(w->from + at, &length), lower[2];
        if (c < 0x80) {
            tr__text_put(w->to, c - 'A' < 26 ? c + 32 : c);
            continue;
        }
        size_t count = tr__unicode_lowercase(w->unicode, c, lower);
        for (size_t i = 0; i < count; i++) {
            tr__text_put(w->to, lower[i]);
        }
    }
}

static void strip(const work *w) {
    const uint32_t *flags = w->unicode->flags;
    size_t begin = 0, end = w->bytes, length;
    while (w->step->left && begin < end &&
           flags[tr__utf8_read(w->from + begin, &length)] & TR_SPACE) {
        begin += length;
    }
    while (w->step->right && begin < end) {
        uint32_t c = tr__utf8_before(w->from + end);
        if (!(flags[c] & TR_SPACE)) {
            break;
        }
        unsigned char bytes[TR_UTF8_MAX];
        end -= tr__utf8_write(c, bytes);
    }
    tr__text_add(w->to, w->from + begin, end - begin);
}

static void prepend(const work *w) {
    if (w->bytes > 0 && !w->continues) {
        tr__text_add(w->to, w->step->content.bytes, w->step->content.count);
    }
    tr__text_add(w->to, w->from, w->bytes);
}

static void replace_byte(const work *w, unsigned char byte) {
    const tr_text *content = &w->step->content;
    const unsigned char *at = w->from, *end = w->from + w->bytes, *next;
    while (at < end && !w->to->failed &&
           (next = memchr(at, byte, (size_t)(end - at))) != NULL) {
        tr__text_add(w->to, at, (size_t)(next - at));
        tr__text_add(w->to, content->bytes, content->count);
        at = next + 1;
    }
    tr__text_add(w->to, at, (size_t)(end - at));
}

static tr_status replace(const work *w, tr_error *err) {
    tr_text_spans *spans = &w->scratch->spans;
    tr_text *kinds = &w->scratch->kinds;
    if (w->step->pattern.literal_bytes == 1) {
        replace_byte(w, (unsigned char)*w->step->pattern.literal);
        return TR_OK;
    }
    tr__spans_clear(spans);
    tr__text_clear(kinds);
    tr_status status = tr__pattern_cut(&w->step->pattern, w->from,
                                       (tr_text_span){0, w->bytes}, spans, kinds, err);
    for (size_t i = 0; i < spans->count && status == TR_OK && !w->to->failed; i++) {
        tr_text_span span = spans->span[i];
        if (kinds->bytes[i]) {
            tr__text_add(w->to, w->step->content.bytes, w->step->content.count);
        } else {
            tr__text_add(w->to, w->from + span.begin, span.end - span.begin);
        }
    }
    return status;
}

static void bert_clean(const work *w) {
    size_t kept = 0, length;
    const uint32_t *flags = w->unicode->flags;
    for (size_t at = 0; at < w->bytes; at += length) {
        uint32_t c = tr__utf8_read(w->from + at, &length);
        if (c != ' ' && flags[c] & (TR_BERT_CONTROL | TR_BERT_SPACE)) {
            tr__text_add(w->to, w->from + kept, at - kept);
            if (!(flags[c] & TR_BERT_CONTROL)) {
                tr__text_put(w->to, ' ');
            }
            kept = at + length;
        }
    }
    tr__text_add(w->to, w->from + kept, w->bytes - kept);
}

// The blocks that `tokenizers` calls Chinese.
static bool is_chinese(uint32_t c) {
    static const uint32_t ranges[][2] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    for (size_t i = 0; c >= 0x3400 && i < sizeof ranges / sizeof *ranges; i++) {
        if (c >= ranges[i][0] && c <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

static void bert_chinese(const work *w) {
    size_t kept = 0, length;
    for (size_t at = 0; at < w->bytes; at += length) {
        uint32_t c = tr__utf8_read(w->from + at, &length);
        if (is_chinese(c)) {
            tr__text_add(w->to, w->from + kept, at - kept);
            tr__text_put(w->to, ' ');
            tr__text_put(w->to, c);
            tr__text_put(w->to, ' ');
            kept = at + length;
        }
    }
    tr__text_add(w->to, w->from + kept, w->bytes - kept);
}

static void bert_accents(const work *w) {
    tr_text decomposed = {0};
    tr__normalize(w->unicode, (tr_form){0}, w->from, w->bytes, &decomposed);
    drop(w, decomposed.bytes, decomposed.count, TR_BERT_MARK);
    w->to->failed |= decomposed.failed;
    tr__text_release(&decomposed);
}

static bool is_ascii(const unsigned char *text, size_t bytes) {
    unsigned char all = 0;
    for (size_t i = 0; i < bytes; i++) {
        all |= text[i];
    }
    return all < 0x80;
}

// Steps that change nothing in ASCII.
static bool keeps_ascii(tr_normalizer_kind kind) {
    return kind == TR_NORMALIZE_FORM || kind == TR_NORMALIZE_STRIP_ACCENTS ||
           kind == TR_NORMALIZE_BERT_ACCENTS || kind == TR_NORMALIZE_BERT_CHINESE;
}

static tr_status run_step(const work *w, tr_error *err) {
    switch (w->step->kind) {
    case TR_NORMALIZE_FORM:
        tr__normalize(w->unicode, w->step->form, w->from, w->bytes, w->to);
        return TR_OK;
    case TR_NORMALIZE_LOWERCASE:
        lowercase(w);
        return TR_OK;
    case TR_NORMALIZE_STRIP_ACCENTS:
        drop(w, w->from, w->bytes, TR_ACCENT);
        return TR_OK;
    case TR_NORMALIZE_STRIP:
        strip(w);
        return TR_OK;
    case TR_NORMALIZE_PREPEND:
        prepend(w);
        return TR_OK;
    case TR_NORMALIZE_REPLACE:
        return replace(w, err);
    case TR_NORMALIZE_BERT_CLEAN:
        bert_clean(w);
        return TR_OK;
    case TR_NORMALIZE_BERT_CHINESE:
        bert_chinese(w);
        return TR_OK;
    case TR_NORMALIZE_BERT_ACCENTS:
        bert_accents(w);
        return TR_OK;
    }
    return TR_OK;
}

static const char *name_of(const tr_normalizer_step *step) {
    switch (step->kind) {
    case TR_NORMALIZE_FORM:
        return step->form.compatibility ? step->form.compose ? "NFKC" : "NFKD"
               : step->form.compose     ? "NFC"
                                        : "NFD";
    case TR_NORMALIZE_LOWERCASE:
        return "Lowercase";
    case TR_NORMALIZE_STRIP_ACCENTS:
        return "StripAccents";
    case TR_NORMALIZE_STRIP:
        return "Strip";
    case TR_NORMALIZE_PREPEND:
        return "Prepend";
    case TR_NORMALIZE_REPLACE:
        return "Replace";
    case TR_NORMALIZE_BERT_CLEAN:
    case TR_NORMALIZE_BERT_CHINESE:
    case TR_NORMALIZE_BERT_ACCENTS:
        break;
    }
    return "BertNormalizer";
}

static tr_status fail_step(const tr_normalizer *normalizer, const work *w, size_t bytes,
                           tr_error *err) {
    if (!w->to->over) {
        return tr_fail(err, TR_MEMORY, "no memory to normalize a text");
    }
    return tr_fail(err, TR_DATA,
                   "the tokenizer's normalizer %zu of %zu (%s) makes more than %zu "
                   "bytes of a text of %zu; at most %d for each byte and %d KiB are "
                   "allowed, of long texts fewer",
                   (size_t)(w->step - normalizer->step) + 1, normalizer->count,
                   name_of(w->step), tr__text_growth(bytes), bytes, TR_GROWTH,
                   TR_GROWTH_FREE >> 10);
}

tr_status tr__normalizer_run(const tr_normalizer *normalizer, tr_normalized *normalized,
                             const unsigned char *text, size_t bytes, bool continues,
                             const unsigned char **out, size_t *out_bytes,
                             tr_error *err) {
    work w = {.unicode = normalizer->unicode,
              .from = text,
              .bytes = bytes,
              .scratch = normalized,
              .continues = continues};
    for (size_t i = 0; i < normalizer->count; i++) {
        w.step = &normalizer->step[i];
        if (keeps_ascii(w.step->kind) && is_ascii(w.from, w.bytes)) {
            continue;
        }
        w.to = &normalized->text[w.from == normalized->text[0].bytes];
        tr__text_clear(w.to);
        w.to->limit = tr__text_growth(bytes);
        tr_status status = run_step(&w, err);
        if (status == TR_OK && w.to->failed) {
            status = fail_step(normalizer, &w, bytes, err);
        }
        if (status != TR_OK) {
            return status;
        }
        w.from = w.to->bytes;
        w.bytes = w.to->count;
    }
    *out = w.from;
    *out_bytes = w.bytes;
    return TR_OK;
}
