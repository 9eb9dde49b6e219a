// A plan of the search, made and walked. Each point is made once.
#include "base/checked.h"
#include "base/memory.h"
#include "models/models.h"
#include "plan/flow/passes.h"
#include "plan/schedules/schedule.h"
#include "plan/units/offsets.h"
#include "planner/planner.h"

#include <string.h>

// A plan of more steps than this is not unrolled over all its waves: those between the
// first and the last are alike. With stages, each of them has a plan that is made.
enum { LONG = 1 << 14, LONG_OF_STAGES = 1 << 11, WAVES_MADE = 3 };

static tr_made *find_made(const tr_search *search, const int64_t *value) {
    for (size_t i = 0; i < search->made_count; i++) {
        if (memcmp(search->made[i].option.value, value,
                   sizeof search->made[i].option.value) == 0) {
            return &search->made[i];
        }
    }
    return NULL;
}

static bool exceeds(const tr_limits *limits, const int64_t bytes[TR_SPACES]) {
    int64_t excess[TR_BUDGETS];
    return limits && tr__limits_excess(limits, bytes, excess) > 0;
}

// What stages take until now, at most, and whether that is too much.
typedef struct looking {
    const tr_limits *limits;
    tr_made *made;
} looking;

static bool goes_on(void *user, const int64_t bytes[TR_SPACES]) {
    const looking *l = user;
    for (int s = 0; s < TR_SPACES; s++) {
        l->made->option.bytes[s] = tr__max_i64(l->made->option.bytes[s], bytes[s]);
    }
    l->made->partial = exceeds(l->limits, l->made->option.bytes);
    return !l->made->partial;
}

// Of one plan: its bytes, of the stage that takes most, and its time.
static tr_status walk(tr_search *search, const tr_plan_request *request,
                      const tr_limits *limits, tr_made *out, int64_t *record,
                      tr_error *err) {
    looking l = {limits, out};
    const tr_stage_watch watch = {goes_on, &l};
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    tr_status status = tr__plan_draft(request, &plan, err);
    if (status == TR_OK) {
        search->steps += (int64_t)plan->sequences[TR_SEQUENCE_TRAIN].count;
        *record = plan->buffers[plan->statistics.buffer].bytes;
        status = tr__simulate_watched(plan, search->request->machine, &watch,
                                      &simulated, err);
    }
    if (simulated) {
        const tr_simulation *result = tr_simulated_result(simulated);
        out->option.seconds = result->seconds;
        memcpy(out->option.bytes, result->planned_bytes, sizeof out->option.bytes);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    return status;
}

static tr_status walk_whole(tr_search *search, const tr_plan_request *request,
                            const tr_limits *limits, tr_made *out, tr_error *err) {
    int64_t record;
    return walk(search, request, limits, out, &record, err);
}

// The same plan of `waves` waves, the last as short as that of the whole.
static tr_plan_request shortened(const tr_plan_request *r, int64_t waves) {
    tr_plan_request fewer = *r;
    int64_t last =
        r->accumulation_steps - (r->accumulation_steps - 1) / r->wave * r->wave;
    fewer.accumulation_steps = (waves - 1) * r->wave + last;
    fewer.train_batch_size =
        fewer.accumulation_steps * r->micro_batch * tr__data_ranks(r);
    return fewer;
}

// Waves whose time together tells of the next so many: stages with several chunks take
// them through one chunk before the next, and where gradients of weights fill the gaps
// of a pipeline, waves one after the other take unlike times.
static int64_t waves_together(const tr_plan_request *r) {
    bool together = r->virtual_stages > 1 || tr__weights_come_later(r);
    return together ? r->mesh.size[TR_AXIS_PIPELINE] : 1;
}

// Waves of a short plan: with stages, all of them are at work in it. Of those that go
// together as many are left over as in the whole.
static int64_t waves_made(const tr_plan_request *r) {
    int64_t together = waves_together(r),
            waves = tr__ceil_div(r->accumulation_steps, r->wave);
    int64_t least = WAVES_MADE * together + r->mesh.size[TR_AXIS_PIPELINE] - 1;
    int64_t left_over = waves > least ? (waves - least) % together : 0;
    return least + left_over;
}

// Two and three waves tell what all take: each further one takes the time of the third,
// and an entry for each micro-batch in the record. (Of chunks, the next so many.)
static tr_status walk_short(tr_search *search, const tr_plan_request *r,
                            const tr_limits *limits, tr_made *out, tr_error *err) {
    tr_made two = {0};
    int64_t made = waves_made(r), together = waves_together(r);
    tr_plan_request fewer = shortened(r, made - together), more = shortened(r, made);
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave), record = 0, ignored;
    tr_status status = walk(search, &more, limits, out, &record, err);
    if (status == TR_OK && !out->partial) {
        status = walk(search, &fewer, NULL, &two, &ignored, err);
    }
    if (status != TR_OK || out->partial) {
        return status;
    }
    int64_t left_out = r->accumulation_steps - more.accumulation_steps;
    int64_t bytes =
        left_out * TR_SUMS * (int64_t)sizeof(double) * tr_mesh_ranks(&r->mesh);
    out->option.seconds += (double)(waves - made) *
                           (out->option.seconds - two.option.seconds) /
                           (double)together;
    out->option.bytes[TR_SPACE_DEVICE] +=
        tr__round_up(record + bytes, TR_ALIGNMENT) - tr__round_up(record, TR_ALIGNMENT);
    return TR_OK;
}

