// Where a text can be cut so that its parts, encoded each by itself, have the ids of
// the whole: between a letter and a blank, if every step of the tokenizer allows it.
#include "text/tokenizer/tokenizer.h"

// The changes to the text know no neighbours over the cut.
static bool normalizer_allows(const tr_normalizer *n, bool *changes_letters) {
    for (size_t i = 0; i < n->count; i++) {
        const tr_normalizer_step *step = &n->step[i];
        const tr_pattern *pattern = &step->pattern;
        switch (step->kind) {
        case TR_NORMALIZE_STRIP:
            return false;
        case TR_NORMALIZE_REPLACE:
            if (!pattern->literal || step->content.count == 0 ||
                (memchr(pattern->literal, ' ', pattern->literal_bytes) &&
                 pattern->literal_bytes > 1)) {
                return false;
            }
            break;
        case TR_NORMALIZE_PREPEND:
        case TR_NORMALIZE_FORM:
            break;
        default:
            *changes_letters = true;
        }
    }
    return true;
}

// An added token must not span the cut, nor take the blank behind it.
static bool added_allows(const tr_tokenizer *t) {
    for (size_t i = 0; i < t->added.count; i++) {
        const tr_added_token *token = &t->added.token[i];
        size_t bytes = 0, blanks = 0;
        const char *text = tr_tokenizer_token(t, token->id, &bytes);
        for (size_t k = 0; k < bytes; k++) {
            blanks += text[k] == ' ' || text[k] == '\n';
        }
        bool only_blanks = blanks == bytes && bytes > 1;
        if (token->rstrip || (blanks > 0 && !only_blanks)) {
            return false;
        }
    }
    return true;
}

// Does the step cut at every blank behind a letter, whatever else it does?
static bool cuts_at_blanks(const tr_cut_step *step) {
    if (step->kind == TR_CUT_PATTERN) {
        const tr_pattern *p = &step->pattern;
        bool metaspace = p->literal && step->behavior == TR_CUT_MERGED_WITH_NEXT;
        bool known = p->matcher && p->matcher != tr__pattern_known("\\p{N}") &&
                     p->matcher != tr__pattern_known("\\p{N}{1,3}") &&
                     step->behavior == TR_CUT_ISOLATED;
        return metaspace || known;
    }
    return step->kind == TR_CUT_WORDS ||
           (step->kind == TR_CUT_CLASS && step->flags & TR_SPACE);
}

static bool step_allows(const tr_cut_step *step) {
    return step->kind != TR_CUT_PATTERN || step->pattern.matcher ||
           cuts_at_blanks(step);
}

// What a blank has become when the model gets it.
static uint32_t blank_of(const tr_tokenizer *t) {
    uint32_t blank = ' ';
    size_t length;
    for (size_t i = 0; i < t->normalizer.count; i++) {
        const tr_normalizer_step *step = &t->normalizer.step[i];
        if (step->kind == TR_NORMALIZE_REPLACE && step->pattern.literal_bytes == 1 &&
            *step->pattern.literal == ' ') {
            blank = tr__utf8_read(step->content.bytes, &length);
        }
    }
    for (size_t i = 0; i < t->pretokenizer.count; i++) {
        const tr_cut_step *step = &t->pretokenizer.step[i];
        if (step->kind == TR_CUT_METASPACE && blank == ' ') {
            blank = tr__utf8_read(step->mark, &length);
        }
    }
    return blank;
}

void tr__tokenizer_find_cuts(tr_tokenizer *t) {
    const tr_pretokenizer *p = &t->pretokenizer;
    bool cuts = false, changes_letters = false, prefixes = false, maps = false;
    if (!normalizer_allows(&t->normalizer, &changes_letters) || !added_allows(t)) {
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (!step_allows(&p->step[i])) {
            return;
        }
        cuts |= cuts_at_blanks(&p->step[i]);
        maps |= p->step[i].kind == TR_CUT_BYTE_LEVEL;
        prefixes |= p->step[i].kind == TR_CUT_METASPACE ||
                    p->step[i].kind == TR_CUT_BYTE_PREFIX;
    }
    if (!cuts) { // the model alone decides
        bool merges =
            t->model == TR_TOKENS_BPE && t->cuts_pieces && !t->bpe.ignore_merges;
        if (!merges || changes_letters || maps) {
            return;
        }
        t->blank = blank_of(t);
    }
    t->cuts_text = true;
    t->cuts_lines = cuts && !prefixes;
}

// The letter that ends before `at`; 0: something else does.
static uint32_t letter_before(const tr_tokenizer *t, const unsigned char *text,
                              size_t at) {
    size_t begin = at - 1, length;
    while (begin > 0 && at - begin < TR_UTF8_MAX && tr__utf8_continues(text[begin])) {
        begin--;
    }
    if (tr__utf8_valid(text + begin, at - begin) < at - begin) {
        return 0;
    }
    uint32_t c = tr__utf8_read(text + begin, &length);
    return t->unicode.flags[c] & TR_LETTER ? c : 0;
}

// at: from 1 to the last byte.
static bool is_cut(const tr_tokenizer *t, const unsigned char *text, size_t at) {
    if (text[at] != ' ' && !(t->cuts_lines && text[at] == '\n')) {
        return false;
    }
    uint32_t letter = letter_before(t, text, at);
    return letter && !(t->blank && tr__joins_has(&t->bpe.joins, letter, t->blank));
}

size_t tr__tokenizer_cut(const tr_tokenizer *t, const unsigned char *text, size_t bytes,
                         size_t from) {
    for (size_t at = from; t->cuts_text && at < bytes; at++) {
        if (is_cut(t, text, at)) {
            return at;
        }
    }
    return bytes;
}

size_t tr__tokenizer_last_cut(const tr_tokenizer *t, const unsigned char *text,
                              size_t bytes) {
    for (size_t at = bytes; t->cuts_text && at-- > 1;) {
        if (is_cut(t, text, at)) {
            return at;
        }
    }
    return 0;
}
