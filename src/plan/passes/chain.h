// Exchanges of the stages of a pipeline that have one tensor. They need be neither
// neighbours nor evenly apart, so they work in pairs: hop h of a chain is between stage
// number h - 1 of them and stage number h (tr__stage_with), h = 1 and on.
#ifndef TR_PLAN_PASSES_CHAIN_H
#define TR_PLAN_PASSES_CHAIN_H

#include "plan/flow/maker.h"

// `exchange`: what is exchanged, and of which type.
typedef struct tr_chain {
    tr_editor *editor;
    const tr_flat *flat;
    tr_plan_step step;
    tr_exchange exchange;
    tr_region all; // what each of them has
} tr_chain;

// tr__make_sum, or one half of it.
typedef void tr_hop_maker(tr_editor *editor, tr_plan_step step, tr_exchange exchange,
                          tr_region all);

int64_t tr__chain_hops(const tr_flat *flat);
// Nothing, where this rank's stage is not at the hop. `lower`: stage number h - 1 gets
// or has all of it; else each of the two a half.
void tr__put_hop(const tr_chain *chain, int64_t hop, bool lower, tr_hop_maker *make);

#endif
