// What all patterns of pieces ask of a mover: who sends to whom, and what has come.
#include "comm/mpi_move.h"

int tr__mover_sender(const tr_mpi_mover *m, const tr_lane *lane,
                     const tr_round *round) {
    return tr__stage_member(&m->stage,
                            m->stage.member - (lane == &m->in ? round->by : 0));
}

int tr__mover_peer(const tr_mpi_mover *m, const tr_lane *lane, const tr_round *round) {
    int by = lane == &m->in ? -round->by : round->by;
    return tr__stage_rank(&m->stage, m->stage.member + by);
}

char *tr__mover_chunk(const tr_mpi_mover *m, int64_t number) {
    return m->base->places[m->channel].chunks + number % TR_COMM_WINDOW * TR_COMM_CHUNK;
}

// What comes is dealt with in its order: all before the first piece that is under way
// is there.
bool tr__mover_has(const tr_mpi_mover *m, int round, int64_t end) {
    const tr_lane *in = &m->in;
    const tr_mpi_piece *under_way = &in->pieces[in->done % TR_LANE];
    if (in->done == in->posted) {
        return in->over || in->round > round;
    }
    return under_way->round > round ||
           (under_way->round == round && under_way->run == 0 &&
            under_way->offset >= end);
}
