#include "data/text/pack.h"

#include "base/memory.h"

#include <stdbool.h>

// Rows by the room that is left in them, the one that has had it for longest first.
// `head`, `tail` and `next` are queues of rows; a bit of `some` says that one is not
// empty.
typedef struct packer {
    const int32_t *length;
    int64_t count, room, rows;
    int64_t *order; // [count] documents, the longest first
    int64_t *row;   // [count] of each document
    int64_t *head;  // [room + 1], -1: none
    int64_t *tail;  // [room + 1]
    int64_t *next;  // [count] of each row
    uint64_t *some; // [room / 64 + 1]
} packer;

static void end(packer *p) {
    tr__free(p->order);
    tr__free(p->row);
    tr__free(p->head);
    tr__free(p->tail);
    tr__free(p->next);
    tr__free(p->some);
}

static bool begin(packer *p) {
    p->order = tr__calloc((size_t)p->count + 1, sizeof *p->order);
    p->row = tr__calloc((size_t)p->count + 1, sizeof *p->row);
    p->head = tr__calloc((size_t)p->room + 1, sizeof *p->head);
    p->tail = tr__calloc((size_t)p->room + 1, sizeof *p->tail);
    p->next = tr__calloc((size_t)p->count + 1, sizeof *p->next);
    p->some = tr__calloc((size_t)p->room / 64 + 1, sizeof *p->some);
    return p->order && p->row && p->head && p->tail && p->next && p->some;
}

// By counting; documents of one length keep their order. Uses `head`.
static void sort_documents(packer *p) {
    int64_t *begin_of = p->head, sum = 0;
    for (int64_t d = 0; d < p->count; d++) {
        begin_of[p->length[d]]++;
    }
    for (int64_t length = p->room; length >= 0; length--) {
        int64_t here = begin_of[length];
        begin_of[length] = sum;
        sum += here;
    }
    for (int64_t d = 0; d < p->count; d++) {
        p->order[begin_of[p->length[d]]++] = d;
    }
    for (int64_t left = 0; left <= p->room; left++) {
        p->head[left] = -1;
    }
}

// The least room, of at least `length`, that some row has left; -1: none has.
static int64_t find_room(const packer *p, int64_t length) {
    int64_t last = p->room / 64;
    uint64_t bits = p->some[length / 64] >> (length % 64) << (length % 64);
    for (int64_t word = length / 64; word <= last; bits = p->some[++word]) {
        if (bits) {
            return word * 64 + __builtin_ctzll(bits);
        }
        if (word == last) {
            break;
        }
    }
    return -1;
}

static int64_t take_row(packer *p, int64_t left) {
    int64_t row = p->head[left];
    p->head[left] = p->next[row];
    if (p->head[left] < 0) {
        p->some[left / 64] &= ~(UINT64_C(1) << (left % 64));
    }
    return row;
}

static void give_row(packer *p, int64_t row, int64_t left) {
    p->next[row] = -1;
    if (p->head[left] < 0) {
        p->head[left] = row;
    } else {
        p->next[p->tail[left]] = row;
    }
    p->tail[left] = row;
    p->some[left / 64] |= UINT64_C(1) << (left % 64);
}

static void place_documents(packer *p) {
    for (int64_t i = 0; i < p->count; i++) {
        int64_t d = p->order[i], left = find_room(p, p->length[d]);
        int64_t row = left < 0 ? p->rows++ : take_row(p, left);
        give_row(p, row, (left < 0 ? p->room : left) - p->length[d]);
        p->row[d] = row;
    }
}

// Numbers the rows anew, by their first documents. Uses `order` and `next`.
static void number_rows(packer *p) {
    int64_t *number = p->next, seen = 0;
    for (int64_t row = 0; row < p->rows; row++) {
        number[row] = -1;
    }
    for (int64_t d = 0; d < p->count; d++) {
        int64_t row = p->row[d];
        if (number[row] < 0) {
            number[row] = seen++;
        }
        p->row[d] = number[row];
    }
}

static void list_rows(const packer *p, tr_packing *out) {
    for (int64_t d = 0; d < p->count; d++) {
        out->first[p->row[d] + 1]++;
    }
    for (int64_t row = 0; row < p->rows; row++) {
        out->first[row + 1] += out->first[row];
        p->next[row] = out->first[row];
    }
    for (int64_t d = 0; d < p->count; d++) {
        out->document[p->next[p->row[d]]++] = d;
    }
}

tr_status tr__pack(const int32_t *length, int64_t count, int64_t room, tr_packing *out,
                   tr_error *err) {
    packer p = {.length = length, .count = count, .room = room};
    *out = (tr_packing){0};
    bool good = begin(&p);
    if (good) {
        sort_documents(&p);
        place_documents(&p);
        number_rows(&p);
        out->rows = p.rows;
        out->first = tr__calloc((size_t)p.rows + 1, sizeof *out->first);
        out->document = tr__calloc((size_t)count + 1, sizeof *out->document);
        good = out->first && out->document;
    }
    if (good) {
        list_rows(&p, out);
    }
    end(&p);
    if (!good) {
        tr__packing_free(out);
        return tr_fail(err, TR_MEMORY, "no memory to pack %lld documents",
                       (long long)count);
    }
    return TR_OK;
}

void tr__packing_free(tr_packing *packing) {
    tr__free(packing->first);
    tr__free(packing->document);
    *packing = (tr_packing){0};
}
