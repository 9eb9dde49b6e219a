#include "text/tokenizer/pretokenizer.h"

#include "text/tokenizer/byte_level.h"

void tr__words_release(tr_words *words) {
    tr__spans_release(&words->spans);
    tr__spans_release(&words->next);
    tr__spans_release(&words->cut);
    tr__text_release(&words->kinds);
    tr__text_release(&words->buffer[0]);
    tr__text_release(&words->buffer[1]);
}

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to cut a text into words");
}

// Cuts a piece into runs by a class: each character of it is a match of its own.
static void cut_class(const tr_pretokenizer *p, const tr_cut_step *step, tr_words *w,
                      tr_text_span piece) {
    const uint32_t *flags = p->unicode->flags;
    size_t from = piece.begin, length;
    for (size_t at = from; at < piece.end; at += length) {
        if (flags[tr__utf8_read(w->text + at, &length)] & step->flags) {
            tr__cut_add(&w->cut, &w->kinds, from, at, false);
            tr__cut_add(&w->cut, &w->kinds, at, at + length, true);
            from = at + length;
        }
    }
    tr__cut_add(&w->cut, &w->kinds, from, piece.end, false);
}

// \w+|[^\w\s]+ : runs of letters and runs of signs; blanks go.
static void cut_words(const tr_pretokenizer *p, tr_words *w, tr_text_span piece) {
    const uint32_t *flags = p->unicode->flags;
    size_t from = piece.begin, length;
    int last = -1;
    for (size_t at = from; at < piece.end; at += length) {
        uint32_t found = flags[tr__utf8_read(w->text + at, &length)];
        int kind = found & TR_WORD ? 0 : found & TR_SPACE ? 2 : 1;
        if (kind != last && last >= 0) {
            if (last != 2) {
                tr__spans_add(&w->next, from, at);
            }
            from = at;
        }
        last = kind;
    }
    if (last != 2) {
        tr__spans_add(&w->next, from, piece.end);
    }
}

// Joins neighbours: each match to what is before it, unless that is one as well.
static void merge_with_previous(tr_words *w, const unsigned char *match) {
    bool before = false;
    size_t begin = 0, end = 0; // of the piece that grows
    for (size_t i = 0; i < w->cut.count; i++) {
        tr_text_span span = w->cut.span[i];
        if (match[i] && !before && end > begin) {
            end = span.end;
        } else {
            tr__spans_add(&w->next, begin, end);
            begin = span.begin;
            end = span.end;
        }
        before = match[i];
    }
    tr__spans_add(&w->next, begin, end);
}

// Each match to what is behind it, unless that is one as well. `tokenizers` goes from
// the end: of several matches in a row only the last one joins.
static void merge_with_next(tr_words *w, const unsigned char *match) {
    for (size_t i = 0; i < w->cut.count; i++) {
        tr_text_span span = w->cut.span[i];
        if (match[i] && i + 1 < w->cut.count && !match[i + 1]) {
            span.end = w->cut.span[++i].end;
        }
        tr__spans_add(&w->next, span.begin, span.end);
    }
}

static void merge_contiguous(tr_words *w, const unsigned char *match) {
    for (size_t i = 0; i < w->cut.count;) {
        size_t begin = w->cut.span[i].begin, first = i;
        while (i < w->cut.count && match[i] == match[first]) {
            i++;
        }
        tr__spans_add(&w->next, begin, w->cut.span[i - 1].end);
    }
}

// From matches and what lies between them to pieces.
static void behave(const tr_cut_step *step, tr_words *w) {
    unsigned char *match = w->kinds.bytes;
    for (size_t i = 0; step->invert && i < w->cut.count; i++) {
        match[i] = !match[i];
    }
    switch (step->behavior) {
    case TR_CUT_MERGED_WITH_PREVIOUS:
        merge_with_previous(w, match);
        return;
    case TR_CUT_MERGED_WITH_NEXT:
        merge_with_next(w, match);
        return;
    case TR_CUT_CONTIGUOUS:
        merge_contiguous(w, match);
        return;
    case TR_CUT_REMOVED:
    case TR_CUT_ISOLATED:
        for (size_t i = 0; i < w->cut.count; i++) {
            if (step->behavior == TR_CUT_ISOLATED || !match[i]) {
                tr__spans_add(&w->next, w->cut.span[i].begin, w->cut.span[i].end);
            }
        }
    }
}

// The way of nearly all models: every match is a piece, and so is what lies between.
static void cut_isolated(const tr_pretokenizer *p, const tr_cut_step *step, tr_words *w,
                         tr_text_span piece) {
    const uint32_t *flags = p->unicode->flags;
    const unsigned char *text = w->text;
    size_t from = piece.begin, at = from;
    while (at < piece.end) {
        size_t end = step->pattern.matcher(flags, text, at, piece.end);
        if (end == at) {
            at += tr__utf8_length(text[at]);
            continue;
        }
        tr__spans_add(&w->next, from, at);
        tr__spans_add(&w->next, at, end);
        from = at = end;
    }
    tr__spans_add(&w->next, from, piece.end);
}

