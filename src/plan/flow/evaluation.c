#include "plan/flow/evaluation.h"

#include "base/checked.h"

enum { ROUND_MICROS = 64 }; // of a rank, at most

// Rounds are of about the same length, and none is longer than ROUND_MICROS.
tr_evaluation_deal tr__evaluation_deal(const tr_plan *plan, int64_t samples) {
    const tr_plan_request *r = &plan->request;
    int64_t ranks = tr__data_ranks(r);
    int64_t micros = tr__ceil_div(samples, r->micro_batch);
    int64_t each = tr__ceil_div(micros, ranks);
    int64_t share = tr__ceil_div(each, tr__ceil_div(each, ROUND_MICROS));
    return (tr_evaluation_deal){micros, share, ranks * share};
}

int64_t tr__evaluation_share(const tr_evaluation_deal *deal, int64_t first) {
    return tr__min_i64(deal->share, deal->micros - first);
}