// Is it too long to be unrolled, and do the two that tell of it take fewer waves?
static bool is_long(const tr_plan_request *r) {
    // In two passes further waves also keep what the loss needs of them.
    int64_t steps = tr__has_stages(r) ? LONG_OF_STAGES : LONG;
    int64_t both = 2 * waves_made(r) - waves_together(r);
    return r->passes < 2 && r->accumulation_steps > steps / r->model->unit_count &&
           r->accumulation_steps > both * r->wave;
}

// With a wave that is left open as the plan chooses it, if it can be long.
static tr_plan_request with_wave(const tr_search *search, const tr_plan_request *r) {
    bool whole = false;
    for (size_t i = 0; i < search->class_count; i++) {
        whole = whole || search->classes[i]->whole_wave;
    }
    tr_plan_request chosen = *r;
    chosen.wave = r->wave == 0 && !whole ? 1 : r->wave;
    return chosen;
}

static bool shortens(const tr_plan_request *r) {
    return r->wave > 0 && is_long(r);
}

bool tr__search_shortens(const tr_search *search, const tr_plan_request *r,
                         tr_plan_request *made) {
    tr_plan_request chosen = with_wave(search, r);
    bool shorter = shortens(&chosen);
    *made = shorter ? shortened(&chosen, waves_made(&chosen)) : *r;
    return shorter;
}

static tr_status walk_any(tr_search *search, const tr_plan_request *r,
                          const tr_limits *limits, tr_made *out, tr_error *err) {
    tr_plan_request chosen = with_wave(search, r);
    return shortens(&chosen) ? walk_short(search, &chosen, limits, out, err)
                             : walk_whole(search, r, limits, out, err);
}

// In place of what is known of it, or as one more.
static tr_status note_made(tr_search *search, const tr_made *made, tr_made *known,
                           tr_error *err) {
    if (known) {
        *known = *made;
        return TR_OK;
    }
    if (!tr__grow((void **)&search->made, &search->made_capacity,
                  search->made_count + 1, sizeof *search->made)) {
        return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
    }
    search->made[search->made_count++] = *made;
    if (search->request->tell) {
        search->request->tell(search->request->tell_user, search->made_count);
    }
    return TR_OK;
}

tr_status tr__search_make(tr_search *search, const tr_point *point,
                          const tr_limits *limits, tr_made *out, tr_error *err) {
    tr_error why = {0};
    tr_status status = TR_OK;
    tr_made made = {.possible = true};
    tr__point_values(point, made.option.value);
    tr_made *known = find_made(search, made.option.value);
    if (known && (!known->partial || exceeds(limits, known->option.bytes))) {
        *out = *known;
        return TR_OK;
    }
    if (search->request->sliced) {
        status = tr__model_slice(search->request->sliced, (int)point->slices, &why);
    }
    if (status == TR_OK) {
        status = walk_any(search, &point->plan, limits, &made, &why);
    }
    if (status == TR_USAGE) {
        made.possible = false;
        search->why = search->why.status == TR_OK ? why : search->why;
    } else if (status != TR_OK) {
        return tr_fail(err, status, "%s", why.message);
    }
    *out = made;
    return note_made(search, &made, known, err);
}
