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

static const tr_made *find_made(const tr_search *search, const int64_t *value) {
    for (size_t i = 0; i < search->made_count; i++) {
        if (memcmp(search->made[i].option.value, value,
                   sizeof search->made[i].option.value) == 0) {
            return &search->made[i];
        }
    }
    return NULL;
}

// Of one plan: its bytes, of the stage that takes most, and its time.
static tr_status walk(tr_search *search, const tr_plan_request *request,
                      tr_planner_option *out, int64_t *record, tr_error *err) {
    tr_plan *plan = NULL;
    tr_simulated *simulated = NULL;
    tr_status status = tr__plan_draft(request, &plan, err);
    if (status == TR_OK) {
        search->steps += (int64_t)plan->sequences[TR_SEQUENCE_TRAIN].count;
        status = tr_simulate(plan, search->request->machine, &simulated, err);
    }
    if (status == TR_OK) {
        const tr_simulation *result = tr_simulated_result(simulated);
        *record = plan->buffers[plan->statistics.buffer].bytes;
        out->seconds = result->seconds;
        memcpy(out->bytes, result->planned_bytes, sizeof out->bytes);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    return status;
}

static tr_status walk_whole(tr_search *search, const tr_plan_request *request,
                            tr_planner_option *out, tr_error *err) {
    int64_t record;
    return walk(search, request, out, &record, err);
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
                            tr_planner_option *out, tr_error *err) {
    tr_planner_option two = {0};
    int64_t made = waves_made(r), together = waves_together(r);
    tr_plan_request fewer = shortened(r, made - together), more = shortened(r, made);
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave), record = 0;
    tr_status status = walk(search, &fewer, &two, &record, err);
    if (status == TR_OK) {
        status = walk(search, &more, out, &record, err);
    }
    if (status != TR_OK) {
        return status;
    }
    int64_t left_out = r->accumulation_steps - more.accumulation_steps;
    int64_t bytes =
        left_out * TR_SUMS * (int64_t)sizeof(double) * tr_mesh_ranks(&r->mesh);
    out->seconds +=
        (double)(waves - made) * (out->seconds - two.seconds) / (double)together;
    out->bytes[TR_SPACE_DEVICE] +=
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

// Of a wave that is left open.
static tr_status walk_open(tr_search *search, const tr_plan_request *r,
                           tr_planner_option *out, tr_error *err) {
    bool whole = false;
    for (size_t i = 0; i < search->class_count; i++) {
        whole = whole || search->classes[i]->whole_wave;
    }
    tr_plan_request one = *r;
    one.wave = 1;
    return whole || !is_long(&one) ? walk_whole(search, r, out, err)
                                   : walk_short(search, &one, out, err);
}

static tr_status walk_any(tr_search *search, const tr_plan_request *r,
                          tr_planner_option *out, tr_error *err) {
    return r->wave == 0 ? walk_open(search, r, out, err)
           : is_long(r) ? walk_short(search, r, out, err)
                        : walk_whole(search, r, out, err);
}

tr_status tr__search_make(tr_search *search, const tr_point *point, tr_made *out,
                          tr_error *err) {
    tr_error why = {0};
    tr_status status = TR_OK;
    tr_made made = {.possible = true};
    tr__point_values(point, made.option.value);
    const tr_made *known = find_made(search, made.option.value);
    if (known) {
        *out = *known;
        return TR_OK;
    }
    if (search->request->sliced) {
        status = tr__model_slice(search->request->sliced, (int)point->slices, &why);
    }
    if (status == TR_OK) {
        status = walk_any(search, &point->plan, &made.option, &why);
    }
    if (status == TR_USAGE) {
        made.possible = false;
        search->why = search->why.status == TR_OK ? why : search->why;
    } else if (status != TR_OK) {
        return tr_fail(err, status, "%s", why.message);
    }
    if (!tr__grow((void **)&search->made, &search->made_capacity,
                  search->made_count + 1, sizeof *search->made)) {
        return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
    }
    search->made[search->made_count++] = made;
    if (search->request->tell) {
        search->request->tell(search->request->tell_user, search->made_count);
    }
    *out = made;
    return TR_OK;
}
