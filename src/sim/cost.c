#include "sim/cost.h"

#include "base/checked.h"
#include "plan/flow/algorithm.h"

#include <math.h>

double tr__stream_interference(const tr_machine *machine, tr_stream stream) {
    bool messages = tr__stream_exchanges(stream) && tr__stream_is_beside(stream);
    return messages                    ? machine->link_interference
           : tr__stream_copies(stream) ? machine->copy_interference
           : stream == TR_STREAM_NVME  ? machine->nvme_interference
                                       : 0;
}

tr_share tr__machine_share(const tr_machine *machine, int64_t ranks,
                           int64_t all_bytes) {
    tr_share share = {
        .machine = machine, .ranks = ranks, .part = 1, .all_bytes = (double)all_bytes};
    share.sharers = tr__min_i64(machine->ranks_per_node, ranks);
    if (machine->shared) {
        share.part = 1 / (double)share.sharers;
    }
    return share;
}

static tr_link_figures link_of(const tr_machine *m, tr_way way) {
    const tr_link_figures link = {m->way[way].rate *
                                      tr__reached_share(m->reached.way[way].share),
                                  m->reached.way[way].half, m->way[way].latency};
    return link;
}

void tr__machine_links(const tr_machine *machine, tr_plan_request *request) {
    request->inside = link_of(machine, TR_WAY_INSIDE);
    request->between = link_of(machine, TR_WAY_BETWEEN);
    request->shared_between = machine->shared_between;
}

// Bytes a second on a way, in messages of so many.
static double way_rate(const tr_share *share, tr_way way, double message) {
    tr_link_figures link = link_of(share->machine, way);
    return tr__link_rate(&link, message);
}

// ---- computing

// Bytes that come from memory, and bytes that the step before may have left in the
// cache.
typedef struct touched {
    double cold, warm;
} touched;

static double memory_seconds(const tr_share *share, touched t) {
    const tr_machine *m = share->machine;
    double room = m->cache_bytes * share->part;
    bool warm = t.warm <= room, all = share->all_bytes <= room;
    double memory = (all ? 0 : t.cold) + (warm ? 0 : t.warm);
    double cache = (all ? t.cold : 0) + (warm ? t.warm : 0);
    double seconds = memory / (m->memory_rate * tr__reached_share(m->reached.memory));
    if (cache > 0) {
        seconds += cache / m->cache_rate;
    }
    return seconds / share->part;
}

static void touch(const tr_operand *operand, tr_tensor_desc desc, touched *t) {
    double bytes = (double)tr_tensor_bytes(desc);
    switch (operand->place) {
    case TR_PLACE_NONE:
        break;
    case TR_PLACE_PARAM:
    case TR_PLACE_PARAM_GRAD:
    case TR_PLACE_SAVED:
        t->cold += bytes;
        break;
    default:
        t->warm += bytes;
        break;
    }
}

// Parameters, their gradients and what is kept for the backward were last used long
// ago; what passes between kernels, just now. An op that touches less than its operands
// looks up rows of a table.
static touched touched_by(const tr_instruction *instruction, double bytes) {
    const tr_op_desc *desc = &instruction->desc;
    touched t = {0, 0};
    for (int i = 0; i < desc->in_count; i++) {
        touch(&instruction->in[i], desc->in[i], &t);
    }
    for (int i = 0; i < desc->out_count; i++) {
        touch(&instruction->out[i], desc->out[i], &t);
    }
    return bytes < t.cold + t.warm ? (touched){bytes, 0} : t;
}

// Its first operand that is not of 32 bits tells, unless the op says so itself.
static double product_rate(const tr_machine *machine, const tr_op_desc *desc) {
    tr_dtype type = TR_F32;
    if (desc->op->flags & TR_OP_FP8) {
        return machine->fp8_flops;
    }
    for (int i = 0; i < desc->in_count && type == TR_F32; i++) {
        bool half = desc->in[i].dtype == TR_BF16 || desc->in[i].dtype == TR_F16;
        type = half ? desc->in[i].dtype : type;
    }
    return tr__machine_flops(machine, type);
}

static tr_work_kind kind_of(tr_rated_op op, const tr_cost *cost) {
    if (op == TR_RATED_attention || op == TR_RATED_attention_backward) {
        return TR_WORK_ATTENTION;
    }
    return cost->rows > 0 ? TR_WORK_PRODUCTS : TR_WORK_OTHER;
}

