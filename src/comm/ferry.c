#include "comm/ferry.h"

#include "base/checked.h"

// Elements [first, first + count) of a member's part are in a slice.
typedef struct span {
    int64_t first, count;
} span;

static int64_t element_of(const tr_ferrying *f) {
    return (int64_t)tr__comm_type_bytes(f->task.op.type);
}

// Elements of each whole part in slice `number`.
static int64_t length_of(const tr_ferrying *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    return tr__min_i64(f->slice, tr__min_i64(op->shard, op->count) - number * f->slice);
}

static span span_of(const tr_ferrying *f, int64_t number, int member) {
    int64_t first, part, at = number * f->slice;
    tr__task_part(&f->task, member, &first, &part);
    int64_t count = tr__min_i64(length_of(f, number), part - at);
    return (span){at, tr__max_i64(count, 0)};
}

static char *slot_of(const tr_ferrying *f, int64_t number) {
    const tr_comm *comm = f->comm;
    return comm->places[f->task.op.channel].slots +
           number % TR_COMM_SLOTS * tr__comm_slot_bytes(comm->ranks);
}

// Where a member's elements of the slice are in its slot; behind those of all members,
// the sum.
static char *staged(const tr_ferrying *f, int64_t number, int member) {
    return slot_of(f, number) + member * length_of(f, number) * element_of(f);
}

static void copy(const tr_ferrying *f, const void *from, void *to, int64_t elements) {
    const tr_comm_ferry *ferry = &f->comm->ferry;
    if (elements > 0) {
        ferry->copy(ferry->user, from, to, elements * element_of(f));
    }
}

// Element `first` of a member's part of the whole that begins at `whole`.
static char *in_whole(const tr_ferrying *f, const void *whole, int member,
                      int64_t first) {
    return (char *)(uintptr_t)whole +
           (member * f->task.op.shard + first) * element_of(f);
}

// And of a part that lies alone.
static char *in_part(const tr_ferrying *f, const void *part, int64_t first) {
    return in_whole(f, part, 0, first);
}

// ---- into a slot

static void load_gather(const tr_ferrying *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    int own = f->member;
    span s = span_of(f, number, own);
    const char *from =
        op->send ? in_part(f, op->send, s.first) : in_whole(f, op->recv, own, s.first);
    copy(f, from, staged(f, number, own), s.count);
}

static void load_reduce(const tr_ferrying *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    int members = f->members;
    for (int m = 0; m < members; m++) {
        span s = span_of(f, number, m);
        copy(f, in_whole(f, op->send, m, s.first), staged(f, number, m), s.count);
    }
    if (op->add) {
        span s = span_of(f, number, f->member);
        copy(f, in_part(f, op->recv, s.first), staged(f, number, members), s.count);
    }
}

static int64_t mark(const tr_ferrying *f) {
    return f->comm->ferry.mark(f->comm->ferry.user);
}

static void load_ahead(tr_ferrying *f) {
    bool gathers = f->task.op.kind == TR_COMM_GATHER;
    for (; f->loaded < f->slices && f->loaded - f->moved < TR_COMM_SLOTS; f->loaded++) {
        (gathers ? load_gather : load_reduce)(f, f->loaded);
        f->in[f->loaded % TR_COMM_SLOTS] = mark(f);
    }
}

// ---- out of it

static void store_gather(const tr_ferrying *f, int64_t number) {
    const tr_comm_op *op = &f->task.op;
    for (int m = 0; m < f->members; m++) {
        span s = span_of(f, number, m);
        char *to = in_whole(f, op->recv, m, s.first);
        bool there =
            m == f->member && (!op->send || in_part(f, op->send, s.first) == to);
        copy(f, staged(f, number, m), to, there ? 0 : s.count);
    }
}

static void store_reduce(const tr_ferrying *f, int64_t number) {
    span s = span_of(f, number, f->member);
    copy(f, staged(f, number, f->members), in_part(f, f->task.op.recv, s.first),
         s.count);
}

static void store(tr_ferrying *f, int64_t number) {
    (f->task.op.kind == TR_COMM_GATHER ? store_gather : store_reduce)(f, number);
    f->out = mark(f);
}

// ---- the exchange of a slice

// A part that is short or empty is so in every slice from some one on, and those of the
// members behind it, too: a slice is an exchange like the whole.
tr_task tr__ferrying_slice(const tr_ferrying *f) {
    tr_task slice = f->task;
    bool gathers = slice.op.kind == TR_COMM_GATHER;
    int members = f->members;
    slice.op.away = false;
    slice.op.shard = length_of(f, f->moved);
    slice.op.count = 0;
    for (int m = 0; m < members; m++) {
        slice.op.count += span_of(f, f->moved, m).count;
    }
    slice.op.send = gathers ? NULL : staged(f, f->moved, 0);
    slice.op.recv = staged(f, f->moved, gathers ? 0 : members);
    return slice;
}

// ---- from slice to slice

void tr__ferrying_moved(tr_ferrying *f) {
    store(f, f->moved++);
    load_ahead(f);
}

static tr_status look(const tr_ferrying *f, int64_t ticket, bool *done, tr_error *err) {
    const tr_comm_ferry *ferry = &f->comm->ferry;
    return ferry->look(ferry->user, ticket, done, err);
}

tr_status tr__ferrying_look_in(const tr_ferrying *f, bool *there, tr_error *err) {
    return look(f, f->in[f->moved % TR_COMM_SLOTS], there, err);
}

tr_status tr__ferrying_look_out(const tr_ferrying *f, bool *over, tr_error *err) {
    return look(f, f->out, over, err);
}

tr_status tr__ferrying_begin(tr_ferrying *f, const tr_comm *comm, const tr_task *task,
                             int members, int member, tr_error *err) {
    int64_t element = (int64_t)tr__comm_type_bytes(task->op.type);
    if (!comm->places[task->op.channel].slots || !comm->ferry.copy) {
        return tr_fail(err, TR_INTERNAL, "an exchange that nobody ferries");
    }
    *f = (tr_ferrying){
        .comm = comm, .task = *task, .members = members, .member = member};
    f->slice = tr__comm_slot_bytes(comm->ranks) / element / (members + 1);
    f->slice -= f->slice % TR_COMM_SLICE_LEAST; // so that parts stay aligned
    f->slices = tr__ceil_div(tr__min_i64(task->op.shard, task->op.count), f->slice);
    load_ahead(f);
    return TR_OK;
}
