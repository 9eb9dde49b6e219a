// The choice, and what lies beside it.
#include "base/memory.h"
#include "models/models.h"
#include "plan/flow/passes.h"
#include "planner/planner.h"

#include <string.h>

enum { PLANS_MOST = 400, PLANS_BESIDE = 8, TRIES = 8 };

// Of the choice's scarce memory, what runners-up are to do with.
static const double shares[TR_RUNNERS_MAX] = {0.85, 0.65, 0.45, 0.25};

static bool same_values(const tr_planner_option *a, const tr_planner_option *b) {
    return memcmp(a->value, b->value, sizeof a->value) == 0;
}

// ---- the choice

// An earlier choice, where it still fits, and is of as many ranks.
static tr_status take_kept(tr_search *search, const tr_limits *limits, tr_made *out,
                           bool *found, tr_error *err) {
    const tr_planner_request *request = search->request;
    tr_point point = tr__planner_start(request);
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        if (request->free >> d & 1) {
            tr__plan_settings[d].set(&point, request->kept[d]);
        }
    }
    if (tr_mesh_ranks(&point.plan.mesh) != tr_mesh_ranks(&request->plan.mesh)) {
        *found = false;
        return TR_OK;
    }
    tr_status status = tr__search_make(search, &point, NULL, out, err);
    *found = status == TR_OK && tr__made_fits(limits, out);
    return status;
}

