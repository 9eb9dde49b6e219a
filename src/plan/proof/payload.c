// A rule says which bytes a step has to read and write; the executor does what the
// step's payload names. Both must be the same bytes.
#include "base/memory.h"
#include "plan/proof/proof.h"

#include <stdlib.h>

static int compare(const void *a_, const void *b_) {
    const tr_bytes *a = a_, *b = b_;
    int64_t by = a->buffer != b->buffer ? a->buffer - b->buffer
                 : a->first != b->first ? a->first - b->first
                                        : a->end - b->end;
    return (by > 0) - (by < 0);
}

// Sorts the ranges, and makes one of those that overlap or adjoin.
static void join(tr_byte_list *list) {
    size_t count = 0;
    if (list->count == 0) {
        return;
    }
    qsort(list->items, list->count, sizeof *list->items, compare);
    for (size_t i = 1; i < list->count; i++) {
        tr_bytes *last = &list->items[count], *next = &list->items[i];
        if (next->buffer == last->buffer && next->first <= last->end) {
            last->end = next->end > last->end ? next->end : last->end;
        } else {
            list->items[++count] = *next;
        }
    }
    list->count = count + 1;
}

static void add(tr_proof *p, tr_byte_list *list, tr_bytes bytes) {
    if (bytes.buffer < 0 || bytes.first >= bytes.end) {
        return;
    }
    if (!tr__grow((void **)&list->items, &list->capacity, list->count + 1,
                  sizeof *list->items)) {
        tr__proof_no_memory(p);
        return;
    }
    list->items[list->count++] = bytes;
}

void tr__payload_begin(tr_proof *p) {
    p->touched[0].count = p->touched[1].count = 0;
}

void tr__payload_touch(tr_proof *p, tr_bytes bytes, bool writes) {
    add(p, &p->touched[writes], bytes);
}

// The range of a joined list in which the bytes lie; NULL: in none.
static const tr_bytes *find_around(const tr_byte_list *list, tr_bytes bytes) {
    size_t first = 0, end = list->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const tr_bytes *at = &list->items[middle];
        if (at->buffer == bytes.buffer && at->first <= bytes.first &&
            bytes.end <= at->end) {
            return at;
        }
        bool before = compare(at, &bytes) < 0;
        first = before ? middle + 1 : first;
        end = before ? end : middle;
    }
    return NULL;
}

static void expect_within(tr_proof *p, const tr_byte_list *some,
                          const tr_byte_list *within, const char *fault) {
    for (size_t i = 0; i < some->count && p->status == TR_OK; i++) {
        tr_bytes bytes = some->items[i];
        if (!find_around(within, bytes)) {
            tr__proof_wrong(p, "%s bytes %lld to %lld of buffer %d", fault,
                            (long long)bytes.first, (long long)bytes.end,
                            (int)bytes.buffer);
        }
    }
}

// It may read more than it has to, as what lies between two tensors, but write nothing
// else. (What units' programs access follows from their operands.)
void tr__payload_check(tr_proof *p) {
    tr_byte_list all = {0}, written = {0};
    const tr_payload *payload = &p->step->payload;
    if (tr__step_program(p->plan, p->step, p->kind) || p->stopped) {
        return;
    }
    for (size_t i = 0; i < payload->operand_count && p->status == TR_OK; i++) {
        const tr_step_operand *operand = tr__step_operand(p->plan, p->step, i);
        tr_bytes bytes = {operand->buffer, operand->first, operand->end};
        add(p, &all, bytes);
        if (operand->mode != TR_ACCESS_READ) {
            add(p, &written, bytes);
        }
    }
    join(&all);
    join(&written);
    join(&p->touched[1]);
    expect_within(p, &p->touched[0], &all, "does not read");
    expect_within(p, &p->touched[1], &written, "does not write");
    expect_within(p, &written, &p->touched[1], "has no business writing");
    tr__free(all.items);
    tr__free(written.items);
}
