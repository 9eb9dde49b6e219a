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
#include <string.h>

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
    double near = TR_SAME_TIME / 2 * b_seconds;
    bool same = fabs(a_seconds - b_seconds) <= near;
    return same ? sum_of(a) < sum_of(b) : a_seconds < b_seconds;
}

// ---- one group

tr_bound tr__group_close(tr_search *search, const tr_group *group, size_t rung) {
    tr_group *own = &search->groups[group - search->groups];
    if (!own->close) {
        own->close = tr__calloc(search->ladder_count, sizeof *own->close);
    }
    if (!own->close) {
        return tr__bound(search, group, rung);
    }
    if (own->close[rung].seconds == 0) {
        own->close[rung] = tr__bound_close(search, group, rung);
    }
    return own->close[rung];
}

size_t tr__group_rungs(const tr_search *search, const tr_group *group) {
    return tr__weights_come_later(&group->point.plan) ? 1 : search->ladder_count;
}

typedef struct climb {
    bool open;
    int low;        // this rung and those below do not fit; -1: none is known
    int high;       // this one fits
    int rung;       // to be looked at next
    tr_bound bound; // of it; and the close one, when it is its turn
    bool is_close;
    int64_t quick[TR_SPACES]; // bytes, by the bound that was there before
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
        c->is_close = false;
        memcpy(c->quick, c->bound.bytes, sizeof c->quick);
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

// The rung takes `bytes` at least, which is too much: others are taken to be as much
// beyond their bounds.
static void go_up(const tr_search *search, const tr_group *group,
                  const tr_limits *limits, const int64_t bytes[TR_SPACES], climb *c) {
    int64_t more[TR_SPACES];
    for (int s = 0; s < TR_SPACES; s++) {
        more[s] = bytes[s] - c->quick[s];
    }
    int rungs = (int)tr__group_rungs(search, group);
    c->low = c->rung;
    bool bounded = c->high < rungs; // something above fits
    int rung = first_within(search, group, limits, c->low, c->high, more);
    int last = rungs - 1;
    rung = bounded && rung >= c->high ? c->high - 1 : rung;
    go_on(search, group, c, !bounded && rung > last && c->low < last ? last : rung);
}

static void learn(const tr_search *search, const tr_group *group,
                  const tr_limits *limits, const tr_made *made, climb *c) {
    int64_t excess[TR_BUDGETS];
    if (!made->possible) {
        c->open = false;
    } else if (tr__limits_excess(limits, made->option.bytes, excess) > 0) {
        go_up(search, group, limits, made->option.bytes, c);
    } else { // is there a lower one that does?
        c->high = c->rung;
        go_on(search, group, c, c->low + (c->high - c->low) / 2);
    }
}

// It is the rung's turn by its bound: is it still by a closer one?
static void look_closer(tr_search *search, const tr_group *group,
                        const tr_limits *limits, climb *c) {
    int64_t excess[TR_BUDGETS];
    c->bound = tr__group_close(search, group, (size_t)c->rung);
    c->is_close = true;
    if (tr__limits_excess(limits, c->bound.bytes, excess) > 0) {
        go_up(search, group, limits, c->bound.bytes, c);
    }
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

static tr_status make_next(tr_search *search, const tr_limits *limits,
                           const tr_group *group, climb *c, tr_made *best, bool *found,
                           tr_error *err) {
    tr_made made;
    tr_point point = tr__group_point(search, group, (size_t)c->rung);
    tr_status status = tr__search_make(search, &point, limits, &made, err);
    if (status != TR_OK) {
        return status;
    }
    if (tr__made_fits(limits, &made) &&
        (!*found || is_better(made.option.seconds, made.option.bytes,
                              best->option.seconds, best->option.bytes))) {
        *best = made;
        *found = true;
    }
    learn(search, group, limits, &made, c);
    return TR_OK;
}

tr_status tr__search_fastest(tr_search *search, const tr_limits *limits, size_t plans,
                             tr_made *out, bool *found, tr_error *err) {
    climb *climbs = tr__calloc(search->group_count, sizeof *climbs);
    tr_status status = climbs ? TR_OK : no_memory(err);
    *found = false;
    for (size_t i = 0; i < search->group_count && status == TR_OK; i++) {
        begin(search, &search->groups[i], limits, &climbs[i]);
    }
    for (size_t n = 0; n < plans && status == TR_OK;) {
        int64_t i = next_group(climbs, search->group_count);
        if (i < 0 || (*found && climbs[i].bound.seconds >=
                                    (1 - TR_SAME_TIME) * out->option.seconds)) {
            break;
        }
        const tr_group *group = &search->groups[i];
        if (climbs[i].is_close) {
            status = make_next(search, limits, group, &climbs[i], out, found, err);
            n++;
        } else {
            look_closer(search, group, limits, &climbs[i]);
        }
    }
    tr__free(climbs);
    return status;
}
