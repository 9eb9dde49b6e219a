#include "plan/passes/visits.h"

#include "base/memory.h"
#include "ops/flat/zero/zero.h"

static uint32_t flats_of(const tr_plan_step *step, tr_place place) {
    const tr_program *program = tr__payload_program(step);
    return program ? tr__program_flats(program, place) : 0;
}

static void find(const tr_plan *plan, tr_sequence_kind kind, tr_visits *out) {
    const tr_sequence *steps = &plan->sequences[kind];
    for (size_t i = 0; i < steps->count; i++) {
        const tr_plan_step *step = &steps->steps[i];
        int64_t wave = step->micro / plan->request.wave;
        bool any = out->count > 0;
        tr_visit *last = &out->visits[any ? out->count - 1 : 0];
        out->of[i] = -1;
        if (!tr__step_is_of_unit(step)) {
            continue;
        }
        if (tr__step_is_of_wave(step) && any) {
            wave = last->wave; // it is of no micro-batch
        }
        if (!any || last->unit != step->unit || last->segment != step->segment ||
            last->wave != wave) {
            last = &out->visits[out->count++];
            *last = (tr_visit){.unit = step->unit, step->segment, wave};
        }
        out->of[i] = (int32_t)out->count - 1;
        last->reads |= flats_of(step, TR_PLACE_PARAM);
        last->makes |= flats_of(step, TR_PLACE_PARAM_GRAD);
    }
}

// What clears gradients is of the visit that makes them.
static void take_clears(const tr_plan *plan, tr_sequence_kind kind, tr_visits *out) {
    const tr_sequence *steps = &plan->sequences[kind];
    int32_t next = -1;
    for (size_t i = steps->count; i-- > 0;) {
        const tr_plan_step *step = &steps->steps[i];
        if (step->subject == TR_OF_FLAT && tr__step_op(plan, step) == &tr__op_zero) {
            out->of[i] = next;
        }
        next = out->of[i] >= 0 ? out->of[i] : next;
    }
}

// Backwards: a gradient is complete with the last visit that adds to it, of its scope.
// last: [flats] 1 + the scope of the next visit that adds; 0: none.
static void find_leaving(const tr_plan *plan, tr_visits *out, int64_t *last) {
    for (size_t v = out->count; v-- > 0;) {
        tr_visit *at = &out->visits[v];
        const tr_plan_unit *unit = &plan->units[at->unit];
        for (int k = 0; k < unit->program->flat_count; k++) {
            int flat = unit->flats[k];
            int64_t scope = 1 + tr__gradient_scope(plan, flat, at->unit, at->wave);
            if ((at->makes >> k & 1) && last[flat] != scope) {
                at->complete |= (uint32_t)(last[flat] == 0) << k;
                last[flat] = scope;
                at->leave |= UINT32_C(1) << k;
            }
        }
    }
}

// What stays on the device is brought once in a step, at the first visit that reads it,
// because the update before it was elsewhere; the rest for every visit that does not
// follow another one which reads it. Evaluations find what stays brought by the
// parameter sync.
static void find_arriving(const tr_plan *plan, tr_sequence_kind kind, tr_visits *out,
                          int64_t *seen) {
    int stage = tr__plan_stage(plan);
    bool train = kind == TR_SEQUENCE_TRAIN;
    bool lives_here = plan->request.param_placement == TR_SPACE_DEVICE;
    for (size_t v = 0; v < out->count; v++) {
        tr_visit *at = &out->visits[v];
        const tr_plan_unit *unit = &plan->units[at->unit];
        for (int k = 0; k < unit->program->flat_count; k++) {
            int64_t last = seen[unit->flats[k]];
            uint32_t bit = UINT32_C(1) << k;
            bool first = last == 0, follows = last > 0 && last == (int64_t)v;
            if (!(at->reads & bit)) {
                continue;
            }
            const tr_flat *flat = &plan->flats[unit->flats[k]];
            bool changes = stage > 0 && train && !flat->frozen;
            bool gather = stage == 3 ? !follows : changes && first;
            bool updated_here = !flat->offloaded;
            bool fetch = lives_here ? !updated_here && train && first : !follows;
            at->gather |= gather ? bit : 0;
            at->fetch |= fetch ? bit : 0;
            seen[unit->flats[k]] = (int64_t)v + 1;
        }
    }
}

tr_status tr__visits_find(const tr_plan *plan, tr_sequence_kind kind, tr_visits *out,
                          tr_error *err) {
    size_t steps = plan->sequences[kind].count;
    int64_t *marks = tr__calloc(plan->flat_count, sizeof *marks);
    int64_t *seen = tr__calloc(plan->flat_count, sizeof *seen);
    *out = (tr_visits){tr__calloc(steps, sizeof *out->visits), 0,
                       tr__calloc(steps, sizeof *out->of)};
    bool good = marks && seen && out->visits && out->of;
    if (good) {
        find(plan, kind, out);
        take_clears(plan, kind, out);
        find_leaving(plan, out, marks);
        find_arriving(plan, kind, out, seen);
    }
    tr__free(marks);
    tr__free(seen);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to plan what moves");
}

void tr__visits_clear(tr_visits *visits) {
    tr__free(visits->visits);
    tr__free(visits->of);
}
