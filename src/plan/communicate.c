// Pass: what moves between ranks and between memory spaces, and when. Who waits for it
// follows from what steps access (schedule.c); limits bound what is under way.
//
// Around the visits of a sequence (visits.h), parameters arrive: read from NVMe,
// fetched from where they live, then gathered from the other ranks, as far as they have
// to be; and gradients leave: reduced over ranks, then evicted to where the update is
// and measured there, or written to NVMe.
//
//     stage 0   a flat's gradients are reduced and gathered once they are complete
//     stage 1   they are reduced then; parameters are gathered in the next step, before
//               the first visit that reads them
//     stage 2   gradients are reduced after the last visit of each wave that adds to
//               them (slices of a tied tensor: of each unit in it); parameters as above
//     stage 3   gradients likewise; parameters are gathered for each visit that reads
//               them, and let go after it
//
// With overlap, each part of an arrival goes on during a visit before the one that it
// is for, and each part of a departure during one after it: so a few units' parameters
// and gradients live at a time.
#include "base/memory.h"
#include "plan/editor.h"
#include "plan/passes.h"
#include "plan/residency.h"
#include "plan/visits.h"

// The parts of an arrival and of a departure, in their order.
typedef enum arrival { READ, FETCH, GATHER, ARRIVALS } arrival;
typedef enum departure { REDUCE, EVICT, ADD, SQUARE, WRITE, DEPARTURES } departure;

// The last step of each stream that goes on beside computing, by its id; 0: none.
typedef struct issue {
    int32_t of[TR_STREAMS];
} issue;

typedef struct walk {
    tr_plan *plan;
    tr_sequence_kind kind;
    tr_visits visits;
    tr_editor editor;
    issue last; // so far
    // Visits that each part of an arrival begins before its own, that each part of a
    // departure comes after, and the most of the latter.
    size_t ahead[ARRIVALS], after[DEPARTURES], behind;
    bool reads, writes; // parameters from NVMe, gradients to it
    bool squares;       // gradients are measured on the host as soon as they are there
    bool adds;          // further gradients are added on the host when they are there
    issue *came;        // [visits] the last steps that bring it something
    issue *left;        // [visits] the last steps that take its gradients
    // [flats] some of its gradients have been reduced, have left, are there in this
    // step
    bool *reduced, *evicted, *arrived;
    tr_error *err;
} walk;

static bool grads_are_offloaded(const walk *w) {
    return w->plan->request.optimizer_placement != TR_SPACE_DEVICE;
}

static int32_t add(walk *w, tr_plan_step step) {
    int32_t id = tr__edit_add(&w->editor, step);
    if (tr__stream_is_beside(step.stream)) {
        w->last.of[step.stream] = id;
    }
    return id;
}

// The step begins when all of these are done.
static void limit(walk *w, const issue *before, int32_t after) {
    for (int s = 0; s < TR_STREAMS; s++) {
        tr__edit_limit(&w->editor, before->of[s], after);
    }
}

// ---- arrivals

// All that this rank has of a part of the flat, between the file and staging.
static int32_t add_transfer(walk *w, tr_plan_step_kind kind, tr_part part, int flat) {
    const tr_flat_range *range = tr__flat_range(&w->plan->flats[flat], part);
    return add(w, (tr_plan_step){.kind = kind,
                                 .stream = TR_STREAM_NVME,
                                 .guard = TR_GUARD_ALWAYS,
                                 .part = part,
                                 .unit = (int32_t)flat,
                                 .first = range->first,
                                 .count = range->count,
                                 .slot = -1});
}

static int32_t add_fetch(walk *w, int flat) {
    return add(w, (tr_plan_step){.kind = TR_STEP_fetch,
                                 .stream = TR_STREAM_COPY,
                                 .guard = TR_GUARD_ALWAYS,
                                 .part = TR_PART_PARAM,
                                 .unit = (int32_t)flat});
}

// Every rank says how it fares; all else is cut along the data axis.
static tr_axes group_of(tr_part part) {
    return part == TR_PART_STATISTICS ? TR_ON_ALL : TR_ON_DATA;
}

static int32_t add_gather(walk *w, tr_part part, int flat) {
    tr_space space = part == TR_PART_STATISTICS ? TR_SPACE_HOST
                     : part == TR_PART_NORMS    ? tr__norms_space(w->plan)
                                                : TR_SPACE_DEVICE;
    return add(w, (tr_plan_step){.kind = TR_STEP_gather,
                                 .stream = tr__exchange_stream(w->plan, space),
                                 .guard = part == TR_PART_NORMS ? TR_GUARD_APPLIED
                                                                : TR_GUARD_ALWAYS,
                                 .part = part,
                                 .group = group_of(part),
                                 .unit = (int32_t)flat});
}

