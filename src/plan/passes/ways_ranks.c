// Parameters and gradients on their ways between ranks: gathered, reduced (ZeRO;
// Rajbhandari et al., arXiv 1910.02054).
#include "plan/passes/ways.h"

#include "plan/flow/residency.h"
#include "plan/flow/work.h"
#include "plan/passes/steps_gradients.h"
#include "plan/passes/steps_update.h"

// ---- gathers

static tr_plan_step gather_step(const tr_plan *plan, tr_part part, int flat) {
    return (tr_plan_step){.label = tr__label_of_part(TR_VERB_gather, part),
                          .subject = TR_OF_FLAT,
                          .unit = flat,
                          .stream = tr__exchange_stream(plan, TR_SPACE_DEVICE),
                          .guard = TR_GUARD_ALWAYS};
}

static tr_exchange gather_of(const tr_plan *plan, tr_part part, int flat,
                             tr_comm_type type) {
    const tr_flat *of = &plan->flats[flat];
    return (tr_exchange){.part = part,
                         .kind = TR_COMM_GATHER,
                         .type = type,
                         .group = TR_ON_DATA,
                         .in_place = true,
                         .count = of->count,
                         .shard = of->shard};
}

// Parameters of 16 bits as bytes: nothing is added.
static tr_exchange gather_of_params(const tr_plan *plan, int flat) {
    bool half = tr__plan_is_half(plan);
    int64_t element = tr__param_bytes(plan);
    tr_exchange exchange =
        gather_of(plan, TR_PART_PARAM, flat, half ? TR_COMM_BYTE : TR_COMM_F32);
    exchange.count *= half ? element : 1;
    exchange.shard *= half ? element : 1;
    return exchange;
}

// Parameters that do not stay come into another value each time: from the part that has
// been fetched, or from where this rank's part lives.
void tr__hop_gather(tr_ways *ways, int flat, tr_issued *issued) {
    tr_editor *e = &ways->editor;
    const tr_plan *plan = e->plan;
    const tr_flat *of = &plan->flats[flat];
    bool stay = tr__plan_params_stay(plan),
         fetched = plan->request.param_placement != TR_SPACE_DEVICE;
    int64_t element = tr__param_bytes(plan);
    tr_exchange exchange = gather_of_params(plan, flat);
    int32_t params = tr__edit_params(e, flat);
    tr_region from = {-1, 0, 0};
    if (!stay) {
        tr__edit_renew(e, params);
        from = tr__region(fetched ? ways->of[flat].part : of->param.buffer,
                          of->own * element);
        exchange.in_place = from.value < 0;
    }
    tr_region to = tr__region(tr__edit_stand_in(e, params), of->count * element);
    tr_plan_step step = gather_step(plan, TR_PART_PARAM, flat);
    issued->of[TR_STREAM_COMM] = tr__make_exchange(e, step, exchange, from, to, false);
}

void tr__put_gather_statistics(tr_ways *ways) {
    const tr_plan *plan = ways->editor.plan;
    tr_plan_step step = gather_step(plan, TR_PART_STATISTICS, 0);
    step.subject = TR_OF_NOBODY;
    step.stream = tr__exchange_stream(plan, TR_SPACE_HOST);
    // Every rank says how it fares.
    tr__make_gather(&ways->editor, step, TR_PART_STATISTICS, TR_ON_ALL,
                    tr__region(plan->statistics.buffer,
                               plan->statistics.doubles * (int64_t)sizeof(double)));
}

void tr__put_sum_norms(tr_ways *ways) {
    const tr_plan *plan = ways->editor.plan;
    const tr_exchange exchange = {.part = TR_PART_NORMS,
                                  .type = tr__exchange_type(TR_I64),
                                  .group = tr__norms_group(plan)};
    tr_plan_step step = {.subject = TR_OF_NOBODY,
                         .stream = tr__exchange_stream(plan, tr__norms_space(plan)),
                         .guard = TR_GUARD_APPLIED};
    tr__make_sum(&ways->editor, step, exchange, tr__edit_tensor_sums(&ways->editor));
}

// ---- reduces

// Where it goes: what leaves the device, or is added by a step of its own, into another
// value; else among the sums that stay, of which it is this rank's part.
static tr_region reduced_to(tr_ways *ways, int flat, bool apart) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    int64_t element = tr__sum_bytes(plan);
    tr_underway *underway = &ways->of[flat];
    if (!tr__flat_evicts_scopes(plan, flat) && !apart) {
        return tr__region_of_flat(&of->sums, of->first, of->own, element);
    }
    underway->reduced =
        tr__edit_value(&ways->editor, TR_LEDGER_gradients, TR_SPACE_DEVICE,
                       tr__sums_bytes(plan, tr__part_elements(of)));
    return tr__region(underway->reduced, of->own * element);
}

static int32_t put_reduce(tr_ways *ways, int flat, bool apart) {
    tr_editor *e = &ways->editor;
    const tr_plan *plan = e->plan;
    const tr_flat *of = &plan->flats[flat];
    bool pass = tr__flat_grads_pass(plan, flat);
    int32_t from = pass ? tr__ways_take(ways, flat) : of->sums.buffer;
    tr_exchange exchange =
        gather_of(plan, TR_PART_GRAD, flat, tr__exchange_type(plan->request.sums));
    tr_plan_step step = {.label = {.verb = TR_VERB_reduce},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .stream = TR_STREAM_COMM,
                         .guard = TR_GUARD_ALWAYS};
    exchange.kind = TR_COMM_REDUCE;
    exchange.in_place = false;
    return tr__make_exchange(e, step, exchange,
                             tr__region(from, of->count * tr__sum_bytes(plan)),
                             reduced_to(ways, flat, apart), true);
}

static int32_t put_addition(tr_ways *ways, int flat) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    tr_plan_step step = {.label = {.verb = TR_VERB_add},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .stream = TR_STREAM_COMM,
                         .guard = TR_GUARD_ALWAYS};
    tr_region sums =
        tr__region_of_flat(&of->sums, of->first, of->own, tr__sum_bytes(plan));
    return tr__put_addition(&ways->editor, step, of->own,
                            (tr_location){ways->of[flat].reduced, 0},
                            tr__location(sums));
}

// At stage 0 every rank has all gradients.
static int32_t put_gather_gradients(tr_ways *ways, int flat) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    tr_exchange exchange =
        gather_of(plan, TR_PART_GRAD, flat, tr__exchange_type(plan->request.sums));
    tr_region sums = tr__region(of->sums.buffer, of->count * tr__sum_bytes(plan));
    return tr__make_exchange(&ways->editor, gather_step(plan, TR_PART_GRAD, flat),
                             exchange, sums, sums, false);
}

// Devices that exchange by themselves add to nothing: a launch of their queue does.
void tr__hop_reduce(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    tr_underway *underway = &ways->of[flat];
    bool apart = plan->request.peers && underway->has_reduced &&
                 !tr__flat_evicts_scopes(plan, flat);
    int32_t id = put_reduce(ways, flat, apart);
    underway->has_reduced = true;
    issued->of[TR_STREAM_COMM] = apart ? put_addition(ways, flat)
                                 : tr__plan_stage(plan) == 0
                                     ? put_gather_gradients(ways, flat)
                                     : id;
}
