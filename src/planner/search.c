// Plans in the order of their bounds.
//
// Within a group, the more units are recomputed the longer a step takes and the less it
// needs: there the first rung of the ladder that fits is the best. Groups are looked at
// by the bound of the first rung that may fit; a plan that turns out not to fit sends
// its group further up the ladder, by as much as it was more than its bound.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/schedules/schedule.h"
#include "planner/planner.h"

#include <math.h>
#include <stdlib.h>

// Times closer than this are the same: then the plan that takes less is better.
#define SAME_TIME 1e-3

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
}

static int64_t sum_of(const int64_t bytes[TR_SPACES]) {
    int64_t sum = 0;
    for (int s = 0; s < TR_SPACES; s++) {
        sum += bytes[s];
    }
    return sum;
}

// Is a better than b: faster, or as fast and smaller?
static bool is_better(double a_seconds, const int64_t a[TR_SPACES], double b_seconds,
                      const int64_t b[TR_SPACES]) {
    double near = SAME_TIME / 2 * b_seconds;
    bool same = fabs(a_seconds - b_seconds) <= near;
    return same ? sum_of(a) < sum_of(b) : a_seconds < b_seconds;
}

// ---- one group

size_t tr__group_rungs(const tr_search *search, const tr_group *group) {
    return tr__weights_come_later(&group->point.plan) ? 1 : search->ladder_count;
}

typedef struct climb {
    bool open;
    int low;        // this rung and those below do not fit; -1: none is known
    int high;       // this one fits
    int rung;       // to be looked at next
    tr_bound bound; // of it
} climb;

// The first rung above `low` and below `high` whose bound, and `more`, is within the
// limits; `high` where there is none. Bounds fall along the ladder.
static int first_within(const tr_search *search, const tr_group *group,
                        const tr_limits *limits, int low, int high,
                        const int64_t more[TR_SPACES]) {
    int above = high;
    low++;
    while (low < above) {
        int middle = low + (above - low) / 2;
        tr_bound bound = tr__bound(search, group, (size_t)middle);
        int64_t excess[TR_BUDGETS];
        for (int s = 0; s < TR_SPACES; s++) {
            bound.bytes[s] += more[s];
        }
        if (tr__limits_excess(limits, bound.bytes, excess) == 0) {
            above = middle;
        } else {
            low = middle + 1;
        }
    }
    return above;
}

static void go_on(const tr_search *search, const tr_group *group, climb *c, int rung) {
    c->rung = rung;
    c->open = c->rung > c->low && c->rung < c->high;
    if (c->open) {
        c->bound = tr__bound(search, group, (size_t)rung);
    }
}

static void begin(const tr_search *search, const tr_group *group,
                  const tr_limits *limits, climb *c) {
    static const int64_t none[TR_SPACES];
    c->low = -1;
    c->high = (int)tr__group_rungs(search, group);
    int rung = first_within(search, group, limits, -1, c->high, none);
    go_on(search, group, c, rung);
    c->low = rung - 1; // what is below cannot fit, by its bound
}

static void learn(const tr_search *search, const tr_group *group,
                  const tr_limits *limits, const tr_made *made, climb *c) {
    int64_t excess[TR_BUDGETS], more[TR_SPACES];
    bool fits =
        made->possible && tr__limits_excess(limits, made->option.bytes, excess) == 0;
    if (!made->possible) {
        c->open = false;
        return;
    }
    if (fits) { // is there a lower one that does?
        c->high = c->rung;
        go_on(search, group, c, c->low + (c->high - c->low) / 2);
        return;
    }
    for (int s = 0; s < TR_SPACES; s++) {
        more[s] = made->option.bytes[s] - c->bound.bytes[s];
    }
    int rungs = (int)tr__group_rungs(search, group);
    c->low = c->rung;
    bool bounded = c->high < rungs; // something above fits
    int rung = first_within(search, group, limits, c->low, c->high, more);
    int last = rungs - 1;
    rung = bounded && rung >= c->high ? c->high - 1 : rung;
    go_on(search, group, c, !bounded && rung > last && c->low < last ? last : rung);
}

// ---- all of them

// The open group whose next plan may be the best; -1: none is.
static int64_t next_group(const climb *climbs, size_t count) {
    int64_t best = -1;
    for (size_t i = 0; i < count; i++) {
        const climb *c = &climbs[i];
        if (c->open && (best < 0 || is_better(c->bound.seconds, c->bound.bytes,
                                              climbs[best].bound.seconds,
                                              climbs[best].bound.bytes))) {
            best = (int64_t)i;
        }
    }
    return best;
}