// Before visit `now`: what is staged for that visit has been fetched then, so that no
// more than the visits ahead of it have staging.
static int32_t add_read(walk *w, int flat, size_t now) {
    int32_t id = add_transfer(w, TR_STEP_read, tr__used_part(w->plan), flat);
    tr__edit_limit(&w->editor, w->came[now].of[TR_STREAM_COPY], id);
    return id;
}

// This part of the arrivals of visit v, before visit `now`.
static void bring(walk *w, size_t v, arrival part, size_t now) {
    const tr_visit *at = &w->visits.visits[v];
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    issue *came = &w->came[v];
    for (int k = 0; k < unit->program->flat_count; k++) {
        int flat = unit->flats[k];
        bool fetches = at->fetch >> k & 1, gathers = at->gather >> k & 1;
        if (part == READ && fetches && w->reads) {
            came->of[TR_STREAM_NVME] = add_read(w, flat, now);
        }
        if (part == FETCH && fetches) {
            came->of[TR_STREAM_COPY] = add_fetch(w, flat);
        }
        if (part == GATHER && gathers) {
            came->of[TR_STREAM_COMM] = add_gather(w, TR_PART_PARAM, flat);
        }
    }
}

// This part of visit v's arrivals, where it begins before visit `now`: its own number
// of visits ahead, or at the very beginning.
static void bring_ahead(walk *w, size_t v, arrival part, size_t now) {
    size_t when = v > w->ahead[part] ? v - w->ahead[part] : 0;
    if (when == now) {
        bring(w, v, part, now);
    }
}

// What is read is under way before anybody waits for the first of it.
static void bring_all_ahead(walk *w, size_t now) {
    size_t end = now + w->ahead[READ] + 1;
    end = end < w->visits.count ? end : w->visits.count;
    for (size_t v = now; v < end; v++) {
        bring_ahead(w, v, READ, now);
    }
    for (size_t v = now; v < end; v++) {
        bring_ahead(w, v, FETCH, now);
        bring_ahead(w, v, GATHER, now);
    }
}

// ---- departures

// What goes on to NVMe has its squares taken before.
static int32_t add_evict(walk *w, int flat, bool apart) {
    if (w->writes) {
        add(w, (tr_plan_step){.kind = TR_STEP_gradient_squares, .unit = (int32_t)flat});
    }
    return add(w, (tr_plan_step){.kind = TR_STEP_evict,
                                 .stream = TR_STREAM_COPY,
                                 .guard = TR_GUARD_ALWAYS,
                                 .part = TR_PART_GRAD,
                                 .unit = (int32_t)flat,
                                 .apart = apart});
}

// On the host, from where they are on the device, or have been evicted to. Only
// integers: floats come complete. Or in the devices' own queue, what they have reduced.
static int32_t add_addition(walk *w, int flat, tr_stream stream) {
    return add(w, (tr_plan_step){.kind = TR_STEP_add,
                                 .stream = stream,
                                 .guard = TR_GUARD_ALWAYS,
                                 .unit = (int32_t)flat});
}

// The first of a step's gradients are copied, the others are added to them; the memory
// of a discrete device is not the host's, so there they are all copied, and added
// later.
static void hand_over(walk *w, int flat, issue *left) {
    if (w->evicted[flat] && !w->adds) {
        left->of[TR_STREAM_HOST] = add_addition(w, flat, TR_STREAM_HOST);
    } else {
        left->of[TR_STREAM_COPY] = add_evict(w, flat, w->evicted[flat]);
    }
    w->evicted[flat] = true;
}

static void add_arrived(walk *w, int flat, issue *left) {
    if (w->arrived[flat]) {
        left->of[TR_STREAM_HOST] = add_addition(w, flat, TR_STREAM_HOST);
    }
    w->arrived[flat] = true;
}

static void add_square(walk *w, int flat) {
    add(w, (tr_plan_step){.kind = TR_STEP_gradient_squares,
                          .stream = TR_STREAM_HOST,
                          .guard = TR_GUARD_ALWAYS,
                          .unit = (int32_t)flat});
}

// Devices that exchange by themselves add to nothing: a launch of their queue does.
static int32_t add_reduce(walk *w, int flat) {
    bool apart =
        w->plan->request.peers && w->reduced[flat] && !w->plan->flats[flat].offloaded;
    int32_t id = add(w, (tr_plan_step){.kind = TR_STEP_reduce,
                                       .stream = TR_STREAM_COMM,
                                       .guard = TR_GUARD_ALWAYS,
                                       .group = TR_ON_DATA,
                                       .unit = (int32_t)flat,
                                       .apart = apart});
    w->reduced[flat] = true;
    if (apart) {
        return add_addition(w, flat, TR_STREAM_COMM);
    }
    return tr__plan_stage(w->plan) == 0 ? add_gather(w, TR_PART_GRAD, flat) : id;
}

