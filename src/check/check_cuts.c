#include "check/check_cuts.h"

#include "base/checked.h"
#include "base/text.h"
#include "check/check_judge.h"
#include "models/models.h"

#include <math.h>
#include <stdio.h>

// Plain kernels are for tests: more work than this in one step would be minutes.
#define PLAIN_FLOPS_MOST 2e10
#define UNROLLED_MOST    4096 // accumulation steps of a cut

typedef struct list {
    tr_cut_request *cuts;
    size_t count;
    double tolerance;       // of what is f32
    tr_check_rounds rounds; // of the cuts like the run
    double sums_round;      // of its sums: the largest error of a number, 0 in f32
} list;

static tr_check_rounds coarser(tr_check_rounds a, tr_check_rounds b) {
    return a > b ? a : b;
}

// Each addition to a sum is rounded, by chance up or down, and sums on the way may be
// larger than the last one.
static double rounding_of_sums(const list *l, int64_t additions) {
    return tr__check_allowed(l->sums_round * sqrt((double)additions), TR_CHANGES_ORDER);
}

static tr_cut_request *add(list *l, const tr_plan_request *request, bool same_bits) {
    tr_cut_request *at = &l->cuts[l->count++];
    bool measured = l->rounds != TR_ROUNDS_F32 && !same_bits;
    *at = (tr_cut_request){
        .cut = {.same_bits = same_bits, .tolerance = measured ? 0 : l->tolerance},
        .request = *request,
        .rounds = measured ? l->rounds : TR_ROUNDS_F32,
        .summed = rounding_of_sums(l, request->accumulation_steps)};
    return at;
}

static void name_it(tr_cut_request *at, const char *words) {
    snprintf(at->cut.name, sizeof at->cut.name, "%s", words);
}

static void cut_micro(list *l, const tr_plan_request *base, int64_t micro) {
    tr_cut_request *at = add(l, base, false);
    tr_plan_request *r = &at->request;
    r->micro_batch = micro;
    r->accumulation_steps = tr__ceil_div(r->train_batch_size, micro);
    r->wave = 0;
    at->summed = fmax(at->summed, rounding_of_sums(l, r->accumulation_steps));
    snprintf(at->cut.name, sizeof at->cut.name,
             "micro-batches of %lld, %lld accumulation step%s%s", (long long)micro,
             (long long)r->accumulation_steps, tr__plural(r->accumulation_steps),
             r->train_batch_size % micro ? ", ragged" : "");
    if (r->accumulation_steps > UNROLLED_MOST) {
        snprintf(at->cut.skipped, sizeof at->cut.skipped, "more than %d steps",
                 UNROLLED_MOST);
    }
}

// The smallest micro-batch that does not divide the batch; 0: there is none.
static int64_t ragged_micro(int64_t batch) {
    for (int64_t micro = 2; micro < batch; micro++) {
        if (batch % micro != 0) {
            return micro;
        }
    }
    return 0;
}

static void cut_batch(list *l, const tr_plan_request *base) {
    int64_t ragged = ragged_micro(base->train_batch_size);
    if (base->micro_batch != base->train_batch_size) {
        cut_micro(l, base, base->train_batch_size);
    }
    if (base->micro_batch != 1) {
        cut_micro(l, base, 1);
    }
    if (ragged > 0 && ragged != base->micro_batch) {
        cut_micro(l, base, ragged);
    }
}

// At a wave of g gradients come to be in another order, in tied tensors alone; so
// bits may differ there.
static void cut_wave(list *l, const tr_plan_request *base) {
    int64_t g = base->accumulation_steps;
    if (g > 1) {
        tr_cut_request *at = add(l, base, false);
        at->request.wave = base->wave == g ? 1 : g;
        snprintf(at->cut.name, sizeof at->cut.name, "waves of %lld",
                 (long long)at->request.wave);
    }
}

static void cut_recompute(list *l, const tr_plan_request *base) {
    bool none = base->recomputed_units == 0;
    tr_cut_request *at = add(l, base, true);
    at->request.recomputed_units = none ? -1 : 0;
    name_it(at, none ? "all units but the last recomputed" : "no unit recomputed");
    at = add(l, base, true);
    bool all = base->recomputed_ops == TR_RECOMPUTE_NOTHING;
    at->request.recomputed_ops = all ? TR_RECOMPUTE_DEFAULT : TR_RECOMPUTE_NOTHING;
    at->request.recomputed_ops_units = 0;
    name_it(at, all ? "norms and activations recomputed" : "no tensor recomputed");
}

