// Pass: what ranks bring together and sum, when, and who waits for it.
//
// The steps of a sequence are a row of visits: a visit is a run of steps that work on
// one segment of one unit, in one wave. Around them:
//
//     stage 0   a flat's gradients are reduced and gathered once they are complete
//     stage 1   they are reduced then; parameters are gathered in the next step, before
//               the first visit that reads them
//     stage 2   gradients are reduced after the last visit of each wave that adds to
//               them (slices of a tied tensor: of each unit in it); parameters as above
//     stage 3   gradients likewise; parameters are gathered for each visit that reads
//               them, and let go after it
//
// With overlap, what a visit reads is gathered while the visit before it works, and
// what it has made is reduced while the visit after it works: so two units' gathered
// parameters and two units' unreduced gradients live at a time. Steps of the
// communication stream are done in their order, so waiting for one waits for all
// before.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/work.h"

typedef struct visit {
    int32_t unit, segment;
    int64_t wave;
    uint32_t reads;  // of the unit's flats: parameters
    uint32_t makes;  // gradients
    uint32_t reduce; // of those: no later visit adds to them before they are reduced
    uint32_t gather; // of those it reads: not there from an earlier gather
} visit;

typedef struct walk {
    tr_plan *plan;
    tr_sequence_kind kind;
    visit *visits;
    size_t count;
    int *visit_of; // [steps] -1: none
    tr_sequence edited;
    int32_t issued;     // communication steps so far
    int32_t *gathered;  // [flats] how many were issued with its last gather
    int32_t reduced[2]; // the same with the reductions of the last two visits
    bool *summed;       // [flats] a reduction has written this rank's part
    tr_error *err;
    tr_status status;
} walk;

static int stage_of(const walk *w) {
    return tr__plan_stage(w->plan);
}

// ---- visits
// --------------------------------------------------------------------------

static uint32_t flats_of(const walk *w, const tr_plan_step *step, tr_place place) {
    const tr_program *program = tr__step_program(w->plan, step, w->kind);
    return program ? tr__program_flats(program, place) : 0;
}

static void find_visits(walk *w) {
    const tr_sequence *steps = &w->plan->sequences[w->kind];
    for (size_t i = 0; i < steps->count; i++) {
        const tr_plan_step *step = &steps->steps[i];
        int64_t wave = step->micro / w->plan->request.wave;
        visit *last = w->count ? &w->visits[w->count - 1] : NULL;
        w->visit_of[i] = -1;
        if (!tr__step_is_of_unit(step)) {
            continue;
        }
        if (step->kind == TR_STEP_combine && last) {
            wave = last->wave; // it is of no micro-batch
        }
        if (!last || last->unit != step->unit || last->segment != step->segment ||
            last->wave != wave) {
            last = &w->visits[w->count++];
            *last = (visit){step->unit, step->segment, wave, 0, 0, 0, 0};
        }
        w->visit_of[i] = (int)w->count - 1;
        last->reads |= flats_of(w, step, TR_PLACE_PARAM);
        last->makes |= flats_of(w, step, TR_PLACE_PARAM_GRAD);
    }
}

// Backwards: a gradient is complete with the last visit that adds to it, of its scope.
// last: [flats] 1 + the scope of the next visit that adds; 0: none.
static void find_reductions(walk *w, int64_t *last) {
    for (size_t v = w->count; v-- > 0;) {
        visit *at = &w->visits[v];
        const tr_plan_unit *unit = &w->plan->units[at->unit];
        for (int k = 0; k < unit->program->flat_count; k++) {
            int flat = unit->flats[k];
            int64_t scope = 1 + tr__gradient_scope(w->plan, flat, at->unit, at->wave);
            if ((at->makes >> k & 1) && last[flat] != scope) {
                last[flat] = scope;
                at->reduce |= UINT32_C(1) << k;
            }
        }
    }
}

// seen: [flats] 1 + the last visit that read the flat; 0: none.
static void find_gathers(walk *w, int64_t *seen) {
    int stage = stage_of(w);
    bool needs = stage == 3 || (stage > 0 && w->kind == TR_SEQUENCE_TRAIN);
    for (size_t v = 0; v < w->count && needs; v++) {
        visit *at = &w->visits[v];
        const tr_plan_unit *unit = &w->plan->units[at->unit];
        for (int k = 0; k < unit->program->flat_count; k++) {
            int64_t last = seen[unit->flats[k]];
            if (at->reads >> k & 1) {
                bool there = last > 0 && (stage < 3 || last == (int64_t)v);
                at->gather |= there ? 0 : UINT32_C(1) << k;
                seen[unit->flats[k]] = (int64_t)v + 1;
            }
        }
    }
}

// ---- writing
// -------------------------------------------------------------------------

static void add(walk *w, tr_plan_step step) {
    if (w->status == TR_OK) {
        w->issued += step.stream == TR_STREAM_COMM;
        w->status = tr__sequence_add(&w->edited, step, w->err);
    }
}

static void add_gather(walk *w, tr_part part, int flat) {
    add(w, (tr_plan_step){.kind = TR_STEP_gather,
                          .stream = TR_STREAM_COMM,
                          .part = part,
                          .unit = (int32_t)flat});
}

static void add_gathers(walk *w, const visit *at) {
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    for (int k = 0; k < unit->program->flat_count; k++) {
        if (at->gather >> k & 1) {
            add_gather(w, TR_PART_PARAM, unit->flats[k]);
            w->gathered[unit->flats[k]] = w->issued;
        }
    }
}

