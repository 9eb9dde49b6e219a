// Parameters and gradients on their ways between NVMe and memory (ZeRO-Infinity;
// Rajbhandari et al., arXiv 2104.07857). Updates of what lives there have a pass of
// their own (stage.c).
#include "plan/flow/residency.h"
#include "plan/passes/ways.h"

// All that this rank has of a part of the flat.
static tr_plan_step transfer(tr_verb verb, const tr_flat_range *range, tr_part part,
                             int flat) {
    return (tr_plan_step){.label = tr__label_of_part(verb, part),
                          .subject = TR_OF_FLAT,
                          .unit = flat,
                          .first = range->first,
                          .count = range->count,
                          .stream = TR_STREAM_NVME,
                          .guard = TR_GUARD_ALWAYS};
}

// Perhaps again, before what was read is fetched.
void tr__hop_read(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    tr_part part = tr__used_part(plan);
    const tr_flat_range *range = &plan->flats[flat].part[part];
    tr_underway *underway = &ways->of[flat];
    int32_t *staged =
        underway->staged < 0 ? &underway->staged : &underway->staged_later;
    int64_t bytes = tr__nvme_bytes(plan, &plan->flats[flat], part, range->count);
    if (*staged < 0) {
        *staged = tr__edit_value(&ways->editor, TR_LEDGER_staging, TR_SPACE_HOST,
                                 plan->buffers[range->buffer].bytes);
    }
    issued->of[TR_STREAM_NVME] =
        tr__make_read(&ways->editor, transfer(TR_VERB_read, range, part, flat),
                      tr__region(range->buffer, bytes), tr__region(*staged, bytes));
}

void tr__hop_write(tr_ways *ways, int flat, tr_issued *issued) {
    const tr_plan *plan = ways->editor.plan;
    const tr_flat *of = &plan->flats[flat];
    const tr_flat_range *range = &of->grad;
    if (!of->offloaded) {
        return;
    }
    int64_t bytes = tr__nvme_bytes(plan, of, TR_PART_GRAD, range->count);
    issued->of[TR_STREAM_NVME] = tr__make_write(
        &ways->editor, transfer(TR_VERB_write, range, TR_PART_GRAD, flat),
        tr__region(ways->of[flat].evicted, bytes), tr__region(range->buffer, bytes));
}
