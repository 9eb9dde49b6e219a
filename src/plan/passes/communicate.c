// Pass: what moves between ranks and between memory spaces, and when. Who waits for it
// follows from what steps access (schedule.c); limits bound what is under way.
//
// Around the visits of a sequence (visits.h), parameters arrive: read from NVMe,
// fetched from where they live, then gathered from the other ranks, as far as they have
// to be; and gradients leave: reduced over ranks, then evicted to where the update is
// and measured there, or written to NVMe.
//
//     stage 0   a flat's gradients are reduced and gathered once they are complete; in
//               a pipeline, when the stage before has got its last gradient, which it
//               waits for and which would be behind them
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
#include "plan/flow/passes.h"
#include "plan/flow/residency.h"
#include "plan/passes/ways.h"

#include <string.h>

// The hops of an arrival and of a departure, in their order.
typedef enum arrival { READ, FETCH, GATHER, ARRIVALS } arrival;
typedef enum departure { REDUCE, EVICT, ADD, SQUARE, WRITE, DEPARTURES } departure;

static const tr_hop arrive[ARRIVALS] = {
    [READ] = tr__hop_read,
    [FETCH] = tr__hop_fetch,
    [GATHER] = tr__hop_gather,
};
static const tr_hop depart[DEPARTURES] = {
    [REDUCE] = tr__hop_reduce, [EVICT] = tr__hop_evict, [ADD] = tr__hop_add,
    [SQUARE] = tr__hop_square, [WRITE] = tr__hop_write,
};

typedef struct walk {
    tr_plan *plan;
    tr_visits visits;
    tr_ways ways;
    bool leave;             // gradients leave the device
    bool reads;             // parameters are read from NVMe
    bool takes[DEPARTURES]; // departures have the hop
    // Visits that each hop of an arrival begins before its own, that each hop of a
    // departure comes after, and the most of the latter.
    size_t ahead[ARRIVALS], after[DEPARTURES], behind;
    tr_issued *came; // [visits] the last steps that bring it something
    tr_issued *left; // [visits] the last steps that take its gradients
} walk;

static int32_t add(walk *w, tr_plan_step step) {
    return tr__edit_add(&w->ways.editor, step);
}

// The step begins when all of these are done.
static void limit(walk *w, const tr_issued *before, int32_t after) {
    for (int s = 0; s < TR_STREAMS; s++) {
        tr__edit_limit(&w->ways.editor, before->of[s], after);
    }
}

// The last steps of each stream that goes on beside computing.
static tr_issued all_issued(const walk *w) {
    tr_issued last = {{0}};
    for (int s = 0; s < TR_STREAMS; s++) {
        last.of[s] = tr__stream_is_beside((tr_stream)s) ? w->ways.editor.last[s] : 0;
    }
    return last;
}

// ---- arrivals

static bool is_read(const walk *w, size_t flat) {
    const tr_plan *plan = w->plan;
    return w->reads &&
           tr__flat_part_is_on_nvme(plan, &plan->flats[flat], tr__used_part(plan));
}

static bool arrives(const walk *w, const tr_visit *at, int k, arrival hop) {
    uint32_t flats = hop == GATHER ? at->gather : at->fetch;
    int flat = w->plan->units[at->unit].flats[k];
    return (flats >> k & 1) && (hop != READ || is_read(w, (size_t)flat));
}

// This hop of the arrivals of visit v, before visit `now`: what is staged for that
// visit has been fetched then, so that no more than the visits ahead of it have
// staging.
static void bring(walk *w, size_t v, arrival hop, size_t now) {
    const tr_visit *at = &w->visits.visits[v];
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    for (int k = 0; k < unit->program->flat_count; k++) {
        if (!arrives(w, at, k, hop)) {
            continue;
        }
        arrive[hop](&w->ways, unit->flats[k], &w->came[v]);
        if (hop == READ) {
            tr__edit_limit(&w->ways.editor, w->came[now].of[TR_STREAM_COPY],
                           w->came[v].of[TR_STREAM_NVME]);
        }
    }
}

