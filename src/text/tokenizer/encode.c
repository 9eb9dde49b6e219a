#include "text/tokenizer/tokenizer.h"

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for token ids");
}

tr_status tr_encoder_create(const tr_tokenizer *tokenizer, tr_encoder **out,
                            tr_error *err) {
    tr_encoder *e = tr__calloc(1, sizeof *e);
    if (e) {
        e->tokenizer = tokenizer;
        e->cache = tr__calloc((size_t)1 << TR_CACHE_BITS, sizeof *e->cache);
    }
    if (!e || !e->cache) {
        tr_encoder_destroy(e);
        return tr_fail(err, TR_MEMORY, "no memory for an encoder");
    }
    *out = e;
    return TR_OK;
}

void tr_encoder_destroy(tr_encoder *e) {
    if (!e) {
        return;
    }
    tr__free(e->cache);
    tr__merger_release(&e->merger);
    tr__normalized_release(&e->normalized);
    tr__words_release(&e->words);
    tr__text_release(&e->repaired);
    tr__free(e);
}

// The id of a word that is a token as a whole; -1: it is none.
static int32_t find_whole(const tr_bpe *bpe, const unsigned char *word, size_t bytes) {
    return tr__vocabulary_find(bpe->bytes ? &bpe->raw : bpe->vocabulary, word, bytes);
}

// By the model, without the memory of words.
static bool make_word(tr_encoder *e, const unsigned char *word, size_t bytes,
                      tr_token_ids *ids) {
    const tr_tokenizer *t = e->tokenizer;
    if (t->model == TR_TOKENS_WORDPIECE) {
        return tr__wordpiece_word(&t->wordpiece, word, bytes, ids);
    }
    int32_t whole = t->bpe.ignore_merges ? find_whole(&t->bpe, word, bytes) : -1;
    return whole >= 0 ? tr__ids_add(ids, &whole, 1)
                      : tr__bpe_word(&t->bpe, &e->merger, word, bytes, ids);
}

static void keep(tr_cache_entry *entry, const tr_cache_key *key, size_t bytes,
                 const int32_t *id, size_t count) {
    if (count <= TR_CACHE_IDS) {
        entry->key = *key;
        entry->bytes = (uint8_t)bytes;
        entry->count = (uint8_t)count;
        memcpy(entry->id, id, count * sizeof *id);
    }
}

// A word of up to TR_CACHE_WORD bytes.
static inline bool short_word(tr_encoder *e, const unsigned char *word, size_t bytes,
                              tr_token_ids *ids) {
    tr_cache_key key = tr__cache_key(word, bytes);
    tr_cache_entry *entry = &e->cache[tr__cache_place(&key, bytes)];
    if (!tr__ids_reserve(ids, TR_CACHE_IDS)) {
        return false;
    }
    if (tr__cache_holds(entry, &key, bytes)) {
        memcpy(ids->id + ids->count, entry->id, sizeof entry->id);
        ids->count += entry->count;
        return true;
    }
    size_t before = ids->count;
    if (!make_word(e, word, bytes, ids)) {
        return false;
    }
    keep(entry, &key, bytes, ids->id + before, ids->count - before);
    return true;
}

static bool long_word(tr_encoder *e, const unsigned char *word, size_t bytes,
                      tr_token_ids *ids) {
    const tr_tokenizer *t = e->tokenizer;
    if (!t->cuts_pieces) {
        return make_word(e, word, bytes, ids);
    }
    if (t->bpe.ignore_merges) {
        int32_t whole = find_whole(&t->bpe, word, bytes);
        if (whole >= 0) {
            return tr__ids_add(ids, &whole, 1);
        }
    }
    bool done = true;
    for (size_t at = 0; at < bytes && done;) {
        size_t step = t->bpe.bytes ? 1 : tr__utf8_length(word[at]);
        size_t end = tr__bpe_cut(&t->bpe, word, bytes, at + step);
        // A part is no word: it must not be taken for a token as a whole.
        done = end - at <= TR_CACHE_WORD && !t->bpe.ignore_merges
                   ? short_word(e, word + at, end - at, ids)
                   : tr__bpe_word(&t->bpe, &e->merger, word + at, end - at, ids);
        at = end;
    }
    return done;
}