// The chosen plan in full, and how its step goes. What was told by a shorter one is
// corrected.
static tr_status look_at(tr_search *search, tr_made *made, tr_planned *planned,
                         tr_error *err) {
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    tr_point point = tr__point_of(search->request, made->option.value);
    tr_status status = TR_OK;
    if (search->request->sliced) {
        status = tr__model_slice(search->request->sliced, (int)point.slices, err);
    }
    if (status == TR_OK) {
        status = tr__plan_draft(&point.plan, &plan, err);
    }
    if (status == TR_OK) {
        status = tr_simulate(plan, search->request->machine, &simulated, err);
    }
    if (status == TR_OK) {
        planned->plan = point.plan;
        const tr_simulation *result = tr_simulated_result(simulated);
        made->option.seconds = result->seconds;
        memcpy(made->option.bytes, result->planned_bytes, sizeof made->option.bytes);
        tr__timeline_draw(simulated, &planned->timeline);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    return status;
}

static void correct(tr_search *search, const tr_made *made) {
    for (size_t i = 0; i < search->made_count; i++) {
        if (same_values(&search->made[i].option, &made->option)) {
            search->made[i] = *made;
        }
    }
}

static tr_status choose(tr_search *search, const tr_limits *limits, tr_planned *planned,
                        tr_error *err) {
    tr_made made = {0};
    bool found = false;
    tr_status status = TR_OK;
    if (search->request->has_kept) {
        status = take_kept(search, limits, &made, &found, err);
        planned->kept = found;
    }
    for (int i = 0; i < TRIES && status == TR_OK; i++) {
        if (!found) {
            status = tr__search_fastest(search, limits, PLANS_MOST, &made, &found, err);
        }
        if (status != TR_OK || !found) {
            break;
        }
        status = look_at(search, &made, planned, err);
        if (status == TR_OK && tr__made_fits(limits, &made)) {
            planned->choice = made.option;
            return TR_OK;
        }
        correct(search, &made);
        found = planned->kept = false;
    }
    return status == TR_OK ? tr__planner_refuse(search, limits, err) : status;
}

// ---- beside it

static tr_status find_runners(tr_search *search, const tr_limits *limits,
                              tr_planned *planned, tr_error *err) {
    const tr_planner_option *last = &planned->choice;
    int scarce = tr__budget_scarce(search->request);
    tr_status status = TR_OK;
    for (int i = 0; i < TR_RUNNERS_MAX && status == TR_OK; i++) {
        tr_limits less = *limits;
        tr_made made;
        bool found = false;
        less.most[scarce] = (int64_t)(shares[i] * (double)tr__budget_bytes(
                                                      scarce, planned->choice.bytes));
        status = tr__search_fastest(search, &less, PLANS_BESIDE, &made, &found, err);
        if (status == TR_OK && found && !same_values(&made.option, last)) {
            planned->runner[planned->runner_count++] = made.option;
            last = &planned->runner[planned->runner_count - 1];
        }
    }
    return status;
}

static tr_status find_faster(tr_search *search, const tr_limits *limits,
                             tr_planned *planned, tr_error *err) {
    tr_made made;
    size_t count = 0;
    tr_status status = tr__search_nearest(search, limits, planned->choice.seconds, 1,
                                          &made, &count, err);
    planned->has_faster = status == TR_OK && count > 0 && !tr__made_fits(limits, &made);
    planned->faster = planned->has_faster ? made.option : planned->faster;
    return status;
}

static tr_status find_smallest(tr_search *search, const tr_limits *limits,
                               tr_planned *planned, tr_error *err) {
    tr_made made;
    tr_status status =
        tr__search_smallest(search, limits, tr__budget_scarce(search->request), &made,
                            &planned->has_smallest, err);
    if (status == TR_OK && planned->has_smallest) {
        planned->smallest = made.option;
        status = tr__planner_fullest(search, &made.option, planned->smallest_at,
                                     sizeof planned->smallest_at, err);
    }
    return status;
}

static size_t count_points(const tr_search *search) {
    return search->group_count * search->ladder_count;
}

static tr_status look_around(tr_search *search, const tr_limits *limits,
                             tr_planned *planned, tr_error *err) {
    tr_status status = find_faster(search, limits, planned, err);
    if (status == TR_OK) {
        status = find_runners(search, limits, planned, err);
    }
    return status == TR_OK ? find_smallest(search, limits, planned, err) : status;
}

static tr_status leave_slices(const tr_planner_request *request,
                              const tr_planned *planned, tr_error *err) {
    int64_t slices = planned->choice.value[TR_DIMENSION_vocabulary_slices];
    return request->sliced ? tr__model_slice(request->sliced, (int)slices, err) : TR_OK;
}

tr_status tr_planner_choose(const tr_planner_request *request, tr_planned **out,
                            tr_error *err) {
    tr_search *search = NULL;
    tr_limits limits = tr__planner_limits(request);
    tr_planned *planned = tr__calloc(1, sizeof *planned);
    tr_status status =
        planned ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to choose a plan");
    if (status == TR_OK) {
        planned->request = *request;
        planned->machine = tr__strdup(request->machine->name);
        status = tr__search_begin(request, request->free, &search, err);
    }
    if (status == TR_OK && search->group_count == 0) {
        status = tr__planner_impossible(search, err);
    }
    if (status == TR_OK) {
        status = choose(search, &limits, planned, err);
    }
    if (status == TR_OK && request->free && !request->choice_only) {
        status = look_around(search, &limits, planned, err);
    }
    if (status == TR_OK) {
        planned->points = count_points(search);
        planned->plans = search->made_count;
        status = leave_slices(request, planned, err);
    }
    tr__search_end(search);
    if (status != TR_OK) {
        tr_planned_destroy(planned);
        return status;
    }
    *out = planned;
    return TR_OK;
}

void tr_planned_destroy(tr_planned *planned) {
    if (planned) {
        tr__free(planned->machine);
        tr__free(planned);
    }
}

// ---- asking

const tr_plan_request *tr_planned_request(const tr_planned *planned) {
    return &planned->plan;
}

const tr_planner_option *tr_planned_choice(const tr_planned *planned) {
    return &planned->choice;
}

const tr_planner_option *tr_planned_runner_up(const tr_planned *planned, size_t i) {
    return i < planned->runner_count ? &planned->runner[i] : NULL;
}

const tr_planner_option *tr_planned_smallest(const tr_planned *planned) {
    return planned->has_smallest ? &planned->smallest : NULL;
}

bool tr_planned_is_kept(const tr_planned *planned) {
    return planned->kept;
}
