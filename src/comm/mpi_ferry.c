#include "comm/mpi_ferry.h"

#include "base/checked.h"

// Elements [first, first + count) of a member's part are in a slice.
typedef struct span {
    int64_t first, count;
} span;

static int64_t element_of(const tr_mpi_ferry *f) {
    return (int64_t)tr__comm_type_bytes(f->task.op.type);
}

// Elements of each whole part in slice `number`.
static int64_t length_of(const tr_mpi_ferry *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    return tr__min_i64(f->slice, tr__min_i64(op->shard, op->count) - number * f->slice);
}

static span span_of(const tr_mpi_ferry *f, int64_t number, int member) {
    int64_t first, part, at = number * f->slice;
    tr__task_part(&f->task, member, &first, &part);
    int64_t count = tr__min_i64(length_of(f, number), part - at);
    return (span){at, tr__max_i64(count, 0)};
}

static char *slot_of(const tr_mpi_ferry *f, int64_t number) {
    const tr_comm *base = f->mover.base;
    return base->places[f->mover.channel].slots +
           number % TR_COMM_SLOTS * tr__comm_slot_bytes(base->ranks);
}

// Where a member's elements of the slice are in its slot; behind those of all members,
// the sum.
static char *staged(const tr_mpi_ferry *f, int64_t number, int member) {
    return slot_of(f, number) + member * length_of(f, number) * element_of(f);
}

static void copy(const tr_mpi_ferry *f, const void *from, void *to, int64_t elements) {
    const tr_comm_ferry *ferry = &f->mover.base->ferry;
    if (elements > 0) {
        ferry->copy(ferry->user, from, to, elements * element_of(f));
    }
}

// Element `first` of a member's part of the whole that begins at `whole`.
static char *in_whole(const tr_mpi_ferry *f, const void *whole, int member,
                      int64_t first) {
    return (char *)(uintptr_t)whole +
           (member * f->task.op.shard + first) * element_of(f);
}

// And of a part that lies alone.
static char *in_part(const tr_mpi_ferry *f, const void *part, int64_t first) {
    return in_whole(f, part, 0, first);
}

// ---- into a slot

static void load_gather(const tr_mpi_ferry *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    int own = f->mover.member;
    span s = span_of(f, number, own);
    const char *from =
        op->send ? in_part(f, op->send, s.first) : in_whole(f, op->recv, own, s.first);
    copy(f, from, staged(f, number, own), s.count);
}

static void load_reduce(const tr_mpi_ferry *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    int members = f->mover.group.count;
    for (int m = 0; m < members; m++) {
        span s = span_of(f, number, m);
        copy(f, in_whole(f, op->send, m, s.first), staged(f, number, m), s.count);
    }
    if (op->add) {
        span s = span_of(f, number, f->mover.member);
        copy(f, in_part(f, op->recv, s.first), staged(f, number, members), s.count);
    }
}

static int64_t mark(const tr_mpi_ferry *f) {
    return f->mover.base->ferry.mark(f->mover.base->ferry.user);
}

static void load_ahead(tr_mpi_ferry *f) {
    bool gathers = f->task.op.kind == TR_COMM_GATHER;
    for (; f->loaded < f->slices && f->loaded - f->moved < TR_COMM_SLOTS; f->loaded++) {
        (gathers ? load_gather : load_reduce)(f, f->loaded);
        f->in[f->loaded % TR_COMM_SLOTS] = mark(f);
    }
}

// ---- out of it

static void store_gather(const tr_mpi_ferry *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    for (int m = 0; m < f->mover.group.count; m++) {
        span s = span_of(f, number, m);
        char *to = in_whole(f, op->recv, m, s.first);
        bool there =
            m == f->mover.member && (!op->send || in_part(f, op->send, s.first) == to);
        copy(f, staged(f, number, m), to, there ? 0 : s.count);
    }
}

static void store_reduce(const tr_mpi_ferry *f, int64_t number) {
    span s = span_of(f, number, f->mover.member);
    copy(f, staged(f, number, f->mover.group.count),
         in_part(f, f->task.op.recv, s.first), s.count);
}

static void store(tr_mpi_ferry *f, int64_t number) {
    (f->task.op.kind == TR_COMM_GATHER ? store_gather : store_reduce)(f, number);
    f->out = mark(f);
}

// ---- the exchange of a slice

// A part that is short or empty is so in every slice from some one on, and those of the
// members behind it, too: a slice is an exchange like the whole.
static tr_task slice_of(const tr_mpi_ferry *f, int64_t number) {
    tr_task slice = f->task;
    bool gathers = slice.op.kind == TR_COMM_GATHER;
    int members = f->mover.group.count;
    slice.op.away = false;
    slice.op.shard = length_of(f, number);
    slice.op.count = 0;
    for (int m = 0; m < members; m++) {
        slice.op.count += span_of(f, number, m).count;
    }
    slice.op.send = gathers ? NULL : staged(f, number, 0);
    slice.op.recv = staged(f, number, gathers ? 0 : members);
    return slice;
}

static tr_status look(const tr_mpi_ferry *f, int64_t ticket, bool *done,
                      tr_error *err) {
    const tr_comm_ferry *ferry = &f->mover.base->ferry;
    return ferry->look(ferry->user, ticket, done, err);
}

static tr_status advance_slice(tr_mpi_ferry *f, bool *moved, tr_error *err) {
    bool over = false;
    tr_status status = tr__mover_advance(&f->mover, moved, &over, err);
    if (status == TR_OK && over) {
        store(f, f->moved++);
        load_ahead(f);
        f->moving = false;
        *moved = true;
    }
    return status;
}

static tr_status begin_slice(tr_mpi_ferry *f, bool *moved, tr_error *err) {
    bool there = false;
    tr_status status = look(f, f->in[f->moved % TR_COMM_SLOTS], &there, err);
    if (status == TR_OK && there) {
        tr_task slice = slice_of(f, f->moved);
        f->moving = *moved = true;
        status = tr__mover_begin(&f->mover, &slice, err);
    }
    return status;
}

tr_status tr__ferry_begin(tr_mpi_ferry *f, const tr_task *task, tr_error *err) {
    const tr_comm *base = f->mover.base;
    f->ferries = task->op.away;
    if (!f->ferries) {
        return tr__mover_begin(&f->mover, task, err);
    }
    if (!base->places[f->mover.channel].slots || !base->ferry.copy) {
        return tr_fail(err, TR_INTERNAL, "an exchange that nobody ferries");
    }
    tr_status status = tr__mover_join(&f->mover, &task->op.group, err);
    if (status != TR_OK) {
        return status;
    }
    f->task = *task;
    int64_t room = tr__comm_slot_bytes(base->ranks) / element_of(f);
    int64_t longest = tr__min_i64(task->op.shard, task->op.count);
    f->slice = room / (f->mover.group.count + 1);
    f->slice -= f->slice % TR_COMM_SLICE_LEAST; // so that parts stay aligned
    f->slices = tr__ceil_div(longest, f->slice);
    f->loaded = f->moved = f->out = 0;
    f->moving = false;
    load_ahead(f);
    return TR_OK;
}

tr_status tr__ferry_advance(tr_mpi_ferry *f, bool *moved, bool *finished,
                            tr_error *err) {
    if (!f->ferries) {
        return tr__mover_advance(&f->mover, moved, finished, err);
    }
    *moved = *finished = false;
    if (f->moving) {
        return advance_slice(f, moved, err);
    }
    return f->moved < f->slices ? begin_slice(f, moved, err)
                                : look(f, f->out, finished, err);
}
