#include "plan/offsets.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
    const tr_interval *x = *(tr_interval *const *)a, *y = *(tr_interval *const *)b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? 1 : -1;
    }
    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x < y ? -1 : x > y; // the order given: the same plan every time
}

// The lowest offset at which `item` overlaps none of the placed (sorted by offset).
static int64_t lowest_gap(tr_interval *const *placed, size_t count,
                          const tr_interval *item) {
    int64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const tr_interval *other = placed[i];
        if (other->last < item->first || other->first > item->last) {
            continue;
        }
        if (other->offset >= offset + item->bytes) {
            break;
        }
        int64_t end = other->offset + tr__round_up(other->bytes, TR_ALIGNMENT);
        offset = tr__max_i64(offset, end);
    }
    return offset;
}

static void insert(tr_interval **placed, size_t count, tr_interval *item) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (placed[middle]->offset <= item->offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(placed + low + 1, placed + low, (count - low) * sizeof *placed);
    placed[low] = item;
}

tr_status tr__offsets_assign(tr_interval *items, size_t count, int64_t *total,
                             tr_error *err) {
    tr_interval **order = tr__calloc(count, sizeof *order);
    tr_interval **placed = tr__calloc(count + 1, sizeof *placed);
    size_t used = 0;
    tr_status status = TR_OK;
    *total = 0;
    if (!order || !placed) {
        status = tr_fail(err, TR_MEMORY, "no memory to lay out %zu buffers", count);
        goto cleanup;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &items[i];
    }
    qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; i < count; i++) {
        tr_interval *item = order[i];
        int64_t end = 0;
        item->offset = 0;
        if (item->bytes == 0) {
            continue;
        }
        item->offset = lowest_gap(placed, used, item);
        insert(placed, used++, item);
        if (!tr__add_i64(item->offset, item->bytes, &end)) {
            status =
                tr_fail(err, TR_USAGE, "the buffers of one step exceed 2^63 bytes");
            goto cleanup;
        }
        *total = tr__max_i64(*total, end);
    }
cleanup:
    tr__free(order);
    tr__free(placed);
    return status;
}
