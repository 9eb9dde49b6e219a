// A segment tree over time (de Berg et al., Computational Geometry, chapter 10): what
// is taken for a time is noted at the O(log n) nodes that make up that time. Each node
// keeps ranges of bytes, of which those that touch are one: buffers lie close together,
// so that the many that live at one step are few ranges.
#include "plan/units/gaps.h"

#include "base/checked.h"
#include "base/memory.h"

enum { LEVELS = 32, SETS_MOST = 4 * LEVELS };

typedef struct range {
    int64_t begin, end;
} range;

// Ranges pool[at .. at + count), ascending, apart from each other.
typedef struct set {
    size_t at;
    uint32_t count, room;
} set;

typedef struct node {
    set whole; // taken in all of the node's time, but not in all of its parent's
    set some;  // taken at some time in it, `whole` included, but not in all of its
               // parent's
} node;

struct tr_gaps {
    node *nodes; // [2 * leaves]: node v has 2 v and 2 v + 1 below it
    int32_t leaves;
    range *pool;
    size_t used, capacity;
    int64_t looks;
};

// A time, and the node that is looked at.
typedef struct place {
    int32_t first, last; // asked for
    int32_t node, low, high;
} place;

static place part(const place *p, bool upper) {
    int32_t middle = p->low + (p->high - p->low) / 2;
    return upper ? (place){p->first, p->last, 2 * p->node + 1, middle + 1, p->high}
                 : (place){p->first, p->last, 2 * p->node, p->low, middle};
}

static bool is_inside(const place *p) {
    return p->first <= p->low && p->high <= p->last;
}

static bool is_apart(const place *p) {
    return p->high < p->first || p->last < p->low;
}

tr_status tr__gaps_create(int32_t times, tr_gaps **out, tr_error *err) {
    tr_gaps *gaps = tr__calloc(1, sizeof *gaps);
    int32_t leaves = 1;
    while (leaves < times) {
        leaves *= 2;
    }
    if (gaps) {
        gaps->leaves = leaves;
        gaps->nodes = tr__calloc(2 * (size_t)leaves, sizeof *gaps->nodes);
    }
    if (!gaps || !gaps->nodes) {
        tr__gaps_destroy(gaps);
        return tr_fail(err, TR_MEMORY, "no memory to lay out buffers");
    }
    *out = gaps;
    return TR_OK;
}

void tr__gaps_destroy(tr_gaps *gaps) {
    if (gaps) {
        tr__free(gaps->nodes);
        tr__free(gaps->pool);
        tr__free(gaps);
    }
}

int64_t tr__gaps_looks(const tr_gaps *gaps) {
    return gaps->looks;
}

// ---- sets

// The ranges of a set: [s->count]; NULL: no set has had any yet.
static range *ranges_of(const tr_gaps *gaps, const set *s) {
    return gaps->pool ? gaps->pool + s->at : NULL;
}

// The first range from `from` on that ends after `offset`; s->count: none.
static uint32_t first_after(tr_gaps *gaps, const set *s, uint32_t from,
                            int64_t offset) {
    const range *at = ranges_of(gaps, s);
    uint32_t low = from, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        gaps->looks++;
        if (at[middle].end <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool make_room(tr_gaps *gaps, set *s) {
    if (s->count < s->room) {
        return true;
    }
    uint32_t room = s->room ? 2 * s->room : 2;
    if (!tr__grow((void **)&gaps->pool, &gaps->capacity, gaps->used + room,
                  sizeof *gaps->pool)) {
        return false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        gaps->pool[gaps->used + i] = gaps->pool[s->at + i];
    }
    s->at = gaps->used;
    s->room = room;
    gaps->used += room;
    return true;
}

// Puts a range in; those that it meets become one with it.
static bool join(tr_gaps *gaps, set *s, range taken) {
    uint32_t from = first_after(gaps, s, 0, taken.begin - 1), to = from;
    range *at = ranges_of(gaps, s);
    for (; to < s->count && at[to].begin <= taken.end; to++) {
        gaps->looks++;
        taken.begin = tr__min_i64(taken.begin, at[to].begin);
        taken.end = tr__max_i64(taken.end, at[to].end);
    }
    if (to == from) {
        if (!make_room(gaps, s)) {
            return false;
        }
        at = ranges_of(gaps, s);
        for (uint32_t i = s->count++; i > from; i--) {
            at[i] = at[i - 1];
        }
    } else {
        uint32_t fewer = to - from - 1;
        s->count -= fewer;
        for (uint32_t i = from + 1; i < s->count && fewer > 0; i++) {
            at[i] = at[i + fewer];
        }
    }
    at[from] = taken;
    return true;
}

// ---- the tree

static bool take(tr_gaps *gaps, const place *p, range taken) {
    node *at = &gaps->nodes[p->node];
    if (is_apart(p)) {
        return true;
    }
    if (!join(gaps, &at->some, taken)) {
        return false;
    }
    if (is_inside(p)) {
        return join(gaps, &at->whole, taken);
    }
    place lower = part(p, false), upper = part(p, true);
    return take(gaps, &lower, taken) && take(gaps, &upper, taken);
}

tr_status tr__gaps_take(tr_gaps *gaps, int32_t first, int32_t last, int64_t begin,
                        int64_t end, tr_error *err) {
    place all = {first, last, 1, 0, gaps->leaves - 1};
    return take(gaps, &all, (range){begin, end})
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory to lay out buffers");
}

// The sets whose union is what is taken in a time, and where in each the search is.
typedef struct search {
    const set *sets[SETS_MOST];
    uint32_t next[SETS_MOST];
    int count;
} search;

static void collect(const tr_gaps *gaps, const place *p, search *s) {
    const node *at = &gaps->nodes[p->node];
    bool inside = is_inside(p);
    const set *found = inside ? &at->some : &at->whole;
    if (is_apart(p) || at->some.count == 0) {
        return;
    }
    if (found->count > 0) {
        s->sets[s->count++] = found;
    }
    if (!inside) {
        place lower = part(p, false), upper = part(p, true);
        collect(gaps, &lower, s);
        collect(gaps, &upper, s);
    }
}

// From `offset` on: behind what is in the way, range by range.
static int64_t pass(tr_gaps *gaps, search *s, int i, int64_t offset, int64_t bytes) {
    const set *at = s->sets[i];
    uint32_t next = first_after(gaps, at, s->next[i], offset);
    const range *ranges = ranges_of(gaps, at);
    while (next < at->count && ranges[next].begin < offset + bytes) {
        gaps->looks++;
        offset = ranges[next++].end;
    }
    s->next[i] = next;
    return offset;
}

int64_t tr__gaps_lowest(tr_gaps *gaps, int32_t first, int32_t last, int64_t bytes) {
    place all = {first, last, 1, 0, gaps->leaves - 1};
    search s = {.count = 0};
    int64_t offset = 0;
    int still = 0; // so many sets in a row had nothing in the way
    collect(gaps, &all, &s);
    for (int i = 0; still < s.count; i = (i + 1) % s.count) {
        int64_t behind = pass(gaps, &s, i, offset, bytes);
        still = behind > offset ? 1 : still + 1;
        offset = behind;
    }
    return offset;
}
