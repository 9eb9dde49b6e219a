#include "plan/passes/chain.h"

int64_t tr__chain_hops(const tr_flat *flat) {
    return tr__stages_with(&flat->axes) - 1;
}

void tr__put_hop(const tr_chain *chain, int64_t hop, bool lower, tr_hop_maker *make) {
    const tr_mesh *mesh = &chain->editor->plan->request.mesh;
    int64_t stage = mesh->at[TR_AXIS_PIPELINE];
    int64_t from = tr__stage_with(&chain->flat->axes, hop - 1),
            to = tr__stage_with(&chain->flat->axes, hop);
    int64_t element = (int64_t)tr__comm_type_bytes(chain->exchange.type);
    tr_exchange exchange = chain->exchange;
    exchange.group = TR_ON_PIPELINE;
    exchange.from = (int32_t)from;
    exchange.to = (int32_t)to;
    exchange.shard = lower ? (chain->all.end - chain->all.first) / element : 0;
    if (stage == from || stage == to) {
        make(chain->editor, chain->step, exchange, chain->all);
    }
}
