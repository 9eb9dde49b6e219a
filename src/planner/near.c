// Plans that are near to what is wanted: the one that takes the least of a budget;
// those that lack the least of what they need.
#include "base/checked.h"
#include "base/memory.h"
#include "planner/planner.h"

#include <stdlib.h>

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
}

// A rung of a group, by how far its bound is from what is wanted.
typedef struct near {
    const tr_group *group;
    size_t rung;
    int64_t distance;
    double seconds;
    bool is_close; // by the close bound
    bool gone;     // has been tried, or is not wanted
} near;

static int by_distance(const void *a, const void *b) {
    const near *x = a, *y = b;
    if (x->distance != y->distance) {
        return x->distance < y->distance ? -1 : 1;
    }
    if (x->seconds != y->seconds) {
        return x->seconds < y->seconds ? -1 : 1;
    }
    return x->group < y->group ? -1 : x->group > y->group;
}

// The nearest that is left; NULL: none is.
static near *next_near(near *items, size_t count) {
    near *next = NULL;
    for (size_t i = 0; i < count; i++) {
        bool nearer = !items[i].gone && (!next || by_distance(&items[i], next) < 0);
        next = nearer ? &items[i] : next;
    }
    return next;
}

// For each group, one rung that `choose` says the distance of; false: none of it.
// *count of *out, the nearest first.
static tr_status list_near(const tr_search *search,
                           bool (*choose)(const tr_search *, const void *, near *),
                           const void *user, near **out, size_t *count, tr_error *err) {
    *count = 0;
    *out = tr__calloc(search->group_count + 1, sizeof **out);
    if (!*out) {
        return no_memory(err);
    }
    for (size_t i = 0; i < search->group_count; i++) {
        near item = {.group = &search->groups[i]};
        if (choose(search, user, &item)) {
            (*out)[(*count)++] = item;
        }
    }
    qsort(*out, *count, sizeof **out, by_distance);
    return TR_OK;
}

typedef struct smallest_wanted {
    const tr_limits *limits;
    int budget;
} smallest_wanted;

static bool choose_smallest(const tr_search *search, const void *user, near *item) {
    const smallest_wanted *wanted = user;
    int64_t excess[TR_BUDGETS];
    item->rung = tr__group_rungs(search, item->group) - 1;
    tr_bound bound = tr__bound(search, item->group, item->rung);
    item->distance = tr__budget_bytes(wanted->budget, bound.bytes);
    item->seconds = bound.seconds;
    return tr__limits_excess(wanted->limits, bound.bytes, excess) == 0;
}

// The plan of the item is made as long as it is not beyond the one that is the next
// nearest: then it takes its turn behind that.
static tr_status make_smaller(tr_search *search, near *item, int64_t next,
                              const smallest_wanted *wanted, tr_made *out, bool *found,
                              tr_error *err) {
    int budget = wanted->budget;
    tr_limits less = *wanted->limits;
    tr_made made;
    less.most[budget] = tr__max_i64(next, item->distance);
    tr_point point = tr__group_point(search, item->group, item->rung);
    tr_status status = tr__search_make(search, &point, &less, &made, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t bytes = tr__budget_bytes(budget, made.option.bytes);
    item->gone = !made.partial || !tr__made_fits(wanted->limits, &made);
    item->distance = tr__max_i64(item->distance, bytes);
    if (!made.partial && tr__made_fits(wanted->limits, &made) &&
        (!*found || bytes < tr__budget_bytes(budget, out->option.bytes))) {
        *out = made;
        *found = true;
    }
    return TR_OK;
}

static void look_closer(tr_search *search, const smallest_wanted *wanted, near *item) {
    int64_t excess[TR_BUDGETS];
    tr_bound bound = tr__group_close(search, item->group, item->rung);
    item->distance = tr__budget_bytes(wanted->budget, bound.bytes);
    item->seconds = bound.seconds;
    item->is_close = true;
    item->gone = tr__limits_excess(wanted->limits, bound.bytes, excess) > 0;
}

tr_status tr__search_smallest(tr_search *search, const tr_limits *limits, int budget,
                              tr_made *out, bool *found, tr_error *err) {
    tr_limits others = *limits;
    smallest_wanted wanted = {&others, budget};
    near *items = NULL, *next;
    size_t count = 0;
    others.most[budget] = TR_UNLIMITED;
    *found = false;
    tr_status status = list_near(search, choose_smallest, &wanted, &items, &count, err);
    while (status == TR_OK && (next = next_near(items, count)) != NULL) {
        int64_t least =
            *found ? tr__budget_bytes(budget, out->option.bytes) : TR_UNLIMITED;
        if (next->distance >= least) {
            break;
        }
        if (next->is_close) {
            next->gone = true;
            const near *other = next_near(items, count);
            int64_t behind = other ? tr__min_i64(least, other->distance) : least;
            status = make_smaller(search, next, behind, &wanted, out, found, err);
        } else {
            look_closer(search, &wanted, next);
        }
    }
    tr__free(items);
    return status;
}

typedef struct nearest_wanted {
    const tr_limits *limits;
    double seconds; // 0: whatever it takes
} nearest_wanted;

static bool is_slow(const nearest_wanted *wanted, double seconds) {
    return wanted->seconds > 0 && seconds >= (1 - TR_SAME_TIME) * wanted->seconds;
}

// The last rung below `end` whose bound, `slower` times as long, is quick enough; -1:
// none is.
static int64_t last_quick(const tr_search *search, const tr_group *group,
                          double seconds, double slower, size_t end) {
    int64_t rung = (int64_t)end - 1;
    while (rung >= 0 && seconds > 0 &&
           tr__bound(search, group, (size_t)rung).seconds * slower >=
               (1 - TR_SAME_TIME) * seconds) {
        rung--;
    }
    return rung;
}

static bool choose_nearest(const tr_search *search, const void *user, near *item) {
    const nearest_wanted *wanted = user;
    int64_t excess[TR_BUDGETS];
    int64_t rung = last_quick(search, item->group, wanted->seconds, 1,
                              tr__group_rungs(search, item->group));
    if (rung < 0) {
        return false;
    }
    tr_bound bound = tr__bound(search, item->group, (size_t)rung);
    item->rung = (size_t)rung;
    item->seconds = bound.seconds;
    item->distance = tr__limits_excess(wanted->limits, bound.bytes, excess);
    return true;
}

// The plan of the item; where it takes longer than its bound said, and too long, that
// of a lower rung, as much quicker. *quick: there is one.
static tr_status make_quick(tr_search *search, const near *item, double seconds,
                            tr_made *out, bool *quick, tr_error *err) {
    int64_t rung = (int64_t)item->rung;
    tr_status status = TR_OK;
    *quick = false;
    while (rung >= 0 && !*quick && status == TR_OK) {
        tr_point point = tr__group_point(search, item->group, (size_t)rung);
        double bound = tr__bound(search, item->group, (size_t)rung).seconds;
        status = tr__search_make(search, &point, NULL, out, err);
        if (status != TR_OK || !out->possible) {
            return status;
        }
        *quick = seconds == 0 || out->option.seconds < (1 - TR_SAME_TIME) * seconds;
        rung = last_quick(search, item->group, seconds, out->option.seconds / bound,
                          (size_t)rung);
    }
    return status;
}

// Do they share and place things in the same way? Plans that differ in little else are
// one piece of news.
static bool are_alike(const tr_planner_option *a, const tr_planner_option *b) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        bool tells = tr__plan_settings[d].kind == TR_PLACE || d == TR_DIMENSION_stage;
        if (tells && a->value[d] != b->value[d]) {
            return false;
        }
    }
    return true;
}

