// What a discrete device's copies carry in a second, either way, and what its kernels
// lose to them.
#include "base/checked.h"
#include "calibrate/beside.h"

enum { BLOCK = 16 << 20, BLOCKS = 8, SMALL = 64, SMALL_ORDERS = 32 };

typedef struct copying {
    tr_measuring *m;
    void *from, *to;
    int64_t bytes; // of an order
} copying;

static tr_status copy(const tr_mover *mover, int count, void (*between)(void *),
                      void *what, tr_error *err) {
    const copying *c = mover->own;
    (void)err; // it is the device's, and stays with it
    for (int i = 0; i < count; i++) {
        c->m->backend->queues->copy(c->m->copies, c->from, c->to, c->bytes);
    }
    if (between) {
        between(what);
    }
    tr__measure_settle(c->m, c->m->copies);
    return TR_OK;
}

// Seconds of one order.
static tr_status seconds_of(tr_measuring *m, copying *c, int64_t bytes, int count,
                            double *each) {
    const tr_mover mover = {copy, c};
    c->bytes = bytes;
    return tr__measure_move(m, &mover, count, each);
}

static tr_status measure_way(tr_measuring *m, copying *c, int64_t block, tr_way way) {
    double each = 0, tiny = 0, part = 0;
    tr_machine *machine = m->machine;
    tr_status status = seconds_of(m, c, block, BLOCKS, &each);
    if (status == TR_OK) {
        const tr_mover mover = {copy, c};
        status = tr__measure_beside(m, &mover, each, BLOCKS, &part);
    }
    if (status == TR_OK) {
        status = seconds_of(m, c, SMALL, SMALL_ORDERS, &tiny);
    }
    if (status == TR_OK) {
        machine->way[way].rate = (double)block / each;
        machine->way[way].latency = tiny;
        machine->copy_interference =
            part > machine->copy_interference ? part : machine->copy_interference;
    }
    return status;
}

tr_status tr__measure_device_copies(tr_measuring *m) {
    int64_t block = tr__min_i64(BLOCK, m->memory / 4);
    tr_arena *device = NULL, *host = NULL;
    tr_error mine = {0};
    tr_status status =
        tr__measure_take(m, "copies", (size_t)block, false, &device, &mine);
    if (status == TR_OK) {
        status = tr__arena_create_from(tr__backend_host_memory(m->backend), "copies",
                                       (size_t)block, &host, &mine);
    }
    status = tr__agree(m->comm, status, &mine, m->err);
    if (status == TR_OK) {
        void *here = tr__arena_view(host, 0, (size_t)block);
        void *there = tr__arena_view(device, 0, (size_t)block);
        copying in = {m, here, there, 0}, out = {m, there, here, 0};
        tr__measure_fill(host, (size_t)block);
        status = measure_way(m, &in, block, TR_WAY_TO_DEVICE);
        if (status == TR_OK) {
            status = measure_way(m, &out, block, TR_WAY_TO_HOST);
        }
    }
    tr__arena_destroy(device);
    tr__arena_destroy(host);
    return status;
}
