#include "plan/flow/extents.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

static tr_extent untouched(int64_t first, int64_t end) {
    tr_extent extent = {.first = first, .end = end, .writer = -1};
    memset(extent.reader, -1, sizeof extent.reader);
    return extent;
}

// The index of the extent that holds byte `at`.
static size_t find(const tr_extents *x, int64_t at) {
    size_t low = 0, high = x->count - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (x->items[middle].first <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

// An extent begins at byte `at` from now on. *index: which.
static bool split(tr_extents *x, int64_t at, size_t *index) {
    if (at == x->items[x->count - 1].end) {
        *index = x->count;
        return true;
    }
    size_t i = find(x, at);
    *index = i + (x->items[i].first < at);
    if (x->items[i].first == at) {
        return true;
    }
    if (!tr__grow((void **)&x->items, &x->capacity, x->count + 1, sizeof *x->items)) {
        return false;
    }
    memmove(x->items + i + 1, x->items + i, (x->count - i) * sizeof *x->items);
    x->count++;
    x->items[i].end = x->items[i + 1].first = at;
    return true;
}

bool tr__extents_cut(tr_extents *extents, int64_t bytes, const tr_access *access,
                     size_t *first, size_t *end) {
    if (extents->count == 0) {
        if (!tr__grow((void **)&extents->items, &extents->capacity, 1,
                      sizeof *extents->items)) {
            return false;
        }
        extents->items[extents->count++] =
            untouched(0, tr__max_i64(bytes, access->end));
    }
    return split(extents, access->first, first) && split(extents, access->end, end);
}

void tr__extents_write(tr_extents *extents, size_t first, size_t end, int32_t step) {
    tr_extent *items = extents->items;
    items[first] = untouched(items[first].first, items[end - 1].end);
    items[first].writer = step;
    memmove(items + first + 1, items + end, (extents->count - end) * sizeof *items);
    extents->count -= end - first - 1;
}

void tr__extents_free(tr_extents *extents, size_t count) {
    for (size_t i = 0; extents && i < count; i++) {
        tr__free(extents[i].items);
    }
    tr__free(extents);
}