tr_status tr__search_fastest(tr_search *search, const tr_limits *limits, size_t plans,
                             tr_made *out, bool *found, tr_error *err) {
    climb *climbs = tr__calloc(search->group_count, sizeof *climbs);
    tr_status status = climbs ? TR_OK : no_memory(err);
    *found = false;
    for (size_t i = 0; i < search->group_count && status == TR_OK; i++) {
        begin(search, &search->groups[i], limits, &climbs[i]);
    }
    for (size_t n = 0; n < plans && status == TR_OK; n++) {
        int64_t i = next_group(climbs, search->group_count);
        tr_made made;
        if (i < 0 || (*found && climbs[i].bound.seconds >=
                                    (1 - SAME_TIME) * out->option.seconds)) {
            break;
        }
        const tr_group *group = &search->groups[i];
        tr_point point = tr__group_point(search, group, (size_t)climbs[i].rung);
        status = tr__search_make(search, &point, &made, err);
        if (status == TR_OK) {
            int64_t excess[TR_BUDGETS];
            bool fits = made.possible &&
                        tr__limits_excess(limits, made.option.bytes, excess) == 0;
            if (fits &&
                (!*found || is_better(made.option.seconds, made.option.bytes,
                                      out->option.seconds, out->option.bytes))) {
                *out = made;
                *found = true;
            }
            learn(search, group, limits, &made, &climbs[i]);
        }
    }
    tr__free(climbs);
    return status;
}

// ---- near misses

// A rung of a group, by how far its bound is from what is wanted.
typedef struct near {
    const tr_group *group;
    size_t rung;
    int64_t distance;
    double seconds;
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

tr_status tr__search_smallest(tr_search *search, const tr_limits *limits, int budget,
                              tr_made *out, bool *found, tr_error *err) {
    tr_limits others = *limits;
    smallest_wanted wanted = {&others, budget};
    near *items = NULL;
    size_t count = 0;
    others.most[budget] = TR_UNLIMITED;
    *found = false;
    tr_status status = list_near(search, choose_smallest, &wanted, &items, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        int64_t excess[TR_BUDGETS];
        tr_made made;
        int64_t least = *found ? tr__budget_bytes(budget, out->option.bytes) : 0;
        if (*found && items[i].distance >= least) {
            break;
        }
        tr_point point = tr__group_point(search, items[i].group, items[i].rung);
        status = tr__search_make(search, &point, &made, err);
        bool fits = status == TR_OK && made.possible &&
                    tr__limits_excess(&others, made.option.bytes, excess) == 0;
        if (fits && (!*found || tr__budget_bytes(budget, made.option.bytes) < least)) {
            *out = made;
            *found = true;
        }
    }
    tr__free(items);
    return status;
}

typedef struct nearest_wanted {
    const tr_limits *limits;
    double seconds; // 0: whatever it takes
} nearest_wanted;

// The last rung below `end` whose bound, `slower` times as long, is quick enough; -1:
// none is.
static int64_t last_quick(const tr_search *search, const tr_group *group,
                          double seconds, double slower, size_t end) {
    int64_t rung = (int64_t)end - 1;
    while (rung >= 0 && seconds > 0 &&
           tr__bound(search, group, (size_t)rung).seconds * slower >=
               (1 - SAME_TIME) * seconds) {
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
        status = tr__search_make(search, &point, out, err);
        if (status != TR_OK || !out->possible) {
            return status;
        }
        *quick = seconds == 0 || out->option.seconds < (1 - SAME_TIME) * seconds;
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

tr_status tr__search_nearest(tr_search *search, const tr_limits *limits, double seconds,
                             size_t most, tr_made *out, size_t *count, tr_error *err) {
    nearest_wanted wanted = {limits, seconds};
    made_near all[NEAR_MADE];
    size_t items_count = 0, made = 0;
    near *items = NULL;
    *count = 0;
    tr_status status =
        list_near(search, choose_nearest, &wanted, &items, &items_count, err);
    size_t tried = items_count < NEAR_TRIED ? items_count : NEAR_TRIED;
    for (size_t i = 0; i < tried && made < NEAR_MADE && status == TR_OK; i++) {
        int64_t excess[TR_BUDGETS];
        made_near *now = &all[made];
        bool quick = false;
        status = make_quick(search, &items[i], seconds, &now->made, &quick, err);
        if (status == TR_OK && quick) {
            now->excess = tr__limits_excess(limits, now->made.option.bytes, excess);
            now->item = i;
            made++;
        }
    }
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
    tr__free(items);
    return status;
}
