#include "train/check_cuts.h"

#include "base/checked.h"
#include "base/text.h"
#include "models/models.h"

#include <stdio.h>

// Plain kernels are for tests: more work than this in one step would be minutes.
#define PLAIN_FLOPS_MOST 2e10
#define UNROLLED_MOST    4096 // accumulation steps of a cut
// Below this part of the whole gradient a tensor's own has no digits.
#define LEAST_F32 1e-6

// How far gradients of 16 bits may be off from those of another cut of the same
// format by the same kernels, where a sum in another order is now and then rounded to
// the neighbour, and from those of f32. About twice what was met with the gradients of
// GPT-2's and MLPs of many sizes; with ReLU, values next to 0 fall on the other side of
// it.
typedef struct closeness {
    double cuts, f32;
    double least; // part of the whole gradient below which a tensor's has no digits
} closeness;

static const closeness of_bf16 = {0.05, 0.2, 1e-2};
static const closeness of_f16 = {0.02, 0.1, 2e-3};
static const closeness of_fp8 = {0.1, 0.4, 1e-2};

typedef struct list {
    tr_cut_request *cuts;
    size_t count;
    double tolerance, least;
} list;

static tr_cut_request *add(list *l, const tr_plan_request *request, bool same_bits) {
    tr_cut_request *at = &l->cuts[l->count++];
    *at = (tr_cut_request){
        .cut = {.same_bits = same_bits, .tolerance = l->tolerance, .least = l->least},
        .request = *request};
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

static const closeness *close_to(tr_dtype type) {
    return type == TR_BF16 ? &of_bf16 : type == TR_F16 ? &of_f16 : NULL;
}

// That of the coarsest of what a request computes and sums in; NULL: all f32.
static const closeness *closeness_of(const tr_plan_request *r) {
    const closeness *compute = r->fp8.enabled ? &of_fp8 : close_to(r->compute);
    const closeness *sums = close_to(r->sums);
    if (!compute || !sums) {
        return compute ? compute : sums;
    }
    return compute->cuts > sums->cuts ? compute : sums;
}

// NULL: all is f32, whose tolerance stays.
static void round_elsewhere(tr_cut_request *at, const closeness *half) {
    if (half) {
        at->cut.tolerance = half->f32;
        at->cut.least = half->least;
    }
}

// Kernels that add up in another order round every tensor of 16 bits elsewhere: they
// are as far from each other as from f32.
static void cut_kernels(list *l, const tr_plan_request *base, double flops) {
    tr_cut_request *at = add(l, base, false);
    at->request.level_limit = 1;
    round_elsewhere(at, closeness_of(base));
    name_it(at, "kernels of plain C");
    at = add(l, base, false);
    at->request.reference_kernels = true;
    round_elsewhere(at, closeness_of(base));
    name_it(at, "reference kernels, which add up in f64");
    if (flops > PLAIN_FLOPS_MOST) {
        snprintf(at->cut.skipped, sizeof at->cut.skipped,
                 "%.0f GFLOP in one step; at most %.0f with kernels this slow",
                 flops / 1e9, PLAIN_FLOPS_MOST / 1e9);
    }
}

static void cut_precision(list *l, const tr_plan_request *base, tr_dtype compute,
                          const char *words) {
    const closeness *asked = close_to(compute), *from = close_to(base->compute);
    bool from_fp8 = base->fp8.enabled && compute == TR_BF16;
    if ((asked == NULL) == (from == NULL) && !from_fp8) {
        return; // as it is, or both of 16 bits
    }
    tr_cut_request *at = add(l, base, false);
    at->request.compute = compute;
    at->request.fp8.enabled = false;
    round_elsewhere(at, closeness_of(from ? base : &at->request));
    name_it(at, words);
}

static void cut_sums(list *l, const tr_plan_request *base) {
    if (close_to(base->sums)) {
        tr_cut_request *at = add(l, base, false);
        at->request.sums = TR_F32;
        round_elsewhere(at, closeness_of(base));
        name_it(at, "gradients summed in f32");
    }
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

size_t tr__check_cuts(const tr_plan_request *base, double flops, double tolerance,
                      tr_cut_request *cuts) {
    const closeness *half = closeness_of(base);
    list l = {.cuts = cuts,
              .tolerance = half ? half->cuts : tolerance,
              .least = half ? half->least : LEAST_F32};
    name_it(add(&l, base, true), "as the run file has it");
    cut_batch(&l, base);
    cut_wave(&l, base);
    cut_recompute(&l, base);
    cut_placement(&l, base);
    cut_kernels(&l, base, flops);
    cut_precision(&l, base, TR_F32, "in f32");
    cut_precision(&l, base, TR_BF16, "in bf16");
    cut_precision(&l, base, TR_F16, "in fp16");
    cut_sums(&l, base);
    cut_apart(&l, base);
    return l.count;
}
