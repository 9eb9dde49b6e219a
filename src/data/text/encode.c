#include "data/text/encode.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

enum {
    BUFFER = 8 << 20,  // bytes of text in memory, where it can be cut
    BLOCKS_MAX = 4096, // documents that are encoded together, at most
};

// The text on its way. Positions in the buffer count from `at`, a place of the text.
typedef struct reader {
    tr_encode *encode;
    char *buffer;                // [capacity]
    size_t from, have, capacity; // bytes [from, have) are still to be encoded
    int64_t at, total;
    size_t file;     // that holds buffer[from]
    bool inside;     // its document has begun before
    tr_block *block; // [BLOCKS_MAX]
    size_t count;
} reader;

// ---- reading

// More text behind what is left. stuck: what is there is not enough.
static tr_status fill(reader *r, bool stuck, tr_error *err) {
    bool whole = r->from == 0 && r->have == r->capacity;
    if (r->capacity == 0 || (stuck && whole)) {
        size_t wanted = r->capacity == 0 ? BUFFER : r->capacity + 1; // it doubles
        if (!tr__grow((void **)&r->buffer, &r->capacity, wanted, 1)) {
            return tr_fail(err, TR_MEMORY, "no memory for %zu bytes of text", wanted);
        }
    }
    if (!stuck && r->have - r->from >= r->capacity / 2) {
        return TR_OK;
    }
    memmove(r->buffer, r->buffer + r->from, r->have - r->from);
    r->at += (int64_t)r->from;
    r->have -= r->from;
    r->from = 0;
    int64_t left = r->total - r->at - (int64_t)r->have;
    int64_t count = tr__min_i64(left, (int64_t)(r->capacity - r->have));
    tr_status status = tr__joined_read(r->encode->text, r->at + (int64_t)r->have, count,
                                       r->buffer + r->have, err);
    r->have += (size_t)count;
    return status;
}

// ---- documents

// A document's text in the buffer: up to `end`; what follows it begins at `next`.
typedef struct stretch {
    size_t end, next;
    bool ends;
} stretch;

// Of the document that goes on at `begin`. What may be the begin of a separator is left
// out while the rest of it is not there.
static stretch find_end(const reader *r, size_t begin) {
    const tr_encode *e = r->encode;
    int64_t limit = e->joined ? r->total : e->text->start[r->file + 1];
    bool complete = limit - r->at <= (int64_t)r->have;
    size_t stop = complete ? (size_t)(limit - r->at) : r->have;
    size_t bytes = e->separator ? strlen(e->separator) : 0;
    const char *found =
        bytes > 0 ? memmem(r->buffer + begin, stop - begin, e->separator, bytes) : NULL;
    if (found) {
        size_t end = (size_t)(found - r->buffer);
        return (stretch){end, end + bytes, true};
    }
    size_t open = complete || bytes == 0 ? 0 : bytes - 1;
    size_t end = stop - begin > open ? stop - open : begin;
    return (stretch){end, end, complete};
}

static void enter_file(reader *r, size_t position) {
    const tr_joined *text = r->encode->text;
    while (r->file + 1 < text->files.count &&
           text->start[r->file + 1] - r->at <= (int64_t)position) {
        r->file++;
    }
}

// The next blocks of the buffer, up to one that does not end.
static tr_status find_blocks(reader *r, tr_error *err) {
    tr_encode *e = r->encode;
    bool goes_on = true;
    int64_t before = e->documents;
    r->count = 0;
    size_t at = r->from;
    while (at < r->have && r->count < BLOCKS_MAX && goes_on) {
        enter_file(r, at);
        stretch s = find_end(r, at);
        bool begins = !r->inside;
        if (s.end > at) {
            if (begins && before > 0 && !e->between) {
                return tr_fail(err, TR_USAGE,
                               "data.eos_token: the data are several documents, and "
                               "nothing beside the tokenizer says which token ends "
                               "one; name it (\"<|endoftext|>\" in GPT-2's)");
            }
            r->block[r->count++] = (tr_block){r->buffer + at, s.end - at, begins,
                                              s.ends, before > 0 ? e->between : NULL};
            before += begins;
        }
        goes_on = s.ends;
        if (s.ends) {
            at = r->from = s.next;
            r->inside = false;
        }
    }
    return TR_OK;
}

// ---- encoding

// What the blocks have come to: `used` bytes of the last one have ids.
static void advance(reader *r, size_t used) {
    size_t whole = 0;
    for (size_t i = 0; i < r->count; i++) {
        whole += r->block[i].begins && r->block[i].ends;
    }
    const tr_block *last = r->count > 0 ? &r->block[r->count - 1] : NULL;
    bool open = last && !last->ends;
    r->encode->documents += (int64_t)whole + (open && last->begins && used > 0);
    if (open) {
        r->from = (size_t)(last->text - r->buffer) + used;
        r->inside = used > 0 || !last->begins;
    }
}

static tr_status encode_blocks(reader *r, tr_token_ids *ids, tr_error *err) {
    tr_encode *e = r->encode;
    size_t used = 0;
    ids->count = 0;
    if (r->count == 0) {
        return TR_OK;
    }
    tr_status status =
        tr__text_stream_encode(&e->stream, r->block, r->count, ids, &used, err);
    if (status == TR_OK) {
        advance(r, used);
        status = e->take(e->user, ids, r->at + (int64_t)r->from, err);
    }
    return status;
}

static tr_status encode_all(reader *r, tr_token_ids *ids, tr_error *err) {
    bool stuck = true;
    tr_status status = TR_OK;
    while (status == TR_OK && r->at + (int64_t)r->from < r->total) {
        int64_t before = r->at + (int64_t)r->from;
        status = fill(r, stuck, err);
        if (status == TR_OK) {
            status = find_blocks(r, err);
        }
        if (status == TR_OK) {
            status = encode_blocks(r, ids, err);
        }
        stuck = r->at + (int64_t)r->from == before;
    }
    return status;
}

tr_status tr__encode_files(tr_encode *encode, tr_error *err) {
    tr_token_ids ids = {0};
    reader r = {.encode = encode, .total = tr__joined_count(encode->text)};
    r.block = tr__calloc(BLOCKS_MAX, sizeof *r.block);
    encode->documents = 0;
    tr_status status = r.block ? encode_all(&r, &ids, err)
                               : tr_fail(err, TR_MEMORY, "no memory to tokenize text");
    tr__text_stream_release(&encode->stream);
    tr_token_ids_release(&ids);
    tr__free(r.buffer);
    tr__free(r.block);
    return status;
}

// ---- ids in files

int tr__ids_width(int64_t vocabulary) {
    return vocabulary <= 1 << 16 ? 2 : 4;
}

size_t tr__ids_pack(tr_token_ids *ids, int width) {
    unsigned char *to = (unsigned char *)ids->id;
    for (size_t i = 0; width == 2 && i < ids->count; i++) {
        uint16_t id = (uint16_t)ids->id[i];
        memcpy(to + i * sizeof id, &id, sizeof id);
    }
    return ids->count * (size_t)width;
}