// The part of a rate that an op reaches: attention by its own curve, products by their
// shape, both by the watts that there are.
static double reached_part(const tr_share *share, const tr_op_desc *desc,
                           tr_rated_op op, const tr_cost *cost) {
    const tr_reached *r = &share->machine->reached;
    tr_work_kind kind = kind_of(op, cost);
    double part = tr__reached_power(r, share->machine->power);
    if (kind == TR_WORK_ATTENTION) {
        bool forward = op == TR_RATED_attention;
        double all = forward ? r->attention.forward : r->attention.backward;
        return part * tr__reached_share(all) *
               tr__reached_attention(r, cost->columns, cost->depth);
    }
    if (kind == TR_WORK_OTHER) {
        return 1;
    }
    bool fp8 = desc->op->flags & TR_OP_FP8 && r->products.fp8 > 0;
    double processors = r->products.processors * share->part;
    return part * tr__reached_share(fp8 ? r->products.fp8 : r->products.share) *
           tr__reached_shape(r, processors, cost);
}

// The roofline (Williams, Waterman, Patterson, CACM 52(4), 2009): arithmetic and memory
// go on beside each other, and the slower one tells. Before that a kernel may prepare
// its operands, which are then where the cache has what was used last. What was
// measured has all of it in it.
static double kernel_seconds(const tr_share *share, const tr_instruction *instruction,
                             tr_work_kind *kind) {
    const tr_machine *m = share->machine;
    tr_rated_op op = tr__rated_op_find(instruction->desc.op->name);
    bool rated = op < TR_RATED_OPS && m->op_flops[op] > 0;
    tr_cost cost = {0};
    if (instruction->kernel->cost) {
        instruction->kernel->cost(&instruction->desc, &cost);
    }
    *kind = kind_of(op, &cost);
    double rate = rated ? m->op_flops[op]
                        : product_rate(m, &instruction->desc) *
                              reached_part(share, &instruction->desc, op, &cost);
    double seconds = cost.flops / (rate * share->part);
    double more = op < TR_RATED_OPS ? m->op_launch[op] : -1;
    if (rated && more >= 0) {
        return m->launch + more + seconds;
    }
    return m->launch * (1 + cost.launches) + fmax(more, 0) +
           memory_seconds(share, (touched){0, cost.prepare}) +
           fmax(seconds, memory_seconds(share, touched_by(instruction, cost.bytes)));
}

double tr__kernel_seconds(const tr_share *share, const tr_instruction *instruction) {
    tr_work_kind kind;
    return kernel_seconds(share, instruction, &kind);
}

// What the kernels of a step have to pack, because it is the first that reads it.
static double pack_seconds(const tr_share *share, const tr_plan *plan,
                           const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    double bytes = 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_cost cost = {0};
        if (tr__step_packs(plan, step, at) && at->kernel->cost) {
            at->kernel->cost(&at->desc, &cost);
        }
        bytes += cost.pack;
    }
    return bytes > 0 ? memory_seconds(share, (touched){bytes, 0}) : 0;
}

// Kernels are issued ahead, one after the other: a program takes as long as that, if
// its kernels are shorter.
tr_work_seconds tr__program_work(const tr_share *share, const tr_program *program) {
    tr_work_seconds work = {{0}, 0};
    double spread = share->machine->reached.spread;
    double issue = share->machine->reached.issue * (double)program->count, sum = 0;
    for (size_t i = 0; i < program->count; i++) {
        tr_work_kind kind;
        double seconds = kernel_seconds(share, &program->instructions[i], &kind);
        work.of[kind] += seconds;
        work.variance += spread * spread * seconds * seconds;
        sum += seconds;
    }
    work.of[TR_WORK_OTHER] += fmax(0, issue - sum);
    return work;
}

double tr__program_seconds(const tr_share *share, const tr_program *program) {
    tr_work_seconds work = tr__program_work(share, program);
    double sum = 0;
    for (int k = 0; k < TR_WORK_KINDS; k++) {
        sum += work.of[k];
    }
    return sum;
}

// What a launch reads and writes in the other space takes the way of copies.
static double reach_seconds(const tr_share *share, tr_reach reach) {
    double read = (double)reach.read, written = (double)reach.written, seconds = 0;
    if (read > 0) {
        seconds += read / way_rate(share, TR_WAY_TO_DEVICE, read);
    }
    if (written > 0) {
        seconds += written / way_rate(share, TR_WAY_TO_HOST, written);
    }
    return seconds;
}

// A step that runs no program and moves nothing in memory waits for something at most.
double tr__step_seconds(const tr_share *share, const tr_plan *plan,
                        const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    if (program) {
        return tr__program_seconds(share, program) + pack_seconds(share, plan, step);
    }
    tr_reach reach = tr__step_reach(plan, step);
    double bytes = tr__step_bytes(plan, step) - (double)(reach.read + reach.written);
    if (step->stream == TR_STREAM_HOST) { // the node's memory, which its ranks share
        double rate = share->machine->host_rate / (double)share->sharers;
        return bytes > 0 ? bytes / rate + reach_seconds(share, reach) : 0;
    }
    return bytes > 0
               ? share->machine->launch + memory_seconds(share, (touched){bytes, 0}) +
                     reach_seconds(share, reach)
               : 0;
}

