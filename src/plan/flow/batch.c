#include "plan/flow/batch.h"

#include "base/checked.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define T_KEY "train_batch_size"
#define M_KEY "train_micro_batch_size_per_gpu"
#define G_KEY "gradient_accumulation_steps"

static tr_status check_range(const char *key, int64_t value, int64_t least,
                             tr_error *err) {
    if (value >= least && value <= TR_BATCH_MAX) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE, "%s is %" PRId64 "; expected 1 to %" PRId64, key,
                   value, TR_BATCH_MAX);
}

// a * b * c, at most TR_BATCH_MAX; 0: more than that.
static int64_t product(int64_t a, int64_t b, int64_t c) {
    int64_t ab = 0, abc = 0;
    if (!tr__mul_i64(a, b, &ab) || !tr__mul_i64(ab, c, &abc) || abc > TR_BATCH_MAX) {
        return 0;
    }
    return abc;
}

static void suggest(char *dst, size_t size, const char *key, int64_t value) {
    size_t used = strlen(dst);
    if (value > 0) {
        snprintf(dst + used, size - used, "%s%s %" PRId64, used ? ", or " : "", key,
                 value);
    }
}

// All three are given and T is not m * g * W.
static tr_status fail_mismatch(const tr_batch_request *r, tr_error *err) {
    char fits[256] = "", makes[64] = "more than is possible";
    int64_t total = product(r->micro_batch, r->accumulation_steps, r->ranks);
    int64_t mw = product(r->micro_batch, r->ranks, 1);
    int64_t gw = product(r->accumulation_steps, r->ranks, 1);
    if (total > 0) {
        snprintf(makes, sizeof makes, "%" PRId64, total);
    }
    suggest(fits, sizeof fits, T_KEY, total);
    suggest(fits, sizeof fits, G_KEY,
            mw > 0 && r->train_batch_size % mw == 0 ? r->train_batch_size / mw : 0);
    suggest(fits, sizeof fits, M_KEY,
            gw > 0 && r->train_batch_size % gw == 0 ? r->train_batch_size / gw : 0);
    return tr_fail(err, TR_USAGE,
                   T_KEY " %" PRId64 " is not " M_KEY " %" PRId64 " x " G_KEY
                         " %" PRId64 " x %" PRId64
                         " rank%s, which makes %s; what would fit: %s%sno " G_KEY
                         " (the last micro-batch is then short)",
                   r->train_batch_size, r->micro_batch, r->accumulation_steps, r->ranks,
                   tr__plural(r->ranks), makes, fits, fits[0] ? ", or " : "");
}

// T and g are given and T is no multiple of g * W.
static tr_status fail_uneven(const tr_batch_request *r, tr_error *err) {
    char fits[256] = "";
    int64_t gw = product(r->accumulation_steps, r->ranks, 1);
    int64_t below = gw > 0 ? r->train_batch_size / gw * gw : 0;
    suggest(fits, sizeof fits, T_KEY, below);
    suggest(fits, sizeof fits, T_KEY,
            gw > 0 && below + gw <= TR_BATCH_MAX ? below + gw : 0);
    return tr_fail(err, TR_USAGE,
                   T_KEY " %" PRId64 " is no multiple of " G_KEY " %" PRId64
                         " x %" PRId64 " rank%s; what would fit: %s%s" M_KEY
                         " in place of " G_KEY " (the last micro-batch is then short)",
                   r->train_batch_size, r->accumulation_steps, r->ranks,
                   tr__plural(r->ranks), fits, fits[0] ? ", or " : "");
}

static tr_status derive_total(const tr_batch_request *r, tr_batch_cut *cut,
                              tr_error *err) {
    cut->accumulation_steps = r->accumulation_steps ? r->accumulation_steps : 1;
    cut->train_batch_size = product(r->micro_batch, cut->accumulation_steps, r->ranks);
    if (cut->train_batch_size > 0) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   M_KEY " %" PRId64 " x " G_KEY " %" PRId64 " x %" PRId64
                         " rank%s make more than the %" PRId64
                         " samples a step may have",
                   r->micro_batch, cut->accumulation_steps, r->ranks,
                   tr__plural(r->ranks), TR_BATCH_MAX);
}

// T is given.
static tr_status derive_cut(const tr_batch_request *r, tr_batch_cut *cut,
                            tr_error *err) {
    int64_t total = r->train_batch_size, m = r->micro_batch, g = r->accumulation_steps;
    if (m && g) {
        return product(m, g, r->ranks) == total ? TR_OK : fail_mismatch(r, err);
    }
    if (m) {
        // m * W fits: both are at most 2^31.
        cut->accumulation_steps = tr__ceil_div(total, m * r->ranks);
        return TR_OK;
    }
    cut->accumulation_steps = g ? g : 1;
    cut->micro_batch = tr__ceil_div(total, cut->accumulation_steps * r->ranks);
    return g && product(cut->micro_batch, g, r->ranks) != total ? fail_uneven(r, err)
                                                                : TR_OK;
}

static tr_status check_request(const tr_batch_request *r, tr_error *err) {
    tr_status status = check_range("the number of ranks", r->ranks, 1, err);
    if (status == TR_OK) {
        status = check_range(T_KEY, r->train_batch_size, 0, err);
    }
    if (status == TR_OK) {
        status = check_range(M_KEY, r->micro_batch, 0, err);
    }
    if (status == TR_OK) {
        status = check_range(G_KEY, r->accumulation_steps, 0, err);
    }
    if (status == TR_OK && !r->train_batch_size && !r->micro_batch) {
        status = tr_fail(err, TR_USAGE,
                         "Either " T_KEY " or " M_KEY " needs to be provided");
    }
    return status;
}

tr_status tr__batch_resolve(const tr_batch_request *request, tr_batch_cut *out,
                            tr_error *err) {
    tr_batch_cut cut = {.train_batch_size = request->train_batch_size,
                        .micro_batch = request->micro_batch,
                        .accumulation_steps = request->accumulation_steps,
                        .ranks = request->ranks};
    tr_status status = check_request(request, err);
    if (status == TR_OK) {
        status = request->train_batch_size ? derive_cut(request, &cut, err)
                                           : derive_total(request, &cut, err);
    }
    if (status != TR_OK) {
        return status;
    }
    cut.micro_batches = tr__ceil_div(cut.train_batch_size, cut.micro_batch);
    cut.last_micro_batch =
        cut.train_batch_size - (cut.micro_batches - 1) * cut.micro_batch;
    *out = cut;
    return TR_OK;
}
