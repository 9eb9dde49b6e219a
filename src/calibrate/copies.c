// What the streams between memory spaces carry in a second, and what computing loses to
// them.
#include "backend/host/copy_engine.h"
#include "base/checked.h"
#include "calibrate/beside.h"

#include <math.h>

enum { BLOCK = 16 << 20, BLOCKS = 8, FILE_BLOCK = 4 << 20, FILE_BLOCKS = 16 };
enum { SMALL_ORDERS = 32 };

typedef struct carrying {
    tr_copy_engine *copy_engine;
    tr_carry_kind kind;
    char *memory;   // [2 * block]
    int64_t block;  // bytes of an order
    int64_t blocks; // of the file
    tr_error fault; // what this rank alone knows of until the end
} carrying;

static tr_status carry(const tr_mover *mover, int count, void (*between)(void *),
                       void *what, tr_error *err) {
    carrying *c = mover->own;
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        tr_carry order = {.kind = c->kind,
                          .from = c->memory,
                          .to = c->kind == TR_CARRY_READ ? c->memory
                                                         : c->memory + c->block,
                          .bytes = c->block,
                          .offset = i % c->blocks * c->block};
        tr__copy_engine_start(c->copy_engine, &order);
    }
    if (between) {
        between(what);
    }
    tr__copy_engine_wait(c->copy_engine, tr__copy_engine_newest(c->copy_engine),
                         &c->fault);
    return TR_OK;
}

// Seconds of one order.
static tr_status seconds_of(tr_measuring *m, carrying *c, tr_carry_kind kind, int count,
                            double *each) {
    tr_mover mover = {carry, c};
    c->kind = kind;
    return tr__measure_move(m, &mover, count, each);
}

static tr_status beside(tr_measuring *m, carrying *c, tr_carry_kind kind, double each,
                        double *part) {
    tr_mover mover = {carry, c};
    c->kind = kind;
    return tr__measure_beside(m, &mover, each, TR_CARRY_QUEUE, part);
}

// The copy engine and its memory; all ranks have them, or none goes on.
static tr_status prepare(tr_measuring *m, const tr_copy_engine_options *options,
                         int64_t block, carrying *c, tr_arena **arena, tr_error *err) {
    tr_error mine = {0};
    c->block = block;
    c->blocks = options->file_bytes > 0 ? options->file_bytes / block : 1;
    tr_status status = tr__arena_create("copies", 2 * (size_t)block, arena, &mine);
    if (status == TR_OK) {
        c->memory = tr__arena_view(*arena, 0, 2 * (size_t)block);
        tr__measure_fill(*arena, 2 * (size_t)block);
        status = tr__copy_engine_create(options, &c->copy_engine, &mine);
    }
    return tr__agree(m->comm, status, &mine, err);
}

tr_status tr__measure_copies(tr_measuring *m) {
    if (m->queue) {
        return tr__measure_device_copies(m);
    }
    tr_copy_engine_options options = {.folder = ""};
    tr_machine *machine = m->machine;
    tr_arena *arena = NULL;
    carrying c = {0};
    double each = 0, tiny = 0;
    int64_t block = tr__min_i64(BLOCK, m->memory / 4 / TR_CARRY_ALIGN * TR_CARRY_ALIGN);
    tr_status status = prepare(m, &options, block, &c, &arena, m->err);
    if (status == TR_OK) {
        status = seconds_of(m, &c, TR_CARRY_COPY, BLOCKS, &each);
    }
    if (status == TR_OK) {
        status = beside(m, &c, TR_CARRY_COPY, each, &machine->copy_interference);
    }
    if (status == TR_OK) {
        c.block = 64;
        status = seconds_of(m, &c, TR_CARRY_COPY, SMALL_ORDERS, &tiny);
    }
    if (status == TR_OK) {
        for (int way = TR_WAY_TO_DEVICE; way <= TR_WAY_TO_HOST; way++) {
            machine->way[way].rate = (double)block / each;
            machine->way[way].latency = tiny;
        }
    }
    tr__copy_engine_destroy(c.copy_engine);
    tr__arena_destroy(arena);
    return status;
}

// ---- NVMe

// The faster of two rounds: the first writes where nothing was before, and reads while
// the disk may still be busy with that.
static tr_status file_rates(tr_measuring *m, carrying *c, double *write, double *read) {
    tr_status status = TR_OK;
    for (int round = 0; round < 2 && status == TR_OK; round++) {
        double wrote = 0, got = 0;
        status = seconds_of(m, c, TR_CARRY_WRITE, FILE_BLOCKS, &wrote);
        if (status == TR_OK) {
            status = seconds_of(m, c, TR_CARRY_READ, FILE_BLOCKS, &got);
        }
        *write = round > 0 ? fmin(*write, wrote) : wrote;
        *read = round > 0 ? fmin(*read, got) : got;
    }
    return status;
}

static tr_status measure_file(tr_measuring *m, carrying *c) {
    tr_machine *machine = m->machine;
    double write = 0, read = 0, small_write = 0, small_read = 0;
    tr_status status = file_rates(m, c, &write, &read);
    if (status == TR_OK) {
        status = beside(m, c, TR_CARRY_READ, read, &machine->nvme_interference);
    }
    c->block = TR_CARRY_ALIGN;
    if (status == TR_OK) {
        status = seconds_of(m, c, TR_CARRY_WRITE, SMALL_ORDERS, &small_write);
    }
    if (status == TR_OK) {
        status = seconds_of(m, c, TR_CARRY_READ, SMALL_ORDERS, &small_read);
    }
    if (status == TR_OK) {
        machine->way[TR_WAY_NVME_READ].rate = FILE_BLOCK / read;
        machine->way[TR_WAY_NVME_READ].latency = small_read;
        machine->way[TR_WAY_NVME_WRITE].rate = FILE_BLOCK / write;
        machine->way[TR_WAY_NVME_WRITE].latency = small_write;
    }
    return status;
}

// A folder that cannot be used is an error of the run that wants it, not of this.
tr_status tr__measure_nvme(tr_measuring *m, const char *folder) {
    tr_copy_engine_options options = {.folder = folder,
                                      .file_bytes = (int64_t)FILE_BLOCK * FILE_BLOCKS};
    tr_arena *arena = NULL;
    carrying c = {0};
    tr_error why = {0};
    tr_status status = prepare(m, &options, FILE_BLOCK, &c, &arena, &why);
    if (status == TR_OK) {
        tr_error *err = m->err;
        m->err = &why;
        status = measure_file(m, &c);
        if (status == TR_OK) {
            status = tr__agree(m->comm, c.fault.status, &c.fault, &why);
        }
        m->err = err;
    }
    tr__copy_engine_destroy(c.copy_engine);
    tr__arena_destroy(arena);
    if (status == TR_IO) {
        m->machine->way[TR_WAY_NVME_READ].rate = 0;
        m->machine->way[TR_WAY_NVME_WRITE].rate = 0;
        tr__note(m->log, "NVMe was not measured: %s", why.message);
        return TR_OK;
    }
    return status == TR_OK ? TR_OK : tr_fail(m->err, status, "%s", why.message);
}