// Text between added tokens, normalized.
static tr_status encode_plain(tr_encoder *e, const unsigned char *text, size_t bytes,
                              bool first, tr_token_ids *ids, tr_error *err) {
    tr_words *words = &e->words;
    tr_status status = tr__pretokenizer_run(&e->tokenizer->pretokenizer, words, text,
                                            bytes, first, err);
    if (status != TR_OK) {
        return status;
    }
    const unsigned char *from = words->text;
    for (size_t i = 0; i < words->spans.count; i++) {
        tr_text_span word = words->spans.span[i];
        size_t length = word.end - word.begin;
        bool done = length <= TR_CACHE_WORD
                        ? short_word(e, from + word.begin, length, ids)
                        : long_word(e, from + word.begin, length, ids);
        if (!done) {
            return no_memory(err);
        }
    }
    return TR_OK;
}

static tr_status add_token(tr_token_ids *ids, int32_t id, tr_error *err) {
    return tr__ids_add(ids, &id, 1) ? TR_OK : no_memory(err);
}

// Where a piece stands: at the begin of the whole text, at that of a later part of it,
// or behind an added token.
typedef enum place { BEGINS, GOES_ON, INSIDE } place;

static tr_added_walk walk_added(const tr_tokenizer *t, const tr_added_set *set,
                                const unsigned char *text, size_t bytes,
                                bool specials) {
    return (tr_added_walk){.added = &t->added,
                           .set = set,
                           .flags = t->unicode.flags,
                           .text = text,
                           .bytes = bytes,
                           .specials = specials};
}

// Text between added tokens that are sought in the text as it is.
static tr_status encode_raw(tr_encoder *e, const unsigned char *text, size_t bytes,
                            place where, bool specials, tr_token_ids *ids,
                            tr_error *err) {
    const tr_tokenizer *t = e->tokenizer;
    tr_text_piece piece;
    tr_status status = tr__normalizer_run(&t->normalizer, &e->normalized, text, bytes,
                                          where == GOES_ON, &text, &bytes, err);
    tr_added_walk walk = walk_added(t, &t->added.normalized, text, bytes, specials);
    while (status == TR_OK && tr__added_next(&walk, &piece)) {
        status = piece.id >= 0
                     ? add_token(ids, piece.id, err)
                     : encode_plain(e, text + piece.begin, piece.end - piece.begin,
                                    where == BEGINS && piece.begin == 0, ids, err);
    }
    return status;
}

tr_status tr__encode_part(tr_encoder *e, const unsigned char *text, size_t bytes,
                          bool begins, bool specials, tr_token_ids *ids,
                          tr_error *err) {
    const tr_tokenizer *t = e->tokenizer;
    tr_status status = TR_OK;
    tr_text_piece piece;
    if (tr__utf8_valid(text, bytes) < bytes) {
        tr__text_clear(&e->repaired);
        tr__text_repair(&e->repaired, text, bytes);
        text = e->repaired.bytes;
        bytes = e->repaired.count;
        status = e->repaired.failed ? no_memory(err) : TR_OK;
    }
    tr_added_walk walk = walk_added(t, &t->added.raw, text, bytes, specials);
    while (status == TR_OK && tr__added_next(&walk, &piece)) {
        place where = piece.begin > 0 ? INSIDE : begins ? BEGINS : GOES_ON;
        status = piece.id >= 0
                     ? add_token(ids, piece.id, err)
                     : encode_raw(e, text + piece.begin, piece.end - piece.begin, where,
                                  specials, ids, err);
    }
    return status;
}
