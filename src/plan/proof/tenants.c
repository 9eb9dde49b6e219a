// Who has which memory. A buffer that lives always has its bytes for itself. Passing
// buffers lie behind those; each has its bytes from the first step that names it until
// a step names another one that lies there, and has them never again in this walk.
#include "plan/proof/proof.h"
#include "plan/units/offsets.h"

#include "base/memory.h"
#include "plan/flow/residency.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

static bool is_passing(const tr_buffer *buffer, int kind, int space) {
    return buffer->sequence == kind && (int)buffer->space == space && buffer->bytes > 0;
}

// ---- the map from bytes to buffers: borders, at some of which a tenancy begins

static bool begins(const tr_tenants *t, size_t at) {
    return t->begins[at / WORD] >> (at % WORD) & 1;
}

static void set_begin(tr_tenants *t, size_t at, int32_t buffer) {
    t->begins[at / WORD] |= UINT64_C(1) << (at % WORD);
    t->at[at] = buffer;
}

// The last tenancy that begins at this border or before it. The first border has one.
static size_t last_begin(const tr_tenants *t, size_t at) {
    size_t word = at / WORD;
    uint64_t bits = t->begins[word] & (~UINT64_C(0) >> (WORD - 1 - at % WORD));
    while (bits == 0) {
        bits = t->begins[--word];
    }
    return word * WORD + (size_t)(WORD - 1 - __builtin_clzll(bits));
}

// The next one that begins behind this border, `end` at most.
static size_t next_begin(const tr_tenants *t, size_t at, size_t end) {
    for (at++; at < end && at % WORD != 0; at++) {
        if (begins(t, at)) {
            return at;
        }
    }
    while (at < end && t->begins[at / WORD] == 0) {
        at += WORD;
    }
    if (at >= end) {
        return end;
    }
    at += (size_t)__builtin_ctzll(t->begins[at / WORD]);
    return at < end ? at : end;
}

// A tenancy may begin here: what goes on goes on.
static void split(tr_tenants *t, size_t at) {
    if (!begins(t, at)) {
        set_begin(t, at, t->at[last_begin(t, at)]);
    }
}

static size_t find_border(const tr_tenants *t, int64_t offset) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->border[middle] < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// ---- making and clearing

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void find_borders(const tr_plan *plan, int kind, int space, tr_tenants *t) {
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        if (is_passing(b, kind, space)) {
            t->border[count++] = b->offset;
            t->border[count++] = b->offset + b->bytes;
        }
    }
    qsort(t->border, count, sizeof *t->border, ascending);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || t->border[i] != t->border[kept - 1]) {
            t->border[kept++] = t->border[i];
        }
    }
    t->count = kept;
}

static bool make(const tr_plan *plan, int kind, int space, tr_tenants *t) {
    size_t count = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        count += is_passing(&plan->buffers[i], kind, space);
    }
    t->border = tr__calloc(2 * count + 1, sizeof *t->border);
    t->at = tr__calloc(2 * count + 1, sizeof *t->at);
    t->begins = tr__calloc(2 * count / WORD + 1, sizeof *t->begins);
    if (!t->border || !t->at || !t->begins) {
        return false;
    }
    find_borders(plan, kind, space, t);
    return true;
}

tr_status tr__tenants_make(tr_proof *p) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        for (int space = 0; space < TR_SPACES; space++) {
            if (!make(p->plan, kind, space, &p->tenants[kind][space])) {
                return tr_fail(p->err, TR_MEMORY, "no memory to prove the plan");
            }
        }
    }
    return TR_OK;
}

void tr__tenants_clear(tr_proof *p) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        for (int space = 0; space < TR_SPACES; space++) {
            tr__free(p->tenants[kind][space].border);
            tr__free(p->tenants[kind][space].at);
            tr__free(p->tenants[kind][space].begins);
        }
    }
}

void tr__tenants_reset(tr_proof *p) {
    for (int space = 0; space < TR_SPACES; space++) {
        tr_tenants *t = &p->tenants[p->kind][space];
        memset(t->begins, 0, (t->count / WORD + 1) * sizeof *t->begins);
        set_begin(t, 0, -1);
    }
}

// ---- naming

// Nobody is at work on the memory any more. (Some of it may have gone before.)
static void take_from(tr_proof *p, int32_t buffer, int32_t other) {
    tr_contents *held = other < 0 ? NULL : &p->held[other];
    if (!held || other == buffer) {
        return;
    }
    held->gone = true;
    for (int s = 0; s < p->beside; s++) {
        bool before = tr__clock_is_before(p, s, held->last[s]);
        if (!before && p->stopped) {
            p->held[buffer].shared = true;
        } else if (!before) {
            tr__proof_wrong(p,
                            "takes the memory of buffer %d for buffer %d while step %d "
                            "may be at work on it: it has to wait for that step",
                            (int)other, (int)buffer, (int)held->last[s]);
        }
    }
}

