// How attention's work is cut between threads: a function of the sizes and the number
// of threads alone.
//
// A head of a sample is `tiles` tasks; task i costs 2 i + 1 (the tiles under the
// diagonal count twice, the one on it once), or, where queries see only a window, or
// both ways, each as much as any other. A piece is a run of tasks that may begin and
// end inside a head, so any number of threads gets equal work from any number of heads.
#ifndef TR_OPS_NN_ATTENTION_CPU_CUT_H
#define TR_OPS_NN_ATTENTION_CPU_CUT_H

#include "backend/cpu/parallel.h"
#include "ops/nn/attention/sizes.h"

#include <math.h>

typedef struct tr_attention_cut {
    int64_t heads, tiles; // heads of all samples, tasks of each
    bool even;            // all tasks cost the same
    int pieces;
    int threads; // of the region that runs them: 1, or all
} tr_attention_cut;

// `heads`: of one sample; `tile`: queries, or keys, of one task.
static inline tr_attention_cut tr__attention_cut(const tr_attention_sizes *s,
                                                 int64_t heads, int64_t tile,
                                                 int threads) {
    tr_attention_cut cut = {.heads = s->batch * heads,
                            .tiles = tr__ceil_div(s->context, tile),
                            .even = s->both || tr__attention_windowed(s)};
    // One pair of a query and a key takes about as long as moving depth / 2 floats.
    int64_t weight = tr__min_i64(s->depth / 2 + 1, 4096);
    // In doubles: a plan may be asked for more pairs than an int64_t counts.
    double pairs = (double)(s->batch * s->heads) * (double)s->context *
                   (double)(s->window + 1) / (s->both ? 1 : 2);
    cut.threads = tr__threads_for((int64_t)fmin(pairs, 0x1p40), weight, threads);
    cut.pieces = (int)tr__min_i64(cut.threads, cut.heads * cut.tiles);
    return cut;
}

// The first task of piece `piece`; task t is task t % tiles of head t / tiles. Piece p
// is [start(p), start(p + 1)), which may be empty.
static inline int64_t tr__attention_start(const tr_attention_cut *cut, int piece) {
    int64_t head_cost = cut->tiles * cut->tiles;
    if (cut->even) {
        return cut->heads * cut->tiles * piece / cut->pieces;
    }
    int64_t cost = cut->heads * head_cost * piece / cut->pieces;
    // The first i tasks of a head cost i * i.
    int64_t task = llround(sqrt((double)(cost % head_cost)));
    return cost / head_cost * cut->tiles + task;
}

#endif
