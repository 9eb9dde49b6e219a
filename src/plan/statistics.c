// Where the norms of tensors lie in what ranks measure.
#include "plan/statistics.h"

#include "base/checked.h"
#include "plan/plan.h"

int64_t tr__norms_ranks(const tr_plan *plan) {
    return tr__plan_stage(plan) > 0 ? tr__data_ranks(&plan->request) : 1;
}

tr_space tr__norms_space(const tr_plan *plan) {
    bool here = plan->request.optimizer_placement == TR_SPACE_DEVICE;
    return here ? TR_SPACE_DEVICE : tr__plan_shared_space(plan);
}

int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat) {
    if (flat->frozen) {
        return 0;
    }
    int64_t most = tr__min_i64(tr__update_shard(plan, flat), flat->count);
    return tr__ceil_div(most, TR_SHARD_ELEMENTS) + flat->param_count;
}

int64_t tr__norms_part(const tr_plan *plan, const tr_plan_param *param, int64_t block) {
    const tr_flat *flat = &plan->flats[param->flat];
    int64_t shard = tr__update_shard(plan, flat);
    int64_t rank = block * TR_SHARD_ELEMENTS / shard;
    int64_t within = block - rank * shard / TR_SHARD_ELEMENTS;
    return rank * plan->norms.parts + flat->parts + within + param->place;
}