static bool takes(const walk *w, departure part) {
    return part == REDUCE   ? tr__data_ranks(&w->plan->request) > 1
           : part == EVICT  ? grads_are_offloaded(w)
           : part == ADD    ? w->adds
           : part == SQUARE ? w->squares
                            : w->writes;
}

static void take_away(walk *w, size_t v, departure part) {
    const tr_visit *at = &w->visits.visits[v];
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    issue *left = &w->left[v];
    for (int k = 0; k < unit->program->flat_count; k++) {
        int flat = unit->flats[k];
        if (!(at->leave >> k & 1)) {
            continue;
        }
        if (part == REDUCE) {
            left->of[TR_STREAM_COMM] = add_reduce(w, flat);
        } else if (part == EVICT && w->plan->flats[flat].offloaded) {
            hand_over(w, flat, left);
        } else if (part == ADD && w->plan->flats[flat].offloaded) {
            add_arrived(w, flat, left);
        } else if (part == SQUARE && w->plan->flats[flat].offloaded) {
            add_square(w, flat);
        } else if (part == WRITE) {
            left->of[TR_STREAM_NVME] =
                add_transfer(w, TR_STEP_write, TR_PART_GRAD, flat);
        }
    }
}

// ---- the row of visits

// Between visit v - 1 and visit v; after the last ones, v counts on.
static void add_border(walk *w, size_t v) {
    bool overlap = !w->plan->request.no_overlap;
    size_t count = w->visits.count;
    if (overlap) {
        bring_all_ahead(w, v);
    }
    for (int i = 0; i < DEPARTURES; i++) { // with overlap, the oldest visit's first
        departure part = (departure)(overlap ? DEPARTURES - 1 - i : i);
        size_t after = w->after[part];
        if (takes(w, part) && v >= after && v - after < count) {
            take_away(w, v - after, part);
        }
    }
    for (int part = 0; part < ARRIVALS && !overlap && v < count; part++) {
        bring(w, v, (arrival)part, v);
    }
}

// Visit v begins when all that is brought to it is there, also what only a later step
// of it reads: so what it came from can be let go. And so that no more gradients wait
// to leave than the plan means to hold, the departures before those that are under way
// are done then. Gradients that stay until they are complete hold up nobody, but where
// they are staged.
static void limit_visit(walk *w, size_t v, int32_t first) {
    size_t before = w->behind + 1;
    limit(w, w->plan->request.no_overlap ? &w->last : &w->came[v], first);
    if (!w->plan->request.no_overlap && v >= before &&
        (tr__plan_grads_pass(w->plan) || w->writes)) {
        limit(w, &w->left[v - before], first);
    }
}

// Those that several waves make, or that need memory to become f32, are measured when
// all is there.
static void add_squares(walk *w) {
    bool after_all = grads_are_offloaded(w) && !w->squares && !w->writes;
    for (size_t f = 0; after_all && f < w->plan->flat_count; f++) {
        if (w->plan->flats[f].offloaded) {
            add_square(w, (int)f);
        }
    }
}

// Nothing of the step is under way at the norm.
static void add_norm(walk *w, tr_plan_step step) {
    for (size_t i = 0; i < w->behind + w->squares; i++) {
        add_border(w, w->visits.count + i);
    }
    add_squares(w);
    limit(w, &w->last, add(w, step));
}

// The update needs what all ranks have found.
static void add_report(walk *w, tr_plan_step step) {
    add(w, step);
    if (tr_mesh_ranks(&w->plan->request.mesh) > 1) {
        add_gather(w, TR_PART_STATISTICS, 0);
    }
}

// A tensor's norms need what every rank has measured of it.
static void add_total(walk *w, tr_plan_step step) {
    if (tr__norms_ranks(w->plan) > 1) {
        add_gather(w, TR_PART_NORMS, 0);
    }
    add(w, step);
}

static void write_steps(walk *w) {
    const tr_sequence *old = w->editor.old;
    int32_t last = -1;
    for (size_t i = 0; i < old->count && w->editor.status == TR_OK; i++) {
        const tr_plan_step *step = &old->steps[i];
        if (w->visits.of[i] > last) {
            last = w->visits.of[i];
            add_border(w, (size_t)last);
            limit_visit(w, (size_t)last, add(w, *step));
        } else if (step->kind == TR_STEP_norm) {
            add_norm(w, *step);
        } else if (step->kind == TR_STEP_report) {
            add_report(w, *step);
        } else if (step->kind == TR_STEP_tensor_norms) {
            add_total(w, *step);
        } else {
            add(w, *step);
        }
    }
}

