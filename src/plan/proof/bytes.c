// What bytes mean: each buffer is a row of cells without gaps, a cell being bytes of
// one meaning. Steps that are done at once leave no trace but what they mean; of those
// that go on beside, a cell keeps who has read and written it last.
#include "plan/proof/proof.h"

#include "base/memory.h"

#include <string.h>

enum { WORDS = 256 };

static bool is_usable(tr_proof *p, tr_bytes bytes) {
    if (p->status != TR_OK || bytes.first >= bytes.end) {
        return false;
    }
    if (bytes.buffer < 0 || bytes.buffer >= (int64_t)p->plan->buffer_count) {
        tr__proof_wrong(p, "accesses buffer %d, which is not there", (int)bytes.buffer);
        return false;
    }
    const tr_buffer *b = &p->plan->buffers[bytes.buffer];
    if (bytes.first < 0 || bytes.end > b->bytes) {
        tr__proof_wrong(p, "accesses bytes [%lld, %lld) of buffer %d, which has %lld",
                        (long long)bytes.first, (long long)bytes.end, (int)bytes.buffer,
                        (long long)b->bytes);
        return false;
    }
    return true;
}

// The cell that holds byte `at`.
static size_t find(const tr_contents *held, int64_t at) {
    size_t low = 0, high = held->count - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (held->cells[middle].first <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

// A cell begins at byte `at` from now on: which; or the count of them, at the end.
static size_t cut(tr_proof *p, tr_contents *held, int64_t at) {
    if (at == held->cells[held->count - 1].end) {
        return held->count;
    }
    size_t i = find(held, at);
    if (held->cells[i].first == at) {
        return i;
    }
    if (!tr__grow((void **)&held->cells, &held->capacity, held->count + 1,
                  sizeof *held->cells)) {
        tr__proof_no_memory(p);
        return 0;
    }
    memmove(held->cells + i + 1, held->cells + i,
            (held->count - i) * sizeof *held->cells);
    held->count++;
    held->cells[i].end = held->cells[i + 1].first = at;
    return i + 1;
}

static int writer_stream(const tr_proof *p, const tr_cell *cell) {
    const tr_sequence *sequence = &p->plan->sequences[p->kind];
    return cell->writer < 0 ? -1
                            : tr__clock_stream(p, sequence->steps[cell->writer].stream);
}

// Writers of one stream are done one after the other: the later one stands for both.
static bool is_mergeable(const tr_proof *p, const tr_cell *a, const tr_cell *b) {
    bool both = (a->writer < 0) == (b->writer < 0);
    return both && writer_stream(p, a) == writer_stream(p, b) &&
           tr__meaning_equal(&a->means, &b->means) &&
           memcmp(a->reader, b->reader, sizeof a->reader) == 0;
}

// Cell i and the one before it become one, where they are alike.
static void merge(const tr_proof *p, tr_contents *held, size_t i) {
    if (i == 0 || i >= held->count) {
        return;
    }
    tr_cell *a = &held->cells[i - 1], *b = &held->cells[i];
    if (is_mergeable(p, a, b)) {
        a->end = b->end;
        a->writer = a->writer > b->writer ? a->writer : b->writer;
        memmove(b, b + 1, (held->count - i - 1) * sizeof *b);
        held->count--;
    }
}

// ---- races

// Those that an interruption leaves out do not wait either: what is not in order then
// is not what it should be.
static void say_race(tr_proof *p, int32_t buffer, int32_t other, const char *does,
                     const char *did) {
    if (p->stopped) {
        p->spoilt = p->spoilt_zeros = true;
        return;
    }
    tr__proof_wrong(p,
                    "%s buffer %d while step %d may still be %s it: it has to wait "
                    "for that step",
                    does, (int)buffer, (int)other, did);
}

static void check_order(tr_proof *p, int32_t buffer, const tr_cell *cell, bool writes) {
    int stream = writer_stream(p, cell);
    if (stream >= 0 && !tr__clock_is_before(p, stream, cell->writer)) {
        say_race(p, buffer, cell->writer, writes ? "writes" : "reads", "writing");
    }
    for (int s = 0; s < p->beside && writes; s++) {
        if (!tr__clock_is_before(p, s, cell->reader[s])) {
            say_race(p, buffer, cell->reader[s], "writes", "reading");
        }
    }
}

static void note_touch(const tr_proof *p, tr_contents *held) {
    int stream = tr__clock_stream(p, p->step->stream);
    if (stream >= 0) {
        held->last[stream] = p->index;
    }
}

// ---- reading

static void say_mismatch(tr_proof *p, tr_bytes bytes, const tr_cell *cell,
                         const tr_meaning *want) {
    char needs[WORDS], finds[WORDS];
    if (p->stopped) {
        *(want->kind == TR_MEANS_ZEROS ? &p->spoilt_zeros : &p->spoilt) = true;
        return;
    }
    tr__meaning_words(p->plan, want, p->version, needs, sizeof needs);
    tr__meaning_words(p->plan, &cell->means, p->version, finds, sizeof finds);
    bool elsewhere = want->base != cell->means.base;
    tr__proof_wrong(p, "needs %s in buffer %d from byte %lld on, and finds %s%s", needs,
                    (int)bytes.buffer, (long long)bytes.first, finds,
                    elsewhere ? " that lie elsewhere in it" : "");
}

static void expect_cells(tr_proof *p, tr_bytes bytes, const tr_contents *held, size_t i,
                         const tr_meaning *want, bool writes) {
    for (; i < held->count && held->cells[i].first < bytes.end; i++) {
        check_order(p, bytes.buffer, &held->cells[i], writes);
        if (want && p->status == TR_OK &&
            !tr__meaning_equal(&held->cells[i].means, want)) {
            say_mismatch(p, bytes, &held->cells[i], want);
            return;
        }
    }
}

static bool is_gone(tr_proof *p, tr_bytes bytes) {
    const tr_contents *held = &p->held[bytes.buffer];
    bool passing = p->plan->buffers[bytes.buffer].sequence >= 0;
    if (passing && held->walk != p->walk) {
        tr__proof_wrong(p, "accesses buffer %d without naming it", (int)bytes.buffer);
        return true;
    }
    if (passing && held->gone) {
        tr__proof_wrong(p, "accesses buffer %d, whose memory another buffer has taken",
                        (int)bytes.buffer);
        return true;
    }
    return false;
}

void tr__bytes_read(tr_proof *p, tr_bytes bytes, const tr_meaning *want) {
    if (!is_usable(p, bytes) || is_gone(p, bytes)) {
        return;
    }
    tr_contents *held = &p->held[bytes.buffer];
    int stream = tr__clock_stream(p, p->step->stream);
    tr__payload_touch(p, bytes, false);
    if (stream < 0) { // what issues steps is done with it when the next one begins
        expect_cells(p, bytes, held, find(held, bytes.first), want, false);
        return;
    }
    cut(p, held, bytes.end);
    size_t i = cut(p, held, bytes.first);
    note_touch(p, held);
    expect_cells(p, bytes, held, i, want, false);
    for (; i < held->count && held->cells[i].first < bytes.end; i++) {
        held->cells[i].reader[stream] = p->index;
    }
}

void tr__bytes_expect(tr_proof *p, tr_bytes bytes, const tr_meaning *want) {
    const tr_cell *other = NULL;
    if (!is_usable(p, bytes) || is_gone(p, bytes)) {
        return;
    }
    const tr_contents *held = &p->held[bytes.buffer];
    for (size_t i = find(held, bytes.first);
         !other && i < held->count && held->cells[i].first < bytes.end; i++) {
        other = tr__meaning_equal(&held->cells[i].means, want) ? NULL : &held->cells[i];
    }
    if (other) {
        say_mismatch(p, bytes, other, want);
    }
}

void tr__bytes_look(tr_proof *p, tr_bytes bytes, tr_meaning *found) {
    *found = (tr_meaning){0};
    if (is_usable(p, bytes)) {
        const tr_contents *held = &p->held[bytes.buffer];
        *found = held->count > 0 ? held->cells[find(held, bytes.first)].means
                                 : (tr_meaning){0};
    }
}

// ---- writing

// [first, last) of the cells become one that means `leave`.
static void replace(tr_proof *p, tr_contents *held, size_t first, size_t end,
                    const tr_meaning *leave) {
    tr_cell *to = &held->cells[first];
    to->end = held->cells[end - 1].end;
    to->means = *leave;
    to->writer = p->index;
    memset(to->reader, -1, sizeof to->reader);
    memmove(to + 1, &held->cells[end], (held->count - end) * sizeof *to);
    held->count -= end - first - 1;
    merge(p, held, first + 1);
    merge(p, held, first);
}

// Has this walk already left the same there?
static bool is_done_already(const tr_contents *held, size_t i, int64_t end,
                            const tr_meaning *leave) {
    bool same = leave->kind != TR_MEANS_SCRATCH && leave->kind != TR_MEANS_ZEROS;
    for (; same && i < held->count && held->cells[i].first < end; i++) {
        same = held->cells[i].writer >= 0 &&
               tr__meaning_equal(&held->cells[i].means, leave);
    }
    return same;
}

static void write(tr_proof *p, tr_bytes bytes, const tr_meaning *want,
                  const tr_meaning *leave) {
    static const tr_meaning dropped = {.kind = TR_MEANS_DROPPED};
    if (!is_usable(p, bytes) || is_gone(p, bytes)) {
        return;
    }
    tr_contents *held = &p->held[bytes.buffer];
    size_t end = cut(p, held, bytes.end), first = cut(p, held, bytes.first);
    if (p->status != TR_OK) {
        return;
    }
    while (end < held->count && held->cells[end].first < bytes.end) {
        end++;
    }
    note_touch(p, held);
    tr__payload_touch(p, bytes, true);
    if (want) {
        tr__payload_touch(p, bytes, false);
    }
    expect_cells(p, bytes, held, first, want, true);
    if (!want && !p->stopped && is_done_already(held, first, bytes.end, leave)) {
        tr__proof_wrong(p, "does again what step %d has done",
                        (int)held->cells[first].writer);
    }
    p->spoilt = p->spoilt || held->shared;
    bool spoilt = leave->kind == TR_MEANS_ZEROS ? p->spoilt_zeros : p->spoilt;
    if (p->status == TR_OK) {
        replace(p, held, first, end, spoilt ? &dropped : leave);
    }
}

void tr__bytes_write(tr_proof *p, tr_bytes bytes, const tr_meaning *leave) {
    write(p, bytes, NULL, leave);
}

void tr__bytes_change(tr_proof *p, tr_bytes bytes, const tr_meaning *want,
                      const tr_meaning *leave) {
    write(p, bytes, want, leave);
}

void tr__bytes_work(tr_proof *p, tr_bytes bytes) {
    static const tr_meaning scratch = {.kind = TR_MEANS_SCRATCH};
    write(p, bytes, NULL, &scratch);
}

void tr__bytes_forget(tr_proof *p, tr_bytes bytes) {
    if (!is_usable(p, bytes) || is_gone(p, bytes)) {
        return;
    }
    tr_contents *held = &p->held[bytes.buffer];
    cut(p, held, bytes.end);
    size_t i = cut(p, held, bytes.first);
    for (; p->status == TR_OK && i < held->count && held->cells[i].first < bytes.end;
         i++) {
        held->cells[i].means = (tr_meaning){0};
    }
}

void tr__bytes_copy(tr_proof *p, tr_bytes from, tr_bytes to) {
    int64_t by = to.first - from.first;
    if (!is_usable(p, from) || !is_usable(p, to) || is_gone(p, from)) {
        return;
    }
    tr__bytes_read(p, from, NULL);
    while (from.first < from.end && p->status == TR_OK) { // one cell after the other
        const tr_contents *held = &p->held[from.buffer];
        const tr_cell *cell = &held->cells[find(held, from.first)];
        tr_meaning means = cell->means;
        int64_t end = cell->end < from.end ? cell->end : from.end;
        if (means.kind == TR_MEANS_NOTHING && !p->stopped) {
            tr__proof_wrong(p, "moves bytes of buffer %d that nobody has written",
                            (int)from.buffer);
            return;
        }
        means.base += means.kind == TR_MEANS_ZEROS ? 0 : by;
        tr__bytes_write(p, (tr_bytes){to.buffer, from.first + by, end + by}, &means);
        from.first = end;
    }
}

// ---- between walks

void tr__bytes_set(tr_proof *p, tr_bytes bytes, const tr_meaning *means) {
    if (!is_usable(p, bytes)) {
        return;
    }
    tr_contents *held = &p->held[bytes.buffer];
    size_t end = cut(p, held, bytes.end), first = cut(p, held, bytes.first);
    while (p->status == TR_OK && end < held->count &&
           held->cells[end].first < bytes.end) {
        end++;
    }
    if (p->status == TR_OK) {
        replace(p, held, first, end, means);
        held->cells[find(held, bytes.first)].writer = -1;
    }
}

bool tr__bytes_mean(const tr_proof *p, tr_bytes bytes, const tr_meaning *want) {
    if (bytes.first >= bytes.end) {
        return true;
    }
    const tr_contents *held = &p->held[bytes.buffer];
    bool same = bytes.end <= p->plan->buffers[bytes.buffer].bytes;
    for (size_t i = find(held, bytes.first);
         same && i < held->count && held->cells[i].first < bytes.end; i++) {
        same = tr__meaning_equal(&held->cells[i].means, want);
    }
    return same;
}
