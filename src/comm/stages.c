#include "comm/stages.h"

#include "base/checked.h"

// Parts are numbered by their members: number a * near + b is that of the member of
// place b on node a.
static int64_t part_number(const tr_stages *s, int64_t node, int64_t place) {
    return node * s->near + place;
}

// Elements of a part that are in [at, at + most).
static int64_t part_of_slice(const tr_stages *s, int64_t number, int64_t at,
                             int64_t most) {
    int64_t first, part;
    const tr_comm_op *op = &s->whole.task.op;
    tr__comm_part(op->count, op->shard, (int)number, &first, &part);
    return tr__max_i64(0, tr__min_i64(most, part - at));
}

static char *element(const tr_stages *s, const void *of, int64_t number) {
    return (char *)(uintptr_t)of +
           number * (int64_t)tr__comm_type_bytes(s->whole.task.op.type);
}

// Of the members on this rank's node, or of those in its place on all nodes: the parts
// that are theirs, of which each has at most `most` elements from `at` on.
static void on_node(const tr_stages *s, int64_t node, int64_t at, int64_t most,
                    tr_stage *out) {
    const tr_comm_group *all = &s->whole.group;
    out->group = (tr_comm_group){all->first + all->stride * (int)(s->node * s->near),
                                 all->stride, (int)s->near};
    out->member = (int)s->place;
    out->task.op.shard = most;
    out->task.op.count = 0;
    for (int64_t place = 0; place < s->near; place++) {
        out->task.op.count += part_of_slice(s, part_number(s, node, place), at, most);
    }
}

static void in_place(const tr_stages *s, int64_t at, int64_t most, tr_stage *out) {
    const tr_comm_group *all = &s->whole.group;
    out->group = (tr_comm_group){all->first + all->stride * (int)s->place,
                                 all->stride * (int)s->near, (int)s->nodes};
    out->member = (int)s->node;
    out->task.op.shard = most;
    out->task.op.count = 0;
    for (int64_t node = 0; node < s->nodes; node++) {
        out->task.op.count +=
            part_of_slice(s, part_number(s, node, s->place), at, most);
    }
}

// ---- gather

static void gather_between(const tr_stages *s, tr_stage *out) {
    tr_comm_op *op = &out->task.op;
    in_place(s, 0, op->shard, out);
    op->recv = element(s, op->recv, s->place * op->shard);
    out->task.pitch = s->near * op->shard;
}

static void gather_node(const tr_stages *s, int64_t node, tr_stage *out) {
    tr_comm_op *op = &out->task.op;
    on_node(s, node, 0, op->shard, out);
    op->recv = element(s, op->recv, part_number(s, node, 0) * op->shard);
    op->send = NULL;
}

// ---- reduce

static void reduce_node(const tr_stages *s, int64_t node, tr_stage *out) {
    tr_comm_op *op = &out->task.op;
    int64_t shard = op->shard, most = tr__min_i64(s->slice, s->longest - s->at);
    on_node(s, node, s->at, most, out);
    op->send = element(s, op->send, part_number(s, node, 0) * shard + s->at);
    op->recv = element(s, s->sums, node * most);
    op->add = false;
    out->task.pitch = shard;
}

static void reduce_between(const tr_stages *s, tr_stage *out) {
    tr_comm_op *op = &out->task.op;
    in_place(s, s->at, tr__min_i64(s->slice, s->longest - s->at), out);
    op->send = s->sums;
    op->recv = element(s, op->recv, s->at);
}

// ---- all of them

static bool is_plain(const tr_stages *s) {
    return s->nodes == 1 || s->near == 1;
}

tr_status tr__stages_begin(tr_stages *s, const tr_comm *comm, const tr_stage *whole,
                           tr_error *err) {
    const tr_comm_op *op = &whole->task.op;
    bool near = op->near > 1 && whole->task.root < 0;
    *s = (tr_stages){.whole = *whole,
                     .near = near ? op->near : 1,
                     .sums = comm->places[op->channel].sums};
    if (near) {
        s->whole.task.op.algorithm = TR_COMM_DIRECT; // of each stage
    }
    s->nodes = whole->group.count / s->near;
    s->node = whole->member / s->near;
    s->place = whole->member % s->near;
    s->longest = tr__min_i64(op->shard, op->count);
    if (s->nodes * s->near != whole->group.count) {
        return tr_fail(err, TR_INTERNAL,
                       "%d ranks that exchange are not %lld to a node",
                       whole->group.count, (long long)s->near);
    }
    if (is_plain(s) || op->kind == TR_COMM_GATHER) {
        return TR_OK;
    }
    int64_t size = (int64_t)tr__comm_type_bytes(op->type);
    s->slice = s->sums ? tr__comm_sums_bytes(&comm->room) / size / s->nodes : 0;
    return s->slice > 0
               ? TR_OK
               : tr_fail(err, TR_INTERNAL, "a reduction without room for nodes' sums");
}

static bool next_gather(tr_stages *s, tr_stage *out) {
    if (s->next > s->nodes) {
        return false;
    }
    if (s->next == 0) {
        gather_between(s, out);
    } else {
        gather_node(s, s->next - 1, out);
    }
    s->next++;
    return true;
}

static bool next_reduce(tr_stages *s, tr_stage *out) {
    if (s->at >= s->longest) {
        return false;
    }
    if (s->next < s->nodes) {
        reduce_node(s, s->next++, out);
        return true;
    }
    reduce_between(s, out);
    s->at += s->slice;
    s->next = 0;
    return true;
}

bool tr__stages_next(tr_stages *s, tr_stage *out) {
    *out = s->whole;
    if (is_plain(s)) {
        return s->next++ == 0;
    }
    return s->whole.task.op.kind == TR_COMM_GATHER ? next_gather(s, out)
                                                   : next_reduce(s, out);
}