static void settle_in(tr_proof *p, int32_t buffer) {
    const tr_buffer *b = &p->plan->buffers[buffer];
    tr_tenants *t = &p->tenants[p->kind][b->space];
    size_t first = find_border(t, b->offset);
    size_t end = find_border(t, b->offset + b->bytes);
    split(t, end);
    split(t, first);
    for (size_t at = first; at < end; at = next_begin(t, at, end)) {
        take_from(p, buffer, t->at[at]);
        t->begins[at / WORD] &= ~(UINT64_C(1) << (at % WORD));
    }
    set_begin(t, first, buffer);
}

static void begin_life(tr_proof *p, int32_t buffer) {
    tr_contents *held = &p->held[buffer];
    if (!tr__grow((void **)&held->cells, &held->capacity, 1, sizeof *held->cells)) {
        tr__proof_no_memory(p);
        return;
    }
    held->count = 1;
    held->cells[0] = (tr_cell){.end = p->plan->buffers[buffer].bytes, .writer = -1};
    memset(held->cells[0].reader, -1, sizeof held->cells[0].reader);
    held->walk = p->walk;
    held->gone = held->shared = false;
    memset(held->last, -1, sizeof held->last);
    settle_in(p, buffer);
}

void tr__tenants_name(tr_proof *p, int32_t buffer) {
    if (buffer < 0 || buffer >= (int64_t)p->plan->buffer_count) {
        tr__proof_wrong(p, "names buffer %d, which is not there", (int)buffer);
        return;
    }
    const tr_buffer *b = &p->plan->buffers[buffer];
    if (b->sequence >= 0 && b->sequence != (int)p->kind) {
        tr__proof_wrong(p, "names buffer %d of another sequence", (int)buffer);
    } else if (b->sequence >= 0 && p->held[buffer].walk != p->walk && b->bytes > 0) {
        begin_life(p, buffer);
    }
}

// ---- what lives always

static tr_status check_place(const tr_plan *plan, size_t i, tr_error *err) {
    const tr_buffer *b = &plan->buffers[i];
    int64_t total = plan->arena_bytes[b->space];
    bool file = b->space == TR_SPACE_NVME; // read and written in whole blocks
    int64_t unit = file ? TR_NVME_ALIGNMENT : TR_ALIGNMENT;
    if (b->offset < 0 || b->bytes < 0 || b->offset > total - b->bytes) {
        return tr_fail(err, TR_INTERNAL,
                       "plan: buffer %zu [%lld, +%lld) lies outside of the %s arena of "
                       "%lld bytes",
                       i, (long long)b->offset, (long long)b->bytes,
                       tr_space_name(b->space), (long long)total);
    }
    return b->offset % unit == 0 && (!file || b->bytes % unit == 0)
               ? TR_OK
               : tr_fail(err, TR_INTERNAL,
                         "plan: buffer %zu at %lld is not aligned to %lld bytes", i,
                         (long long)b->offset, (long long)unit);
}

// One that lives always, by where it lies.
typedef struct place {
    int space;
    int64_t first, end;
    size_t buffer;
} place;

static int by_place(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->space != b->space) {
        return a->space - b->space;
    }
    return a->first < b->first ? -1 : a->first > b->first;
}

static size_t find_kept(const tr_plan *plan, place *kept) {
    size_t count = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        if (b->sequence < 0 && b->bytes > 0) {
            kept[count++] = (place){(int)b->space, b->offset, b->offset + b->bytes, i};
        }
    }
    qsort(kept, count, sizeof *kept, by_place);
    return count;
}

static tr_status check_apart(const tr_plan *plan, const place *kept, size_t count,
                             tr_error *err) {
    int64_t end[TR_SPACES] = {0};
    for (size_t i = 0; i < count; i++) {
        if (kept[i].first < end[kept[i].space]) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: buffers %zu and %zu live always, and overlap",
                           kept[i - 1].buffer, kept[i].buffer);
        }
        end[kept[i].space] = kept[i].end;
    }
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        if (b->sequence >= 0 && b->bytes > 0 && b->offset < end[b->space]) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: buffer %zu lies where others live always", i);
        }
    }
    return TR_OK;
}

void tr__tenants_check_kept(tr_proof *p) {
    const tr_plan *plan = p->plan;
    place *kept = tr__calloc(plan->buffer_count, sizeof *kept);
    if (!kept) {
        tr__proof_no_memory(p);
        return;
    }
    for (size_t i = 0; i < plan->buffer_count && p->status == TR_OK; i++) {
        p->status = check_place(plan, i, p->err);
    }
    if (p->status == TR_OK) { // so that their ends can be added up
        p->status = check_apart(plan, kept, find_kept(plan, kept), p->err);
    }
    tr__free(kept);
}
