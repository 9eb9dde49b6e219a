#include "plan/offsets.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

// No sum of two sizes below the limit overflows.
static const int64_t limit = INT64_C(1) << 60;

// A buffer that has its place: bytes [offset, end) in the steps [first, last].
typedef struct placed {
    int64_t offset, end;
    int32_t first, last;
} placed;

// What placing needs besides the items.
typedef struct layout {
    tr_interval **order; // [count]
    placed *placed;      // [count] sorted by offset
    size_t used;
} layout;

static int64_t room(const tr_interval *item) {
    return tr__round_up(item->bytes, TR_ALIGNMENT);
}

static int by_address(const tr_interval *x, const tr_interval *y) {
    return x < y ? -1 : x > y; // the order given: the same plan every time
}

static int by_start(const void *a, const void *b) {
    const tr_interval *x = *(tr_interval *const *)a, *y = *(tr_interval *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_address(x, y);
}

static int by_size(const void *a, const void *b) {
    const tr_interval *x = *(tr_interval *const *)a, *y = *(tr_interval *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : by_start(a, b);
}

static int by_length(const void *a, const void *b) {
    const tr_interval *x = *(tr_interval *const *)a, *y = *(tr_interval *const *)b;
    int32_t long_x = x->last - x->first, long_y = y->last - y->first;
    return long_x != long_y ? (long_x < long_y ? 1 : -1) : by_size(a, b);
}

// The lowest offset at which `item` overlaps none of the placed that live with it.
static int64_t lowest_gap(const layout *l, const tr_interval *item) {
    int64_t offset = 0, bytes = room(item);
    for (size_t i = 0; i < l->used; i++) {
        const placed *other = &l->placed[i];
        bool together = (other->last >= item->first) & (other->first <= item->last);
        if (together & (other->offset >= offset + bytes)) {
            break;
        }
        offset = together & (other->end > offset) ? other->end : offset;
    }
    return offset;
}

static void insert(layout *l, placed item) {
    size_t low = 0, high = l->used;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (l->placed[middle].offset <= item.offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(l->placed + low + 1, l->placed + low, (l->used - low) * sizeof item);
    l->placed[low] = item;
    l->used++;
}

// Places order[0..count) one after the other; -1 when that takes too much room.
static int64_t place_in_order(layout *l, tr_interval *const *order, size_t count) {
    int64_t total = 0;
    l->used = 0;
    for (size_t i = 0; i < count; i++) {
        tr_interval *item = order[i];
        item->offset = lowest_gap(l, item);
        placed now = {item->offset, item->offset + room(item), item->first, item->last};
        if (now.end > limit) {
            return -1;
        }
        insert(l, now);
        total = tr__max_i64(total, now.end);
    }
    return total;
}

static int by_end(const void *a, const void *b) {
    const placed *x = a, *y = b;
    return x->last < y->last ? -1 : x->last > y->last;
}

// The most that lives at one step; no layout takes less. `order` is sorted by start;
// `ends` [count] is scratch. -1 when it is beyond the limit.
static int64_t fullest(tr_interval *const *order, size_t count, placed *ends) {
    int64_t live = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        ends[i] = (placed){.end = room(order[i]), .last = order[i]->last};
    }
    qsort(ends, count, sizeof *ends, by_end);
    for (size_t i = 0, ended = 0; i < count; i++) {
        while (ends[ended].last < order[i]->first) {
            live -= ends[ended++].end;
        }
        live += room(order[i]);
        if (live > limit) {
            return -1;
        }
        most = tr__max_i64(most, live);
    }
    return most;
}

// Items of which each lives together with the one before or after it: tries orders
// until one is as good as any layout can be. Longest first is best where lifetimes are
// nested, as a forward and its backward make them; largest first where they are not.
static int64_t place_group(layout *l, tr_interval **order, size_t count) {
    static int (*const orders[])(const void *, const void *) = {by_length, by_size};
    int64_t least = fullest(order, count, l->placed), best = -1;
    int chosen = 0, tried = -1;
    for (int i = 0; i < 2 && least >= 0 && best != least; i++) {
        qsort(order, count, sizeof *order, orders[i]);
        int64_t total = place_in_order(l, order, count);
        tried = i;
        if (total >= 0 && (best < 0 || total < best)) {
            best = total;
            chosen = i;
        }
    }
    if (best >= 0 && chosen != tried) {
        qsort(order, count, sizeof *order, orders[chosen]);
        place_in_order(l, order, count);
    }
    return best;
}

// How many of the items, sorted by start, are joined with the first by chains of common
// steps.
static size_t group_length(tr_interval *const *order, size_t count) {
    int32_t last = order[0]->last;
    size_t n = 1;
    while (n < count && order[n]->first <= last) {
        last = order[n]->last > last ? order[n]->last : last;
        n++;
    }
    return n;
}

tr_status tr__offsets_assign(tr_interval *items, size_t count, int64_t *total,
                             tr_error *err) {
    layout l = {.order = tr__calloc(count, sizeof *l.order),
                .placed = tr__calloc(count, sizeof *l.placed)};
    size_t used = 0;
    tr_status status = TR_OK;
    *total = 0;
    if (!l.order || !l.placed) {
        status = tr_fail(err, TR_MEMORY, "no memory to lay out %zu buffers", count);
        goto cleanup;
    }
    for (size_t i = 0; i < count; i++) {
        items[i].offset = 0;
        if (items[i].bytes < 0 || items[i].bytes > limit) {
            status = tr_fail(err, TR_USAGE, "a buffer of %lld bytes: too large",
                             (long long)items[i].bytes);
            goto cleanup;
        }
        if (items[i].bytes > 0) {
            l.order[used++] = &items[i];
        }
    }
    qsort(l.order, used, sizeof *l.order, by_start);
    for (size_t at = 0, length; at < used; at += length) {
        length = group_length(l.order + at, used - at);
        int64_t group = place_group(&l, l.order + at, length);
        if (group < 0) {
            status = tr_fail(err, TR_USAGE,
                             "the buffers of one step take more than 2^60 bytes");
            goto cleanup;
        }
        *total = tr__max_i64(*total, group);
    }
cleanup:
    tr__free(l.order);
    tr__free(l.placed);
    return status;
}
