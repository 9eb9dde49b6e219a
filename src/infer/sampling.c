// Drawing a token: temperature, top-k (Fan et al., "Hierarchical neural story
// generation", arXiv 1805.04833) and top-p (Holtzman et al., "The curious case of
// neural text degeneration", arXiv 1904.09751), in this order, as transformers'
// generate does.
#include "base/arguments.h"
#include "base/memory.h"
#include "base/rng.h"
#include "infer/logits.h"

#include <tranche/sample.h>

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    float logit;
    int32_t token;
} candidate;

static int64_t best_of(const float *logits, int64_t vocabulary) {
    int64_t best = 0;
    for (int64_t i = 1; i < vocabulary; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

// Relative to the best token's: exp of what is at most 0.
static double weight_of(float logit, float best, double temperature) {
    return exp((double)(logit - best) / temperature);
}

// Ascending; of equal logits the larger token first.
static int compare(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->logit != b->logit) {
        return a->logit < b->logit ? -1 : 1;
    }
    return a->token > b->token ? -1 : 1;
}

// How many of the first candidates top-k leaves out: all below the k-th best logit.
static int64_t below_top_k(const candidate *sorted, int64_t count, int64_t top_k) {
    int64_t first = top_k > 0 && top_k < count ? count - top_k : 0;
    while (first > 0 && sorted[first - 1].logit == sorted[first].logit) {
        first--;
    }
    return first;
}

// How many of them top-p leaves out besides: as long as they come to no more than 1 -
// top_p of what top-k has left. The last one stays.
static int64_t below_top_p(const candidate *sorted, int64_t first, int64_t count,
                           const tr_sampling *how) {
    float best = sorted[count - 1].logit;
    double total = 0, sum = 0;
    if (!(how->top_p > 0 && how->top_p < 1)) {
        return first;
    }
    for (int64_t i = first; i < count; i++) {
        total += weight_of(sorted[i].logit, best, how->temperature);
    }
    for (; first < count - 1; first++) {
        sum += weight_of(sorted[first].logit, best, how->temperature);
        if (sum / total > 1 - how->top_p) {
            break;
        }
    }
    return first;
}

static bool keeps_all(const tr_sampling *how, int64_t vocabulary) {
    bool k = how->top_k <= 0 || how->top_k >= vocabulary;
    return k && !(how->top_p > 0 && how->top_p < 1);
}

static tr_status check_how(const tr_sampling *how, const char *function,
                           tr_error *err) {
    static const tr_sized known = {"tr_sampling", "TR_SAMPLING_INIT", sizeof *how, 0};
    return tr__need_sized(how, &known, function, err);
}

tr_status tr_sample_keep(const float *logits, int64_t vocabulary,
                         const tr_sampling *how, bool *kept, tr_error *err) {
    static const char own_name[] = "tr_sample_keep";
    tr_status given = tr__need(logits, own_name, "logits", err);
    given = given == TR_OK ? check_how(how, own_name, err) : given;
    given = given == TR_OK ? tr__need(kept, own_name, "kept", err) : given;
    if (given != TR_OK) {
        return given;
    }
    if (!(how->temperature > 0)) {
        int64_t best = best_of(logits, vocabulary);
        for (int64_t i = 0; i < vocabulary; i++) {
            kept[i] = i == best;
        }
        return TR_OK;
    }
    if (keeps_all(how, vocabulary)) {
        for (int64_t i = 0; i < vocabulary; i++) {
            kept[i] = true;
        }
        return TR_OK;
    }
    candidate *sorted = tr__calloc((size_t)vocabulary, sizeof *sorted);
    if (!sorted) {
        return tr_fail(err, TR_MEMORY, "no memory to choose among %lld tokens",
                       (long long)vocabulary);
    }
    for (int64_t i = 0; i < vocabulary; i++) {
        sorted[i] = (candidate){isnan(logits[i]) ? -INFINITY : logits[i], (int32_t)i};
    }
    qsort(sorted, (size_t)vocabulary, sizeof *sorted, compare);
    int64_t first = below_top_k(sorted, vocabulary, how->top_k);
    first = below_top_p(sorted, first, vocabulary, how);
    for (int64_t i = 0; i < vocabulary; i++) {
        kept[sorted[i].token] = i >= first;
    }
    tr__free(sorted);
    return TR_OK;
}

// kept: [vocabulary], NULL: all.
static int32_t draw(const float *logits, int64_t vocabulary, const bool *kept,
                    const tr_sampling *how, uint64_t index) {
    int64_t best = best_of(logits, vocabulary);
    double total = 0, sum = 0;
    if (!(how->temperature > 0)) {
        return (int32_t)best;
    }
    for (int64_t i = 0; i < vocabulary; i++) {
        if (!kept || kept[i]) {
            total += weight_of(logits[i], logits[best], how->temperature);
        }
    }
    double share =
        (double)tr__draw_below(UINT64_C(1) << 53, index, how->seed, 0) * 0x1p-53;
    for (int64_t i = 0; i < vocabulary; i++) {
        if (!kept || kept[i]) {
            sum += weight_of(logits[i], logits[best], how->temperature);
            if (sum > share * total) {
                return (int32_t)i;
            }
        }
    }
    return (int32_t)best;
}

int32_t tr_sample_draw(const float *logits, int64_t vocabulary, double temperature,
                       uint64_t seed, uint64_t index) {
    tr_sampling how = {
        .size = sizeof(tr_sampling), .temperature = temperature, .seed = seed};
    return draw(logits, vocabulary, NULL, &how, index);
}

tr_status tr_sample_pick(const float *logits, int64_t vocabulary,
                         const tr_sampling *how, uint64_t index, int32_t *token,
                         tr_error *err) {
    static const char own_name[] = "tr_sample_pick";
    tr_status given = tr__need(logits, own_name, "logits", err);
    given = given == TR_OK ? check_how(how, own_name, err) : given;
    given = given == TR_OK ? tr__need(token, own_name, "token", err) : given;
    if (given != TR_OK) {
        return given;
    }
    tr_status finite = tr__logits_check(logits, vocabulary, err);
    if (finite != TR_OK) {
        return finite;
    }
    if (keeps_all(how, vocabulary)) {
        *token = draw(logits, vocabulary, NULL, how, index);
        return TR_OK;
    }
    bool *kept = tr__calloc((size_t)vocabulary, sizeof *kept);
    tr_status status = kept ? tr_sample_keep(logits, vocabulary, how, kept, err)
                            : tr_fail(err, TR_MEMORY, "no memory to draw a token");
    if (status == TR_OK) {
        *token = draw(logits, vocabulary, kept, how, index);
    }
    tr__free(kept);
    return status;
}
