// Parameters and gradients on their ways between the device and the host (ZeRO-Offload;
// Ren et al., arXiv 2101.06840).
#include "plan/passes/ways.h"

#include "base/checked.h"
#include "plan/flow/residency.h"
#include "plan/passes/steps_gradients.h"
#include "plan/units/offsets.h"

// ---- parameters

// What has been read from the file, or where the parameters live.
static tr_region fetched_from(tr_ways *ways, int flat, int64_t bytes) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    tr_underway *underway = &ways->of[flat];
    if (!tr__flat_part_is_on_nvme(plan, of, tr__used_part(plan)) || of->count == 0) {
        return tr__region(of->copy.buffer, bytes);
    }
    tr_region from = tr__region(underway->staged, bytes);
    underway->staged = underway->staged_later;
    underway->staged_later = -1;
    return from;
}

// Parameters that live elsewhere come into another value each time: all of them with
// one rank, else this rank's part, to be gathered.
static tr_region fetched_to(tr_ways *ways, int flat, int64_t bytes) {
    tr_editor *e = &ways->editor;
    const tr_plan *plan = e->plan;
    const tr_flat *of = &plan->flats[flat];
    int64_t element = tr__param_bytes(plan);
    if (plan->request.param_placement == TR_SPACE_DEVICE) {
        return tr__region_of_flat(&of->param, of->copy.first, of->copy.count, element);
    }
    if (tr__data_ranks(&plan->request) == 1) {
        int32_t params = tr__edit_params(e, flat);
        tr__edit_renew(e, params);
        return tr__region(tr__edit_stand_in(e, params), bytes);
    }
    int32_t *part = &ways->of[flat].part;
    *part = tr__edit_value(e, TR_LEDGER_parameters, TR_SPACE_DEVICE,
                           tr__round_up(tr__part_elements(of) * element, TR_ALIGNMENT));
    return tr__region(*part, bytes);
}

void tr__hop_fetch(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    int64_t bytes = plan->flats[flat].copy.count * tr__param_bytes(plan);
    tr_region from = fetched_from(ways, flat, bytes),
              to = fetched_to(ways, flat, bytes);
    tr_plan_step step = {.label = {.verb = TR_VERB_fetch},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .stream = tr__copy_stream(plan, TR_SPACE_DEVICE),
                         .guard = TR_GUARD_ALWAYS};
    issued->of[step.stream] = tr__make_copy(&ways->editor, step, from, to);
}

// ---- gradients

static tr_region in_sums(const tr_plan *plan, int flat) {
    const tr_flat *of = &plan->flats[flat];
    return tr__region_of_flat(&of->sums, of->grad.first, of->grad.count,
                              tr__sum_bytes(plan));
}

// What ranks have reduced, what this one alone has made, or what stays.
static tr_region evicted_from(tr_ways *ways, int flat) {
    const tr_plan *plan = ways->editor.plan;
    int64_t bytes = plan->flats[flat].grad.count * tr__sum_bytes(plan);
    if (!tr__flat_evicts_scopes(plan, flat)) {
        return in_sums(plan, flat);
    }
    return tr__region(tr__data_ranks(&plan->request) > 1 ? ways->of[flat].reduced
                                                         : tr__ways_take(ways, flat),
                      bytes);
}

// What a step adds, or the file gets, waits in another value; the rest lives there.
static tr_region evicted_to(tr_ways *ways, int flat, bool apart) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    bool writes = tr__flat_part_is_on_nvme(plan, of, TR_PART_GRAD);
    int64_t bytes = of->grad.count * tr__sum_bytes(plan);
    int32_t *evicted = &ways->of[flat].evicted;
    if (!writes && !apart) {
        return tr__region(of->grad.buffer, bytes);
    }
    *evicted = tr__edit_value(
        &ways->editor, writes ? TR_LEDGER_staging : TR_LEDGER_gradients, TR_SPACE_HOST,
        writes ? plan->buffers[of->grad.buffer].bytes
               : tr__sums_bytes(plan, tr__part_elements(of)));
    return tr__region(*evicted, bytes);
}

// What goes on to NVMe has its squares taken before: this rank's part of what passes.
static void put_squares_before(tr_ways *ways, int flat) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    tr_region own =
        tr__region_of_flat(&of->sums, of->first, of->own, tr__sum_bytes(plan));
    tr_location at = tr__location(own);
    if (tr__flat_evicts_scopes(plan, flat)) {
        at = (tr_location){tr__data_ranks(&plan->request) > 1
                               ? ways->of[flat].reduced
                               : tr__ways_made(ways, flat),
                           0};
    }
    tr__put_squares(&ways->editor, (tr_plan_step){.stream = TR_STREAM_COMPUTE}, flat,
                    at);
}

static int32_t put_evict(tr_ways *ways, int flat, bool apart) {
    const tr_plan *plan = ways->editor.plan;
    if (tr__flat_part_is_on_nvme(plan, &plan->flats[flat], TR_PART_GRAD)) {
        put_squares_before(ways, flat);
    }
    tr_region from = evicted_from(ways, flat), to = evicted_to(ways, flat, apart);
    tr_plan_step step = {.label = {.verb = TR_VERB_evict},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .stream = tr__copy_stream(plan, TR_SPACE_HOST),
                         .guard = TR_GUARD_ALWAYS};
    return tr__make_copy(&ways->editor, step, from, to);
}

static int32_t put_addition(tr_ways *ways, int flat, int32_t from) {
    const tr_flat *of = &ways->editor.plan->flats[flat];
    tr_plan_step step = {.label = {.verb = TR_VERB_add},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .stream = TR_STREAM_HOST,
                         .guard = TR_GUARD_ALWAYS};
    return tr__put_addition(&ways->editor, step, of->grad.count, (tr_location){from, 0},
                            (tr_location){of->grad.buffer, 0});
}

bool tr__adds_evicted(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return r->discrete && (r->sums == TR_I64 || tr__plan_evicts_again(plan)) &&
           !tr__part_is_on_nvme(plan, TR_PART_GRAD) && tr__plan_evicts_scopes(plan);
}

// The first of a step's gradients are copied, the others are added to them: integers,
// since floats come complete where they can (tr__plan_evicts_again). The memory of a
// discrete device is not the host's, so there they are all copied, and added later.
void tr__hop_evict(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    tr_underway *underway = &ways->of[flat];
    if (!plan->flats[flat].offloaded) {
        return;
    }
    if (underway->has_evicted && !tr__adds_evicted(plan)) {
        issued->of[TR_STREAM_HOST] =
            put_addition(ways, flat, evicted_from(ways, flat).value);
    } else {
        issued->of[tr__copy_stream(plan, TR_SPACE_HOST)] =
            put_evict(ways, flat, underway->has_evicted);
    }
    underway->has_evicted = true;
}

void tr__hop_add(tr_ways *ways, int flat, tr_issued *issued) {
    tr_underway *underway = &ways->of[flat];
    if (!ways->editor.plan->flats[flat].offloaded) {
        return;
    }
    if (underway->has_added) {
        issued->of[TR_STREAM_HOST] = put_addition(ways, flat, underway->evicted);
    }
    underway->has_added = true;
}

void tr__hop_square(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    tr_region own =
        tr__region_of_flat(&of->grad, of->first, of->own, tr__sum_bytes(plan));
    (void)issued; // nobody waits for it but the norm
    if (of->offloaded) {
        tr_plan_step step = {.stream = TR_STREAM_HOST, .guard = TR_GUARD_ALWAYS};
        tr__put_squares(&ways->editor, step, flat, tr__location(own));
    }
}
