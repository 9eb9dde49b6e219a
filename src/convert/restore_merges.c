// The merges of a tokenizer in a GGUF file: listed, or made of SentencePiece's scores.
#include "base/memory.h"
#include "convert/restore.h"
#include "text/unicode/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES_MAX = 1024 };

static json_t *no_memory(tr_error *err) {
    tr_fail(err, TR_MEMORY, "no memory for merges");
    return NULL;
}

// ---- listed

// "a b", of two tokens and of what they make.
static bool is_merge(const tr_restorer *r, const char *text, size_t bytes) {
    char joined[2 * PIECE_BYTES_MAX];
    const char *blank = bytes > 1 ? memchr(text + 1, ' ', bytes - 1) : NULL;
    if (!blank || bytes >= sizeof joined || memchr(text, 0, bytes)) {
        return false;
    }
    size_t first = (size_t)(blank - text), second = bytes - first - 1;
    memcpy(joined, text, first);
    joined[first] = '\0';
    bool good = json_object_get(r->vocabulary, joined) &&
                json_object_get(r->vocabulary, blank + 1);
    memcpy(joined + first, blank + 1, second + 1);
    return good && !strchr(joined, ' ') && json_object_get(r->vocabulary, joined);
}

static json_t *copy_merges(const tr_restorer *r, tr_error *err) {
    static const char key[] = "tokenizer.ggml.merges";
    const tr_gguf_value *value = tr__gguf_find(r->gguf, key);
    json_t *list = json_array();
    if (!value || !value->array || value->kind != TR_GGUF_TEXT) {
        tr_fail(err, TR_IO, "%s: the metadata must have a list of texts %s", r->path,
                key);
        json_decref(list);
        return NULL;
    }
    for (int64_t i = 0; i < value->count && list; i++) {
        size_t bytes = 0;
        const char *text = tr__gguf_text(value, i, &bytes);
        if (!is_merge(r, text, bytes)) {
            tr_fail(err, TR_IO,
                    "%s: merge %lld of %s is not of two tokens that make a third",
                    r->path, (long long)i, key);
            json_decref(list);
            return NULL;
        }
        if (json_array_append_new(list, json_stringn(text, bytes)) != 0) {
            json_decref(list);
            return no_memory(err);
        }
    }
    return list ? list : no_memory(err);
}

// ---- of scores

// The token `id` cut in two at byte `cut`.
typedef struct halves {
    float score;
    int32_t id, cut;
} halves;

typedef struct halves_list {
    halves *at;
    size_t count, capacity;
} halves_list;

// The highest score first: that is the pair that SentencePiece joins first.
static int by_score(const void *a, const void *b) {
    const halves *x = a, *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
                          : (x->cut > y->cut) - (x->cut < y->cut);
}

static bool is_piece(const tr_restorer *r, int64_t id) {
    return r->token[id].text && r->token[id].type == TR_GGUF_NORMAL;
}

static bool is_piece_named(const tr_restorer *r, const char *text) {
    const json_t *id = json_object_get(r->vocabulary, text);
    return id && is_piece(r, (int64_t)json_integer_value(id));
}

static bool add_halves(const tr_restorer *r, int64_t id, halves_list *list) {
    const tr_listed_token *one = &r->token[id];
    char first[PIECE_BYTES_MAX + 1];
    for (size_t cut = 1; cut < one->bytes; cut++) {
        if (tr__utf8_continues((unsigned char)one->text[cut])) {
            continue;
        }
        memcpy(first, one->text, cut);
        first[cut] = '\0';
        if (!is_piece_named(r, first) || !is_piece_named(r, one->text + cut)) {
            continue;
        }
        if (!tr__grow((void **)&list->at, &list->capacity, list->count + 1,
                      sizeof *list->at)) {
            return false;
        }
        list->at[list->count++] = (halves){one->score, (int32_t)id, (int32_t)cut};
    }
    return true;
}

static json_t *merge_json(const tr_restorer *r, const halves *h) {
    const tr_listed_token *one = &r->token[h->id];
    json_t *pair = json_array();
    bool good =
        pair &&
        json_array_append_new(pair, json_stringn(one->text, (size_t)h->cut)) == 0 &&
        json_array_append_new(pair, json_string(one->text + h->cut)) == 0;
    if (!good) {
        json_decref(pair);
        return NULL;
    }
    return pair;
}

static json_t *list_halves(const tr_restorer *r, const halves_list *all) {
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; i < all->count && good; i++) {
        good = json_array_append_new(list, merge_json(r, &all->at[i])) == 0;
    }
    if (!good) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *make_merges(const tr_restorer *r, tr_error *err) {
    halves_list all = {0};
    bool good = true;
    for (int64_t id = 0; id < r->count && good; id++) {
        if (is_piece(r, id) && r->token[id].bytes > PIECE_BYTES_MAX) {
            tr_fail(err, TR_IO, "%s: token %lld has over %d bytes", r->path,
                    (long long)id, PIECE_BYTES_MAX);
            tr__free(all.at);
            return NULL;
        }
        good = !is_piece(r, id) || add_halves(r, id, &all);
    }
    if (all.count > 0) {
        qsort(all.at, all.count, sizeof *all.at, by_score);
    }
    json_t *list = good ? list_halves(r, &all) : NULL;
    tr__free(all.at);
    return list ? list : no_memory(err);
}

json_t *tr__restore_merges(const tr_restorer *r, tr_error *err) {
    return r->bytes ? copy_merges(r, err) : make_merges(r, err);
}