static tr_status cut_piece(const tr_pretokenizer *p, const tr_cut_step *step,
                           tr_words *w, tr_text_span piece, tr_error *err) {
    if (step->kind == TR_CUT_WORDS) {
        cut_words(p, w, piece);
        return TR_OK;
    }
    if (step->kind == TR_CUT_PATTERN && step->pattern.matcher &&
        step->behavior == TR_CUT_ISOLATED) {
        cut_isolated(p, step, w, piece);
        return TR_OK;
    }
    tr__spans_clear(&w->cut);
    tr__text_clear(&w->kinds);
    if (step->kind == TR_CUT_CLASS) {
        cut_class(p, step, w, piece);
        if (w->cut.failed || w->kinds.failed) {
            return no_memory(err);
        }
    } else {
        tr_status status =
            tr__pattern_cut(&step->pattern, w->text, piece, &w->cut, &w->kinds, err);
        if (status != TR_OK) {
            return status;
        }
    }
    behave(step, w);
    return TR_OK;
}

static bool begins_with(const unsigned char *text, tr_text_span piece,
                        const unsigned char *mark, size_t bytes) {
    return piece.end - piece.begin >= bytes &&
           memcmp(text + piece.begin, mark, bytes) == 0;
}

static void write_metaspace(const tr_cut_step *step, const unsigned char *text,
                            tr_text_span piece, bool first, tr_text *to) {
    const unsigned char *at = text + piece.begin, *end = text + piece.end, *blank;
    bool has = *at == ' ' || begins_with(text, piece, step->mark, step->mark_bytes);
    if (!has && (step->prepend == TR_PREPEND_ALWAYS ||
                 (step->prepend == TR_PREPEND_FIRST && first))) {
        tr__text_add(to, step->mark, step->mark_bytes);
    }
    while (at < end && (blank = memchr(at, ' ', (size_t)(end - at))) != NULL) {
        tr__text_add(to, at, (size_t)(blank - at));
        tr__text_add(to, step->mark, step->mark_bytes);
        at = blank + 1;
    }
    tr__text_add(to, at, (size_t)(end - at));
}

static void write_byte_level(const unsigned char *text, tr_text_span piece,
                             tr_text *to) {
    for (size_t i = piece.begin; i < piece.end; i++) {
        tr__text_put(to, tr__byte_level_character(text[i]));
    }
}

// Steps that write the text anew.
static void rewrite(const tr_cut_step *step, tr_words *w, bool first, size_t limit) {
    tr_text *to = &w->buffer[w->text == w->buffer[0].bytes];
    tr__text_clear(to);
    to->limit = limit;
    for (size_t i = 0; i < w->spans.count && !to->failed; i++) {
        tr_text_span piece = w->spans.span[i];
        size_t begin = to->count;
        if (step->kind == TR_CUT_METASPACE) {
            write_metaspace(step, w->text, piece, first && piece.begin == 0, to);
        } else if (step->kind == TR_CUT_BYTE_LEVEL) {
            write_byte_level(w->text, piece, to);
        } else {
            tr__text_add(to, " ", w->text[piece.begin] != ' ');
            tr__text_add(to, w->text + piece.begin, piece.end - piece.begin);
        }
        tr__spans_add(&w->next, begin, to->count);
    }
    w->text = to->bytes;
}

static bool rewrites(tr_cut_kind kind) {
    return kind == TR_CUT_METASPACE || kind == TR_CUT_BYTE_LEVEL ||
           kind == TR_CUT_BYTE_PREFIX;
}

static tr_status fail_growth(const tr_pretokenizer *p, size_t step, size_t bytes,
                             tr_error *err) {
    return tr_fail(err, TR_DATA,
                   "the tokenizer's pre-tokenizer %zu of %zu (%s) makes more than %zu "
                   "bytes of a text of %zu; at most %d for each byte and %d KiB are "
                   "allowed, of long texts fewer",
                   step + 1, p->count,
                   p->step[step].kind == TR_CUT_METASPACE ? "Metaspace" : "ByteLevel",
                   tr__text_growth(bytes), bytes, TR_GROWTH, TR_GROWTH_FREE >> 10);
}

tr_status tr__pretokenizer_run(const tr_pretokenizer *p, tr_words *w,
                               const unsigned char *text, size_t bytes, bool first,
                               tr_error *err) {
    w->text = text;
    tr__spans_clear(&w->spans);
    tr__spans_add(&w->spans, 0, bytes);
    tr_status status = w->spans.failed ? no_memory(err) : TR_OK;
    for (size_t s = 0; s < p->count && status == TR_OK; s++) {
        const tr_cut_step *step = &p->step[s];
        tr__spans_clear(&w->next);
        if (rewrites(step->kind)) {
            rewrite(step, w, first, tr__text_growth(bytes));
        } else {
            for (size_t i = 0; i < w->spans.count && status == TR_OK; i++) {
                status = cut_piece(p, step, w, w->spans.span[i], err);
            }
        }
        tr_text_spans cut = w->next;
        w->next = w->spans;
        w->spans = cut;
        if (status == TR_OK &&
            (w->spans.failed || w->buffer[0].failed || w->buffer[1].failed)) {
            status = w->buffer[0].over || w->buffer[1].over
                         ? fail_growth(p, s, bytes, err)
                         : no_memory(err);
        }
    }
    return status;
}
