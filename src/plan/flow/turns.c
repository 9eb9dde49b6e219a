#include "plan/flow/turns.h"

#include "base/checked.h"
#include "base/memory.h"

#include <math.h>

// Of a micro-batch in the chunks, in the mean.
static const double takes_mean = 1000;

int64_t tr__pipeline_turn_index(const tr_turns *turns, tr_pipeline_turn turn) {
    int64_t chunks = tr__chunk_count(&turns->chunks);
    return (turn.kind * chunks + turn.chunk) * turns->waves + turn.wave;
}

int64_t tr__pipeline_turn_takes(const tr_turns *turns, tr_pipeline_turn turn) {
    return turns->takes[turn.kind * tr__chunk_count(&turns->chunks) + turn.chunk];
}

int64_t tr__pipeline_turn_end(const tr_turns *turns, tr_pipeline_turn turn) {
    return turns->ends[tr__pipeline_turn_index(turns, turn)];
}

int64_t tr__pipeline_turn_begin(const tr_turns *turns, tr_pipeline_turn turn) {
    return tr__pipeline_turn_end(turns, turn) - tr__pipeline_turn_takes(turns, turn);
}

int64_t tr__turns_under_way(const tr_turns *turns, tr_turn_kind ends, int last) {
    int64_t under_way = 0, most = 0;
    for (int64_t i = 0; i < turns->count; i++) {
        const tr_pipeline_turn *turn = &turns->turn[i];
        under_way += turn->kind == TR_TURN_FORWARD &&
                     turn->chunk < turns->chunks.stages; // a stage's first chunk
        most = tr__max_i64(most, under_way);
        under_way -= turn->kind == ends && turn->chunk == last;
    }
    return most;
}

void tr__turns_clear(tr_turns *turns) {
    tr__free(turns->turn);
    tr__free(turns->takes);
    tr__free(turns->ends);
    *turns = (tr_turns){.turn = NULL};
}

void tr__turns_take(const double *cost, int units, const int *first, int chunks,
                    int64_t *takes) {
    double all = 0;
    for (int i = 0; i < TR_TURN_KINDS * units; i++) {
        all += cost[i];
    }
    for (int i = 0; i < TR_TURN_KINDS * chunks; i++) {
        double sum = 0;
        int c = i % chunks;
        for (int u = first[c]; u < first[c + 1]; u++) {
            sum += cost[i / chunks * units + u];
        }
        double mean = round(sum / all * chunks * takes_mean);
        takes[i] = tr__max_i64(1, (int64_t)mean);
    }
}