// This hop of visit v's arrivals, where it begins before visit `now`: its own number of
// visits ahead, or at the very beginning.
static void bring_ahead(walk *w, size_t v, arrival hop, size_t now) {
    size_t when = v > w->ahead[hop] ? v - w->ahead[hop] : 0;
    if (when == now) {
        bring(w, v, hop, now);
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

static void take_away(walk *w, size_t v, departure hop) {
    const tr_visit *at = &w->visits.visits[v];
    const tr_plan_unit *unit = &w->plan->units[at->unit];
    bool scopes = hop == REDUCE || tr__plan_evicts_scopes(w->plan);
    uint32_t flats = scopes ? at->leave : at->complete;
    for (int k = 0; k < unit->program->flat_count; k++) {
        if (flats >> k & 1) {
            depart[hop](&w->ways, unit->flats[k], &w->left[v]);
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
        departure hop = (departure)(overlap ? DEPARTURES - 1 - i : i);
        size_t after = w->after[hop];
        if (w->takes[hop] && v >= after && v - after < count) {
            take_away(w, v - after, hop);
        }
    }
    for (int hop = 0; hop < ARRIVALS && !overlap && v < count; hop++) {
        bring(w, v, (arrival)hop, v);
    }
}

// Visit v begins when all that is brought to it is there, also what only a later step
// of it reads: so what it came from can be let go. And so that no more gradients wait
// to leave than the plan means to hold, the departures before those that are under way
// are done then. Gradients that stay until they are complete hold up nobody, but where
// they are staged.
static void limit_visit(walk *w, size_t v, const tr_issued *before, int32_t first) {
    size_t most = w->behind + 1;
    bool overlap = !w->plan->request.no_overlap;
    limit(w, overlap ? &w->came[v] : before, first);
    if (overlap && v >= most && (tr__plan_grads_pass(w->plan) || w->takes[WRITE])) {
        limit(w, &w->left[v - most], first);
    }
}

static void add_visit(walk *w, size_t v, tr_plan_step first) {
    add_border(w, v);
    tr_issued before = all_issued(w);
    limit_visit(w, v, &before, add(w, first));
}

// Those that several waves make, or that need memory to become f32, are measured when
// all is there.
static void add_squares(walk *w) {
    bool after_all = w->leave && !w->takes[SQUARE] && !w->takes[WRITE];
    tr_issued issued;
    for (size_t f = 0; after_all && f < w->plan->flat_count; f++) {
        if (w->plan->flats[f].count > 0) {
            tr__hop_square(&w->ways, (int)f, &issued);
        }
    }
}

// Nothing of the step is under way at the norm.
static void add_norm(walk *w, tr_plan_step step) {
    for (size_t i = 0; i < w->behind + w->takes[SQUARE]; i++) {
        add_border(w, w->visits.count + i);
    }
    add_squares(w);
    tr_issued before = all_issued(w);
    limit(w, &before, add(w, step));
}

// The update needs what all ranks have found.
static void add_decision(walk *w, tr_plan_step step) {
    if (tr_mesh_ranks(&w->plan->request.mesh) > 1) {
        tr__put_gather_statistics(&w->ways);
    }
    add(w, step);
}

// A tensor's norms need what every rank has measured of it.
static void add_total(walk *w, tr_plan_step step) {
    if (tr__norms_group(w->plan) != 0) {
        tr__put_sum_norms(&w->ways);
    }
    add(w, step);
}

static void write_steps(walk *w) {
    const tr_sequence *old = w->ways.editor.old;
    int32_t last = -1;
    for (size_t i = 0; i < old->count && w->ways.editor.status == TR_OK; i++) {
        const tr_plan_step *step = &old->steps[i];
        if (w->visits.of[i] > last) {
            last = w->visits.of[i];
            add_visit(w, (size_t)last, *step);
        } else if (step->mark == TR_MARK_NORM) {
            add_norm(w, *step);
        } else if (step->mark == TR_MARK_DECISION) {
            add_decision(w, *step);
        } else if (step->mark == TR_MARK_TOTAL) {
            add_total(w, *step);
        } else {
            add(w, *step);
        }
    }
}

// Are parameters read from NVMe that this rank has, trained or not?
static bool reads_any(const tr_plan *plan) {
    bool some = false;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        some = some || (flat->count > 0 &&
                        tr__flat_part_is_on_nvme(plan, flat, tr__used_part(plan)));
    }
    return some;
}

// Each hop takes the time of a visit, where there is somebody to wait for.
static void choose_distances(walk *w) {
    const tr_plan_request *r = &w->plan->request;
    bool ranks = tr__data_ranks(r) > 1, overlap = !r->no_overlap;
    w->leave = r->optimizer_placement != TR_SPACE_DEVICE;
    w->reads = reads_any(w->plan);
    w->takes[REDUCE] = ranks;
    w->takes[EVICT] = w->leave;
    w->takes[ADD] = tr__adds_evicted(w->plan);
    w->takes[WRITE] = tr__part_is_on_nvme(w->plan, TR_PART_GRAD);
    w->takes[SQUARE] = w->leave && !w->takes[WRITE] && !tr__plan_accumulates(w->plan) &&
                       !tr__plan_evicts_again(w->plan);
    w->ahead[GATHER] = 1;
    w->ahead[FETCH] = ranks && w->leave ? 2 : 1;
    w->ahead[READ] = w->ahead[FETCH] + w->reads;
    w->after[REDUCE] = 1;
    w->after[EVICT] = overlap && ranks ? 2 : 1;
    w->after[ADD] = w->after[EVICT] + overlap;
    w->after[SQUARE] = w->after[EVICT] + overlap;
    w->after[WRITE] = overlap ? w->after[EVICT] + 1 : 1;
    w->behind = w->after[w->takes[WRITE] ? WRITE
                         : w->takes[ADD] ? ADD
                         : w->leave      ? EVICT
                                         : REDUCE];
}

static tr_status edit(walk *w, tr_sequence_kind kind, tr_error *err) {
    tr_status status = tr__visits_find(w->plan, kind, &w->visits, err);
    w->came = tr__calloc(w->visits.count + 1, sizeof *w->came);
    w->left = tr__calloc(w->visits.count + 1, sizeof *w->left);
    if (status == TR_OK && (!w->came || !w->left)) {
        status = tr_fail(err, TR_MEMORY, "no memory to plan what moves");
    }
    if (status == TR_OK) {
        write_steps(w);
    }
    tr__visits_clear(&w->visits);
    tr__free(w->came);
    tr__free(w->left);
    return status;
}

// The next flat is read while this one is fetched; no more than that is staged. *read:
// flats so far, empty ones included.
static void read_for_sync(walk *w, size_t f, size_t *read) {
    tr_editor *editor = &w->ways.editor;
    int32_t fetched = editor->last[TR_STREAM_COPY];
    for (; *read < w->plan->flat_count && *read < f + 2; (*read)++) {
        tr_issued issued;
        if (w->plan->flats[*read].count > 0 && !w->plan->flats[*read].frozen &&
            is_read(w, *read)) {
            tr__hop_read(&w->ways, (int)*read, &issued);
            tr__edit_limit(editor, fetched, issued.of[TR_STREAM_NVME]);
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
    tr_issued issued;
    for (size_t f = 0; stay && f < w->plan->flat_count; f++) {
        if (w->plan->flats[f].frozen) { // all have it
            continue;
        }
        if (w->reads) {
            read_for_sync(w, f, &read);
        }
        if (w->plan->flats[f].offloaded) {
            tr__hop_fetch(&w->ways, (int)f, &issued);
        }
        if (stage == 1 || stage == 2) {
            tr__hop_gather(&w->ways, (int)f, &issued);
        }
    }
}

static tr_status edit_sequence(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    walk w = {.plan = plan};
    tr_status status = tr__ways_begin(&w.ways, plan, kind, err);
    choose_distances(&w);
    if (status == TR_OK && kind == TR_SEQUENCE_SYNC_PARAMETERS) {
        edit_sync_parameters(&w);
    } else if (status == TR_OK) {
        status = edit(&w, kind, err);
    }
    return tr__ways_end(&w.ways, status);
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
        if (moves && !r->inference) {
            status = edit_sequence(plan, kinds[k], err);
        }
    }
    return status;
}