// Gradients leave for the host once, so g micro-batches make one wave; the bits are
// those of that wave.
static void cut_placement(list *l, const tr_plan_request *base) {
    bool away = base->optimizer_placement != TR_SPACE_DEVICE;
    bool same_order =
        base->accumulation_steps == 1 || base->wave == base->accumulation_steps || away;
    tr_cut_request *at = add(l, base, same_order);
    at->request.optimizer_placement = away ? TR_SPACE_DEVICE : TR_SPACE_HOST;
    at->request.param_placement = away ? TR_SPACE_DEVICE : TR_SPACE_HOST;
    at->request.wave = away ? base->wave : 0;
    name_it(at, away ? "everything on the device"
                     : "parameters and optimizer state on the host");
}

// Kernels that add up in another order round every tensor of 16 bits elsewhere.
static void cut_kernels(list *l, const tr_plan_request *base, double flops) {
    tr_cut_request *at = add(l, base, false);
    at->request.level_limit = 1;
    at->change = TR_CHANGES_KERNELS;
    name_it(at, "kernels of plain C");
    at = add(l, base, false);
    at->request.reference_kernels = true;
    at->change = TR_CHANGES_KERNELS;
    name_it(at, "reference kernels, which add up in f64");
    if (flops > PLAIN_FLOPS_MOST) {
        snprintf(at->cut.skipped, sizeof at->cut.skipped,
                 "%.0f GFLOP in one step; at most %.0f with kernels this slow",
                 flops / 1e9, PLAIN_FLOPS_MOST / 1e9);
    }
}

static void cut_precision(list *l, const tr_plan_request *base, tr_dtype compute,
                          const char *words) {
    bool is_half = base->compute != TR_F32, asks_half = compute != TR_F32;
    bool from_fp8 = base->fp8.enabled && compute == TR_BF16;
    if (is_half == asks_half && !from_fp8) {
        return; // as it is, or both of 16 bits
    }
    tr_cut_request *at = add(l, base, false);
    at->request.compute = compute;
    at->request.fp8.enabled = false;
    at->change = TR_CHANGES_TYPES;
    at->coarser = asks_half && !is_half;
    at->rounds = base->fp8.enabled ? TR_ROUNDS_FP8
                                   : coarser(l->rounds, tr__check_rounds(compute));
    at->cut.tolerance = 0;
    name_it(at, words);
}

static void cut_sums(list *l, const tr_plan_request *base) {
    if (base->sums == TR_BF16 || base->sums == TR_F16) {
        tr_cut_request *at = add(l, base, false);
        at->request.sums = TR_F32;
        name_it(at, "gradients summed in f32");
    }
}

// A loss over the whole step in two passes, or in one: the same gradients in the same
// order.
static void cut_passes(list *l, const tr_plan_request *base) {
    bool twice = base->passes == 2;
    if (base->accumulation_steps == 1) {
        return; // there is but one pass
    }
    tr_cut_request *at = add(l, base, true);
    at->request.passes = twice ? 1 : 2;
    at->request.wave = 0;
    name_it(at, twice ? "in one pass" : "in two passes");
}

// Do the model's ops draw numbers? Dropout draws other ones for other samples.
static bool draws(const tr_model *model) {
    const tr_dropout_key *dropout = tr__model_dropout(model);
    json_t *keys = json_loads(model->config_json ? model->config_json : "{}", 0, NULL);
    bool any = false;
    for (; dropout && dropout->key; dropout++) {
        any = any || json_number_value(json_object_get(keys, dropout->key)) > 0;
    }
    json_decref(keys);
    return any;
}

// Nothing that documents have to do with each other may come of sharing a sample.
static void cut_apart(list *l, const tr_plan_request *base) {
    if (!tr_batch_positions(&base->model->batch)) {
        return;
    }
    tr_cut_request *at = add(l, base, false);
    at->apart = true;
    at->request.wave = 0;
    name_it(at, "each packed document in a sample of its own");
    if (draws(base->model)) {
        snprintf(at->cut.skipped, sizeof at->cut.skipped,
                 "dropout draws other numbers for them; set it to 0 in the model");
    }
}

size_t tr__check_cuts(const tr_plan_request *base, const tr_check_of *of,
                      double tolerance, tr_cut_request *cuts) {
    tr_check_rounds sums = tr__check_rounds(base->sums);
    list l = {.cuts = cuts,
              .tolerance = tolerance,
              .rounds = coarser(tr__check_rounds(base->compute), sums),
              .sums_round = tr__check_rounding(sums)};
    name_it(add(&l, base, true), "as the run file has it");
    cut_batch(&l, base);
    cut_wave(&l, base);
    cut_recompute(&l, base);
    cut_placement(&l, base);
    if (of->grouped) {
        cut_passes(&l, base);
    }
    cut_kernels(&l, base, of->flops);
    cut_precision(&l, base, TR_F32, "in f32");
    cut_precision(&l, base, TR_BF16, "in bf16");
    cut_precision(&l, base, TR_F16, "in fp16");
    cut_sums(&l, base);
    cut_apart(&l, base);
    return l.count;
}
