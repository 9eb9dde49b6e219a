#include "plan/units/offsets.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/gaps.h"

#include <stdlib.h>

// No sum of two sizes below the limit overflows.
static const int64_t limit = INT64_C(1) << 60;

// What an item takes, and its last step.
typedef struct ending {
    int64_t bytes;
    int32_t last;
} ending;

typedef struct kept {
    tr_interval *item;
    int64_t offset;
} kept;

// Items of a group, and the times that tell them apart: the steps at which one of them
// begins. Two items live together when one of them lives where the other begins.
typedef struct layout {
    tr_interval **order; // [count]
    ending *ends;        // [count] scratch
    kept *kept;          // [count] of the best layout so far
    int32_t *begins;     // [count] ascending, each once
    int32_t times;
    tr_gaps *gaps;
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

// The last of the times that is not after `step`.
static int32_t time_of(const layout *l, int32_t step) {
    int32_t low = 0, high = l->times;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (l->begins[middle] <= step) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// `order` is sorted by start.
static void note_times(layout *l, tr_interval *const *order, size_t count) {
    l->times = 0;
    for (size_t i = 0; i < count; i++) {
        if (l->times == 0 || l->begins[l->times - 1] != order[i]->first) {
            l->begins[l->times++] = order[i]->first;
        }
    }
}

// Places order[0..count) one after the other, each in the lowest gap of its time;
// *total: -1 when that takes more room than `most`.
static tr_status place_in_order(layout *l, tr_interval *const *order, size_t count,
                                int64_t most, int64_t *total, tr_error *err) {
    tr_status status = tr__gaps_create(l->times, &l->gaps, err);
    *total = 0;
    for (size_t i = 0; i < count && status == TR_OK && *total >= 0; i++) {
        tr_interval *item = order[i];
        int32_t first = time_of(l, item->first), last = time_of(l, item->last);
        item->offset = tr__gaps_lowest(l->gaps, first, last, room(item));
        int64_t end = item->offset + room(item);
        if (end > most) {
            *total = -1;
        } else {
            status = tr__gaps_take(l->gaps, first, last, item->offset, end, err);
            *total = tr__max_i64(*total, end);
        }
    }
    tr__gaps_destroy(l->gaps);
    l->gaps = NULL;
    return status;
}

static int by_end(const void *a, const void *b) {
    const ending *x = a, *y = b;
    return x->last < y->last ? -1 : x->last > y->last;
}

// The most that lives at one step; no layout takes less. `order` is sorted by start;
// `ends` [count] is scratch. -1 when it is beyond the limit.
static int64_t fullest(tr_interval *const *order, size_t count, ending *ends) {
    int64_t live = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        ends[i] = (ending){room(order[i]), order[i]->last};
    }
    qsort(ends, count, sizeof *ends, by_end);
    for (size_t i = 0, ended = 0; i < count; i++) {
        while (ends[ended].last < order[i]->first) {
            live -= ends[ended++].bytes;
        }
        live += room(order[i]);
        if (live > limit) {
            return -1;
        }
        most = tr__max_i64(most, live);
    }
    return most;
}

static void keep_offsets(layout *l, tr_interval *const *order, size_t count) {
    for (size_t i = 0; i < count; i++) {
        l->kept[i] = (kept){order[i], order[i]->offset};
    }
}

static void restore_offsets(const layout *l, size_t count) {
    for (size_t i = 0; i < count; i++) {
        l->kept[i].item->offset = l->kept[i].offset;
    }
}

// Items of which each lives together with the one before or after it, sorted by start:
// tries orders until one is as good as any layout can be; one that comes to be no
// better than the last is given up. Longest first is best where lifetimes are nested,
// as a forward and its backward make them; largest first where they are not. *total: -1
// where none is below the limit.
static tr_status place_group(layout *l, tr_interval **order, size_t count,
                             int64_t *total, tr_error *err) {
    static int (*const orders[])(const void *, const void *) = {by_length, by_size};
    int64_t least = fullest(order, count, l->ends), found = -1, most = limit;
    tr_status status = TR_OK;
    *total = -1;
    note_times(l, order, count);
    for (int i = 0; i < 2 && least >= 0 && *total != least && status == TR_OK; i++) {
        qsort(order, count, sizeof *order, orders[i]);
        status = place_in_order(l, order, count, most, &found, err);
        if (found >= 0) {
            keep_offsets(l, order, count);
            *total = found;
            most = found - 1;
        }
    }
    if (status == TR_OK && *total >= 0 && found < 0) {
        restore_offsets(l, count);
    }
    return status;
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

// Those of the items that take room, sorted by start, in l->order.
static tr_status choose(layout *l, tr_interval *items, size_t count, size_t *used,
                        tr_error *err) {
    *used = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].offset = 0;
        if (items[i].bytes < 0 || items[i].bytes > limit) {
            return tr_fail(err, TR_USAGE, "a buffer of %lld bytes: too large",
                           (long long)items[i].bytes);
        }
        if (items[i].bytes > 0) {
            l->order[(*used)++] = &items[i];
        }
    }
    qsort(l->order, *used, sizeof *l->order, by_start);
    return TR_OK;
}

tr_status tr__offsets_assign(tr_interval *items, size_t count, int64_t *total,
                             tr_error *err) {
    layout l = {.order = tr__calloc(count, sizeof *l.order),
                .ends = tr__calloc(count, sizeof *l.ends),
                .kept = tr__calloc(count, sizeof *l.kept),
                .begins = tr__calloc(count, sizeof *l.begins)};
    size_t used = 0;
    tr_status status =
        l.order && l.ends && l.kept && l.begins
            ? choose(&l, items, count, &used, err)
            : tr_fail(err, TR_MEMORY, "no memory to lay out %zu buffers", count);
    *total = 0;
    for (size_t at = 0, length; at < used && status == TR_OK; at += length) {
        int64_t group = 0;
        length = group_length(l.order + at, used - at);
        status = place_group(&l, l.order + at, length, &group, err);
        if (status == TR_OK && group < 0) {
            status = tr_fail(err, TR_USAGE,
                             "the buffers of one step take more than 2^60 bytes");
        }
        *total = tr__max_i64(*total, group);
    }
    tr__free(l.order);
    tr__free(l.ends);
    tr__free(l.kept);
    tr__free(l.begins);
    return status;
}
