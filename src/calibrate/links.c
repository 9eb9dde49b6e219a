// What ranks exchange in a second, and what computing loses to it.
#include "calibrate/beside.h"

enum { FLOATS = 1 << 20, LARGE = 16, LITTLE = 16, SMALL = 32 };

typedef struct exchange {
    const tr_measuring *m;
    float *memory;  // [ranks * floats]
    int64_t floats; // of each rank's part
} exchange;

// Gathers and reductions in turn.
static tr_status move(const tr_mover *mover, int count, void (*between)(void *),
                      void *what, tr_error *err) {
    const exchange *x = mover->own;
    tr_comm *comm = x->m->comm;
    tr_comm_op op = {.type = TR_COMM_F32,
                     .count = x->floats * tr_comm_ranks(comm),
                     .shard = x->floats};
    for (int i = 0; i < count; i++) {
        op.kind = i % 2 ? TR_COMM_REDUCE : TR_COMM_GATHER;
        op.send = i % 2 ? x->memory : NULL;
        op.recv = i % 2 ? x->memory + x->floats * tr_comm_rank(comm) : x->memory;
        tr__comm_start(comm, &op);
    }
    if (between) {
        between(what);
    }
    return tr__comm_wait(comm, tr__comm_newest(comm), err);
}

static tr_status measure(tr_measuring *m, exchange *x) {
    tr_machine *machine = m->machine;
    tr_mover mover = {move, x};
    int peers = tr_comm_ranks(m->comm) - 1;
    double large = 0, small = 0, part = 0;
    tr_status status = tr__measure_move(m, &mover, LARGE, &large);
    if (status == TR_OK) {
        status = tr__measure_beside(m, &mover, large, TR_COMM_QUEUE - 1, &part);
    }
    x->floats = LITTLE;
    if (status == TR_OK) {
        status = tr__measure_moves(m, &mover, SMALL, &small);
    }
    if (status == TR_OK) {
        double bytes = (double)(FLOATS * sizeof(float)) * peers;
        for (int way = TR_WAY_INSIDE; way <= TR_WAY_BETWEEN; way++) {
            machine->way[way].rate = bytes / large;
            machine->way[way].latency = small / SMALL;
        }
        machine->link_interference = part;
    }
    return status;
}

tr_status tr__measure_links(tr_measuring *m) {
    int ranks = tr_comm_ranks(m->comm);
    size_t bytes = (size_t)ranks * FLOATS * sizeof(float);
    size_t staging = (size_t)tr__comm_staging_bytes(ranks, false);
    tr_error mine = {0};
    tr_arena *arena = NULL;
    tr_status status = tr__arena_create("links", bytes + staging, &arena, &mine);
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        exchange x = {m, tr__arena_view(arena, 0, bytes), FLOATS};
        tr__measure_fill(arena, bytes);
        tr__comm_staging(m->comm, tr__arena_view(arena, bytes, staging));
        status = measure(m, &x);
        tr__comm_staging(m->comm, NULL);
    }
    tr__arena_destroy(arena);
    return status;
}
