// What ranks exchange in a second, and what computing loses to it.
#include "calibrate/beside.h"

#include <math.h>

enum { FLOATS = 1 << 20, LARGE = 16, LITTLE = 16, SMALL = 32 };

typedef struct exchange {
    const tr_measuring *m;
    float *memory;  // [ranks * floats]
    int64_t floats; // of each member's part
    tr_comm_group group;
} exchange;

// Gathers and reductions in turn.
static tr_status move(const tr_mover *mover, int count, void (*between)(void *),
                      void *what, tr_error *err) {
    const exchange *x = mover->own;
    tr_comm *comm = x->m->comm;
    const tr_comm_group *group = &x->group;
    int member = (tr_comm_rank(comm) - group->first) / group->stride;
    tr_comm_op op = {.type = TR_COMM_F32,
                     .count = x->floats * group->count,
                     .shard = x->floats,
                     .group = *group};
    for (int i = 0; i < count; i++) {
        op.kind = i % 2 ? TR_COMM_REDUCE : TR_COMM_GATHER;
        op.send = i % 2 ? x->memory : NULL;
        op.recv = i % 2 ? x->memory + x->floats * member : x->memory;
        tr__comm_start(comm, &op);
    }
    if (between) {
        between(what);
    }
    return tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_newest(comm, TR_COMM_RANKS),
                         err);
}

// All groups at the same time. *part: what computing and messages take from each other.
static tr_status measure_way(tr_measuring *m, exchange *x, tr_way way, double *part) {
    tr_mover mover = {move, x};
    double large = 0, small = 0;
    x->floats = FLOATS;
    tr_status status = tr__measure_move(m, &mover, LARGE, &large);
    if (status == TR_OK) {
        status = tr__measure_beside(m, &mover, large, TR_COMM_QUEUE - 1, part);
    }
    x->floats = LITTLE;
    if (status == TR_OK) {
        status = tr__measure_moves(m, &mover, SMALL, &small);
    }
    if (status == TR_OK) {
        double bytes = (double)(FLOATS * sizeof(float)) * (x->group.count - 1);
        m->machine->way[way].rate = bytes / large;
        m->machine->way[way].latency = small / SMALL;
    }
    return status;
}

// As the run has it, else as it is.
int tr__measure_near(const tr_measuring *m) {
    int64_t asked = m->request->node_ranks, ranks = tr_comm_ranks(m->comm);
    return asked > 0 && ranks % asked == 0 ? (int)asked : tr__comm_node_ranks(m->comm);
}

// Where ranks are on one node, links between nodes are taken to be like those on it;
// and the other way round where each is on its own.
static tr_status measure(tr_measuring *m, exchange *x) {
    tr_machine *machine = m->machine;
    int ranks = tr_comm_ranks(m->comm), rank = tr_comm_rank(m->comm);
    int near = tr__measure_near(m) > 0 ? tr__measure_near(m) : ranks;
    double part[2] = {0, 0};
    tr_status status = TR_OK;
    if (near > 1) {
        x->group = (tr_comm_group){rank / near * near, 1, near};
        status = measure_way(m, x, TR_WAY_INSIDE, &part[0]);
        machine->way[TR_WAY_BETWEEN] = machine->way[TR_WAY_INSIDE];
    }
    if (status == TR_OK && near < ranks) {
        x->group = (tr_comm_group){rank % near, near, ranks / near};
        status = measure_way(m, x, TR_WAY_BETWEEN, &part[1]);
        if (near == 1) {
            machine->way[TR_WAY_INSIDE] = machine->way[TR_WAY_BETWEEN];
        }
    }
    machine->link_interference = fmax(part[0], part[1]);
    return status;
}

tr_status tr__measure_links(tr_measuring *m) {
    int ranks = tr_comm_ranks(m->comm);
    size_t bytes = (size_t)ranks * FLOATS * sizeof(float);
    tr_comm_room room = {.ranks = ranks};
    size_t staging = (size_t)tr__comm_staging_bytes(&room);
    tr_error mine = {0};
    tr_arena *arena = NULL;
    tr_status status = tr__arena_create("links", bytes + staging, &arena, &mine);
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        exchange x = {m, tr__arena_view(arena, 0, bytes), FLOATS, {0, 1, ranks}};
        tr__measure_fill(arena, bytes);
        tr__comm_staging(m->comm, &room, tr__arena_view(arena, bytes, staging));
        status = measure(m, &x);
        tr__comm_staging(m->comm, &room, NULL);
    }
    tr__arena_destroy(arena);
    return status;
}