// ---- copies and NVMe

// A rank that has no part of what is copied copies nothing.
tr_way tr__move_way(const tr_plan *plan, const tr_plan_step *step) {
    if (step->shape == TR_STEP_IS_FILE) {
        return tr__step_reads_file(plan, step) ? TR_WAY_NVME_READ : TR_WAY_NVME_WRITE;
    }
    int32_t to = tr__step_operand(plan, step, TR_COPY_TO)->buffer;
    return to >= 0 && plan->buffers[to].space == TR_SPACE_DEVICE ? TR_WAY_TO_DEVICE
                                                                 : TR_WAY_TO_HOST;
}

double tr__move_seconds(const tr_share *share, const tr_plan *plan,
                        const tr_plan_step *step) {
    tr_way way = tr__move_way(plan, step);
    double bytes = (double)(tr__step_copied(plan, step) + tr__step_stored(plan, step));
    return bytes > 0
               ? share->machine->way[way].latency + bytes / way_rate(share, way, bytes)
               : 0;
}

// ---- messages

static tr_links links_of(const tr_share *share) {
    tr_plan_request r = {0};
    tr__machine_links(share->machine, &r);
    return (tr_links){.inside = r.inside,
                      .between = r.between,
                      .shared_between = r.shared_between,
                      .node_ranks = share->sharers,
                      .ranks = share->ranks};
}

static double halvings(double count) {
    return ceil(log2(count));
}

// `whole` bytes among `members`, each of whom sends its part on to all others: message
// for message around a ring, or, where messages are short, in a tree's fewer and longer
// ones.
static double collective(const tr_share *share, tr_way way, double members,
                         double whole) {
    double sent = whole * (members - 1) / members;
    double around = way_rate(share, way, whole / members);
    double across = way_rate(share, way, sent / halvings(members));
    return sent / fmax(around, across);
}

// One member has all, and sends it to the other.
static bool is_message(const tr_transfer *t) {
    return t->pair && t->kind == TR_COMM_GATHER && t->shard == t->count;
}

static double message_seconds(const tr_share *share, const tr_transfer *t) {
    tr_way way =
        tr__transfer_on_node(t, share->sharers) == 2 ? TR_WAY_INSIDE : TR_WAY_BETWEEN;
    double bytes = (double)t->count * (double)t->bytes;
    return share->machine->way[way].latency + bytes / way_rate(share, way, bytes);
}

// What libraries of collectives come near to. Ranks of the same place in their nodes
// exchange a node's share of the whole among them; then, or at the same time for what
// is there already, each node completes its own. Latencies are those of trees.
static double by_library(const tr_share *share, const tr_transfer *t) {
    const tr_machine *m = share->machine;
    double whole = (double)t->count * (double)t->bytes;
    int64_t near = tr__transfer_on_node(t, share->sharers);
    double n = (double)near, nodes = (double)tr__ceil_div(t->members, near);
    double seconds = 0, latency = 0;
    if (n > 1) {
        seconds = collective(share, TR_WAY_INSIDE, n, whole);
        latency = halvings(n) * m->way[TR_WAY_INSIDE].latency;
    }
    if (nodes > 1) {
        seconds = fmax(seconds, collective(share, TR_WAY_BETWEEN, nodes, whole / n));
        latency += halvings(nodes) * m->way[TR_WAY_BETWEEN].latency;
    }
    return seconds + latency;
}

// Between the device and memory of the host, of an exchange whose messages go from
// there: what a rank with a whole part sends, and what it gets. Copies go on beside
// messages, one after the other (comm/mpi_ferry.h).
static double ferried(const tr_share *share, const tr_transfer *t) {
    double part = (double)(tr__min_i64(t->shard, t->count) * t->bytes);
    double rest = (double)(t->count * t->bytes) - part;
    bool gathers = t->kind == TR_COMM_GATHER;
    double out = gathers ? part : part + rest, in = gathers ? rest : part;
    double to_host = way_rate(share, TR_WAY_TO_HOST, TR_COMM_CHUNK);
    double to_device = way_rate(share, TR_WAY_TO_DEVICE, TR_COMM_CHUNK);
    return (to_host > 0 ? out / to_host : 0) + (to_device > 0 ? in / to_device : 0);
}

double tr__transfer_seconds(const tr_share *share, const tr_transfer *transfer) {
    if (transfer->count == 0) { // of a flat buffer of other stages
        return 0;
    }
    if (share->machine->exchange == TR_EXCHANGE_NCCL && is_message(transfer)) {
        return message_seconds(share, transfer);
    }
    if (share->machine->exchange == TR_EXCHANGE_NCCL) {
        return by_library(share, transfer);
    }
    const tr_links links = links_of(share);
    double messages = tr__algorithm_seconds(&links, transfer);
    return transfer->away ? fmax(messages, ferried(share, transfer)) : messages;
}