static bool has_alike(const tr_made *taken, size_t count, const tr_made *made) {
    for (size_t i = 0; i < count; i++) {
        if (are_alike(&taken[i].option, &made->option)) {
            return true;
        }
    }
    return false;
}

enum { NEAR_MADE = 12, NEAR_TRIED = 32 };

typedef struct made_near {
    tr_made made;
    int64_t excess;
    size_t item;
} made_near;

static int by_excess(const void *a, const void *b) {
    const made_near *x = a, *y = b;
    if (x->excess != y->excess) {
        return x->excess < y->excess ? -1 : 1;
    }
    return x->item < y->item ? -1 : x->item > y->item;
}

// Where the rung is too slow by its close bound, a lower one takes its turn that is as
// much quicker.
static void look_closer_for(tr_search *search, const nearest_wanted *wanted,
                            near *item) {
    int64_t excess[TR_BUDGETS];
    double quick = tr__bound(search, item->group, item->rung).seconds;
    tr_bound bound = tr__group_close(search, item->group, item->rung);
    item->is_close = !is_slow(wanted, bound.seconds);
    if (!item->is_close) {
        int64_t rung = last_quick(search, item->group, wanted->seconds,
                                  bound.seconds / quick, item->rung);
        item->gone = rung < 0;
        item->rung = rung < 0 ? 0 : (size_t)rung;
        bound = tr__bound(search, item->group, item->rung);
    }
    item->seconds = bound.seconds;
    item->distance = tr__limits_excess(wanted->limits, bound.bytes, excess);
}

// Those that were made, the nearest first. *count: at most NEAR_MADE; where one is
// wanted, no more than it takes to know that none is nearer.
static tr_status make_near(tr_search *search, const nearest_wanted *wanted, bool one,
                           made_near *all, size_t *count, tr_error *err) {
    near *items = NULL, *next;
    size_t items_count = 0, tried = 0, made = 0;
    int64_t least = INT64_MAX, excess[TR_BUDGETS];
    tr_status status =
        list_near(search, choose_nearest, wanted, &items, &items_count, err);
    while (status == TR_OK && made < NEAR_MADE && tried < NEAR_TRIED &&
           (next = next_near(items, items_count)) != NULL &&
           !(one && next->distance >= least)) {
        if (!next->is_close) {
            look_closer_for(search, wanted, next);
            continue;
        }
        made_near *now = &all[made];
        bool quick = false;
        status = make_quick(search, next, wanted->seconds, &now->made, &quick, err);
        next->gone = true;
        tried++;
        if (status == TR_OK && quick) {
            now->excess =
                tr__limits_excess(wanted->limits, now->made.option.bytes, excess);
            now->item = made++;
            least = tr__min_i64(least, now->excess);
        }
    }
    tr__free(items);
    *count = made;
    return status;
}

tr_status tr__search_nearest(tr_search *search, const tr_limits *limits, double seconds,
                             size_t most, tr_made *out, size_t *count, tr_error *err) {
    nearest_wanted wanted = {limits, seconds};
    made_near all[NEAR_MADE];
    size_t made = 0;
    *count = 0;
    tr_status status = make_near(search, &wanted, most == 1, all, &made, err);
    if (status == TR_OK) {
        qsort(all, made, sizeof *all, by_excess);
    }
    for (int again = 0; again < 2 && status == TR_OK; again++) {
        for (size_t i = 0; i < made && *count < most; i++) {
            bool other = again || !has_alike(out, *count, &all[i].made);
            if (all[i].made.possible && other) {
                out[(*count)++] = all[i].made;
                all[i].made.possible = false; // taken
            }
        }
    }
    return status;
}