static void add_reductions(walk *w, const visit *at) {
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    for (int k = 0; k < unit->program->flat_count; k++) {
        int flat = unit->flats[k];
        if (at->reduce >> k & 1) {
            add(w, (tr_plan_step){.kind = TR_STEP_reduce,
                                  .stream = TR_STREAM_COMM,
                                  .unit = (int32_t)flat,
                                  .fresh = !w->summed[flat]});
            w->summed[flat] = true;
            if (stage_of(w) == 0) {
                add_gather(w, TR_PART_GRAD, flat);
            }
        }
    }
    w->reduced[0] = w->reduced[1];
    w->reduced[1] = at->reduce && stage_of(w) >= 2 ? w->issued : w->reduced[0];
}

// Before visit v: what the next one reads, then what the one before has made.
static void begin_visit(walk *w, size_t v) {
    if (w->plan->request.no_overlap) {
        if (v > 0) {
            add_reductions(w, &w->visits[v - 1]);
        }
        add_gathers(w, &w->visits[v]);
        return;
    }
    if (v == 0) {
        add_gathers(w, &w->visits[0]);
    }
    if (v + 1 < w->count) {
        add_gathers(w, &w->visits[v + 1]);
    }
    if (v > 0) {
        add_reductions(w, &w->visits[v - 1]);
    }
}

// What must be done before visit v runs: its own gathers, and, so that no more than two
// units' gradients wait to be reduced, the reductions of the visit before the last one.
static int32_t wait_of(const walk *w, size_t v) {
    const visit *at = &w->visits[v];
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    int32_t wait = w->reduced[0];
    if (w->plan->request.no_overlap) {
        return w->issued;
    }
    for (int k = 0; k < unit->program->flat_count; k++) {
        if ((at->reads >> k & 1) && w->gathered[unit->flats[k]] > wait) {
            wait = w->gathered[unit->flats[k]];
        }
    }
    return wait;
}

// The norm needs all sums; the update needs what all ranks have found.
static void add_norm(walk *w, tr_plan_step step) {
    if (w->count > 0) {
        add_reductions(w, &w->visits[w->count - 1]);
    }
    step.wait = w->issued;
    add(w, step);
    add_gather(w, TR_PART_RECORD, 0);
}

static void write_steps(walk *w) {
    const tr_sequence *old = &w->plan->sequences[w->kind];
    size_t update_begin = 0;
    int last = -1;
    for (size_t i = 0; i < old->count && w->status == TR_OK; i++) {
        tr_plan_step step = old->steps[i];
        if (w->visit_of[i] > last) {
            last = w->visit_of[i];
            begin_visit(w, (size_t)last);
            step.wait = wait_of(w, (size_t)last);
        }
        update_begin = i == w->plan->update_begin ? w->edited.count : update_begin;
        if (step.kind == TR_STEP_norm) {
            add_norm(w, step);
        } else {
            add(w, step);
        }
    }
    if (w->kind == TR_SEQUENCE_TRAIN) {
        w->plan->update_begin = update_begin;
    }
}

static void edit(walk *w) {
    int64_t *marks = tr__calloc(w->plan->flat_count, sizeof *marks);
    int64_t *seen = tr__calloc(w->plan->flat_count, sizeof *seen);
    size_t count = w->plan->sequences[w->kind].count;
    w->visits = tr__calloc(count, sizeof *w->visits);
    w->visit_of = tr__calloc(count, sizeof *w->visit_of);
    w->gathered = tr__calloc(w->plan->flat_count, sizeof *w->gathered);
    w->summed = tr__calloc(w->plan->flat_count, sizeof *w->summed);
    if (!marks || !seen || !w->visits || !w->visit_of || !w->gathered || !w->summed) {
        w->status = tr_fail(w->err, TR_MEMORY, "no memory to plan communication");
    } else {
        find_visits(w);
        find_reductions(w, marks);
        find_gathers(w, seen);
        write_steps(w);
    }
    tr__free(marks);
    tr__free(seen);
    tr__free(w->visits);
    tr__free(w->visit_of);
    tr__free(w->gathered);
    tr__free(w->summed);
}

// ---- how much
// ------------------------------------------------------------------------

static void count_step(tr_plan *plan, const tr_plan_step *step) {
    tr_transfer transfers[TR_TRANSFERS_AT_ONCE];
    size_t next = 0;
    int count;
    while ((count = tr__step_transfers(plan, step, &next, transfers)) > 0) {
        for (int i = 0; i < count; i++) {
            int64_t sent = tr__transfer_sent(plan, &transfers[i]);
            bool gather = transfers[i].kind == TR_COMM_GATHER;
            *(gather ? &plan->traffic.gather : &plan->traffic.reduce) += sent;
        }
    }
}

// The record: what every rank has of it, so that all have the same layout.
static void lay_record(tr_plan *plan) {
    int64_t blocks = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        int64_t most = tr__min_i64(plan->flats[f].shard, plan->flats[f].count);
        blocks += tr__ceil_div(most, TR_SHARD_ELEMENTS);
    }
    plan->record.sums = TR_RECORD_FLAGS;
    plan->record.partials =
        plan->record.sums + plan->request.accumulation_steps * TR_SUMS;
    plan->record.doubles = plan->record.partials + blocks;
}

tr_status tr__pass_communicate(tr_plan *plan, tr_error *err) {
    static const tr_sequence_kind kinds[] = {TR_SEQUENCE_TRAIN, TR_SEQUENCE_EVALUATE};
    if (plan->request.inference) {
        return TR_OK;
    }
    lay_record(plan);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && plan->request.ranks > 1;
         k++) {
        walk w = {.plan = plan, .kind = kinds[k], .err = err};
        edit(&w);
        if (w.status != TR_OK) {
            tr__free(w.edited.steps);
            return w.status;
        }
        tr__free(plan->sequences[kinds[k]].steps);
        plan->sequences[kinds[k]] = w.edited;
    }
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < train->count; i++) {
        count_step(plan, &train->steps[i]);
    }
    return TR_OK;
}
