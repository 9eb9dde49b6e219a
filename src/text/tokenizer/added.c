#include "text/tokenizer/added.h"

// A found token and what it takes of the blanks beside it.
typedef struct match {
    size_t begin, end, stop; // stop: where the search goes on
    int32_t id;
} match;

static bool is_word_before(const tr_added_walk *w, size_t at) {
    return at > 0 && w->flags[tr__utf8_before(w->text + at)] & TR_WORD;
}

static bool is_word_at(const tr_added_walk *w, size_t at) {
    size_t length;
    return at < w->bytes && w->flags[tr__utf8_read(w->text + at, &length)] & TR_WORD;
}

static size_t blanks_before(const tr_added_walk *w, size_t at, size_t least) {
    while (at > least && w->flags[tr__utf8_before(w->text + at)] & TR_SPACE) {
        do {
            at--;
        } while (tr__utf8_continues(w->text[at]));
    }
    return at;
}

static size_t blanks_behind(const tr_added_walk *w, size_t at) {
    size_t length;
    while (at < w->bytes && w->flags[tr__utf8_read(w->text + at, &length)] & TR_SPACE) {
        at += length;
    }
    return at;
}

// Does the token at [begin, end) count there?
static bool take(const tr_added_walk *w, const tr_added_token *token, size_t begin,
                 size_t end, match *found) {
    if (token->special && !w->specials) {
        return false;
    }
    if (token->single_word && (is_word_before(w, begin) || is_word_at(w, end))) {
        return false;
    }
    found->id = token->id;
    found->stop = end;
    found->begin = token->lstrip ? blanks_before(w, begin, w->done) : begin;
    found->end = token->rstrip ? blanks_behind(w, end) : end;
    return true;
}

static bool find(tr_added_walk *w, match *found) {
    size_t at = w->searched, length = 0;
    while (w->set->any && at < w->bytes) {
        if (!w->set->begins[w->text[at]]) {
            at++;
            continue;
        }
        int32_t place =
            tr__trie_longest(&w->set->trie, 0, w->text + at, w->bytes - at, &length);
        if (place < 0) {
            at++;
        } else if (take(w, &w->added->token[place], at, at + length, found)) {
            return true;
        } else {
            at += length;
        }
    }
    return false;
}

bool tr__added_next(tr_added_walk *w, tr_text_piece *piece) {
    match found;
    if (w->has_pending) {
        *piece = w->pending;
        w->has_pending = false;
        return true;
    }
    if (!find(w, &found)) {
        *piece = (tr_text_piece){w->done, w->bytes, -1};
        w->searched = w->done = w->bytes;
        return piece->begin < piece->end;
    }
    size_t from = w->done;
    w->searched = found.stop;
    w->done = found.end;
    *piece = (tr_text_piece){found.begin, found.end, found.id};
    if (from < found.begin) {
        w->pending = *piece;
        w->has_pending = true;
        *piece = (tr_text_piece){from, found.begin, -1};
    }
    return true;
}