// Each part of a way takes the time of a visit, where there is somebody to wait for.
static void choose_distances(walk *w) {
    const tr_plan_request *r = &w->plan->request;
    bool ranks = tr__data_ranks(r) > 1, leave = grads_are_offloaded(w),
         overlap = !r->no_overlap;
    w->reads = tr__part_is_on_nvme(w->plan, tr__used_part(w->plan));
    w->writes = tr__part_is_on_nvme(w->plan, TR_PART_GRAD);
    w->ahead[GATHER] = 1;
    w->ahead[FETCH] = ranks && leave ? 2 : 1;
    w->ahead[READ] = w->ahead[FETCH] + w->reads;
    w->after[REDUCE] = 1;
    w->after[EVICT] = overlap && ranks ? 2 : 1;
    w->adds = leave && !w->writes && r->discrete && r->sums == TR_I64 &&
              tr__plan_grads_pass(w->plan);
    w->after[ADD] = w->after[EVICT] + overlap;
    w->squares = leave && !w->writes && !tr__plan_accumulates(w->plan);
    w->after[SQUARE] = w->after[EVICT] + overlap;
    w->after[WRITE] = overlap ? w->after[EVICT] + 1 : 1;
    w->behind = w->after[w->writes ? WRITE : w->adds ? ADD : leave ? EVICT : REDUCE];
}

static void edit(walk *w) {
    choose_distances(w);
    tr_status status = tr__visits_find(w->plan, w->kind, &w->visits, w->err);
    w->came = tr__calloc(w->visits.count + 1, sizeof *w->came);
    w->left = tr__calloc(w->visits.count + 1, sizeof *w->left);
    w->reduced = tr__calloc(w->plan->flat_count + 1, sizeof *w->reduced);
    w->evicted = tr__calloc(w->plan->flat_count + 1, sizeof *w->evicted);
    w->arrived = tr__calloc(w->plan->flat_count + 1, sizeof *w->arrived);
    if (status == TR_OK &&
        (!w->came || !w->left || !w->reduced || !w->evicted || !w->arrived)) {
        status = tr_fail(w->err, TR_MEMORY, "no memory to plan what moves");
    }
    w->editor.status = w->editor.status == TR_OK ? status : w->editor.status;
    write_steps(w);
    tr__visits_clear(&w->visits);
    tr__free(w->came);
    tr__free(w->left);
    tr__free(w->reduced);
    tr__free(w->evicted);
    tr__free(w->arrived);
}

// The next flat is read while this one is fetched; no more than that is staged. *read:
// flats so far, empty ones included.
static void read_for_sync(walk *w, size_t f, size_t *read) {
    issue fetched = {.of[TR_STREAM_COPY] = w->last.of[TR_STREAM_COPY]};
    for (; *read < w->plan->flat_count && *read < f + 2; (*read)++) {
        if (w->plan->flats[*read].count > 0 && !w->plan->flats[*read].frozen) {
            limit(w, &fetched,
                  add_transfer(w, TR_STEP_read, tr__used_part(w->plan), (int)*read));
        }
    }
}

// Parameters that stay on the device, but of which other ranks or another space have
// the newest: everybody who is not a training step wants them brought first.
static void edit_sync_parameters(walk *w) {
    const tr_plan_request *r = &w->plan->request;
    int stage = tr__plan_stage(w->plan);
    bool stay = r->param_placement == TR_SPACE_DEVICE;
    size_t read = 0;
    choose_distances(w);
    for (size_t f = 0; stay && f < w->plan->flat_count; f++) {
        if (w->plan->flats[f].frozen) { // all have it
            continue;
        }
        if (w->reads) {
            read_for_sync(w, f, &read);
        }
        if (w->plan->flats[f].offloaded) {
            add_fetch(w, (int)f);
        }
        if (stage == 1 || stage == 2) {
            add_gather(w, TR_PART_PARAM, (int)f);
        }
    }
}

tr_status tr__pass_communicate(tr_plan *plan, tr_error *err) {
    static const tr_sequence_kind kinds[] = {TR_SEQUENCE_TRAIN, TR_SEQUENCE_EVALUATE,
                                             TR_SEQUENCE_SYNC_PARAMETERS};
    const tr_plan_request *r = &plan->request;
    bool moves = tr_mesh_ranks(&r->mesh) > 1 ||
                 r->optimizer_placement != TR_SPACE_DEVICE ||
                 r->param_placement != TR_SPACE_DEVICE;
    tr_status status = TR_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == TR_OK; k++) {
        walk w = {.plan = plan, .kind = kinds[k], .err = err};
        if (!moves || r->inference) {
            break;
        }
        w.editor = tr__edit_begin(plan, kinds[k], err);
        (kinds[k] == TR_SEQUENCE_SYNC_PARAMETERS ? edit_sync_parameters : edit)(&w);
        status = tr__edit_end(&w.editor);
    }
    return status;
}
