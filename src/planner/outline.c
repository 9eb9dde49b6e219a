#include "planner/outline.h"

#include "base/checked.h"
#include "plan/schedules/schedule.h"

int tr__outline_chunk(const tr_outline *s, int u) {
    return s->chunk ? s->chunk[u] : 0;
}

int64_t tr__outline_stage(const tr_outline *s, int u) {
    return tr__chunk_stage(&s->chunks, tr__outline_chunk(s, u));
}

bool tr__outline_is_own(const tr_outline *s, int u) {
    return tr__outline_stage(s, u) == 0;
}

static void compare_cuts(tr_outline *s) {
    double here = 0, there = 0;
    s->cut_alike = true;
    for (int u = 0; u < s->units && s->chunk; u++) {
        double bytes = (double)s->kernels->units[u].parameters;
        here += tr__outline_is_own(s, u) ? bytes : 0;
        there += s->class->own[u] ? bytes : 0;
        s->cut_alike = s->cut_alike && tr__outline_is_own(s, u) == s->class->own[u];
    }
    s->part = s->cut_alike || here >= there ? 1 : here / there;
}

tr_outline tr__outline_of(const tr_search *search, const tr_group *group, size_t rung) {
    const tr_plan_request *r = &group->point.plan;
    tr_outline s = {.request = r,
                    .kernels = group->kernels,
                    .chunks = tr__pipeline_chunks(r),
                    .weights_later = tr__weights_come_later(r),
                    .class = group->class,
                    .units = r->model->unit_count,
                    .again = search->ladder[rung],
                    .steps = r->accumulation_steps,
                    .wave = r->wave,
                    .inputs_leave = r->boundary_placement != TR_SPACE_DEVICE,
                    .saved_leave = r->saved_placement != TR_SPACE_DEVICE,
                    .discrete = r->discrete,
                    .twice = r->passes > 1};
    if (s.again < 0 || s.again > s.units - 1) {
        s.again = s.units - 1;
    }
    if (group->class->whole_wave) {
        s.wave = s.steps;
    }
    s.wave = tr__max_i64(1, tr__min_i64(s.wave, s.steps));
    s.chunk =
        tr__kernels_cut(group->kernels, s.units, tr__chunk_count(&s.chunks), s.again);
    compare_cuts(&s);
    return s;
}

bool tr__outline_is_again(const tr_outline *s, int u) {
    return u < s->again && s->kernels->again[u].worth;
}

const tr_unit_figures *tr__outline_unit(const tr_outline *s, int u) {
    return tr__outline_is_again(s, u) ? &s->kernels->again[u] : &s->kernels->units[u];
}

bool tr__outline_input_leaves(const tr_outline *s, int u) {
    return s->inputs_leave && tr__outline_is_again(s, u) &&
           tr__outline_unit(s, u)->input > 0;
}

// What the last unit saves is needed at once.
bool tr__outline_saved_leave(const tr_outline *s, int u) {
    return s->saved_leave && !tr__outline_is_again(s, u) && u < s->units - 1;
}

// What unit u keeps of each micro-batch until its backward.
int64_t tr__outline_kept(const tr_outline *s, int u, int64_t *boundary) {
    const tr_unit_figures *unit = tr__outline_unit(s, u);
    bool below = u > 0 && tr__outline_unit(s, u - 1)->keeps_output;
    bool stays = (unit->keeps_input || tr__outline_is_again(s, u) || below) &&
                 !tr__outline_input_leaves(s, u);
    *boundary = stays ? unit->input : 0;
    return tr__outline_is_again(s, u) || tr__outline_saved_leave(s, u) ? 0
                                                                       : unit->saved;
}

// With a wave of one, nothing of units computes while a forward waits for other ranks.
// Behind a chunk's last unit other turns may go on.
double tr__outline_waiting(const tr_outline *s, int u) {
    const tr_unit_figures *unit = tr__outline_unit(s, u);
    bool ends = s->chunk && (u == s->units - 1 || s->chunk[u + 1] != s->chunk[u]);
    return s->wave > 1 ? 0 : unit->messages - (ends ? unit->messages_behind : 0);
}

double tr__outline_waiting_behind(const tr_outline *s, int u) {
    return s->wave > 1 ? 0 : tr__outline_unit(s, u)->messages_behind;
}
