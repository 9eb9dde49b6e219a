#include "plan/flow/algorithm.h"

#include "base/checked.h"
#include "comm/rounds.h"

#include <math.h>
#include <string.h>

// ---- messages

double tr__link_rate(const tr_link_figures *link, double message) {
    return link->rate * (link->half > 0 ? message / (message + link->half) : 1);
}

// `peers` messages' worth of `bytes` each, one after the other: a few are under way at
// a time, which hides the latency of those that are long enough.
static double in_turn(const tr_link_figures *link, int64_t peers, double bytes) {
    double messages = fmax(1, ceil(bytes / TR_COMM_CHUNK));
    double rate = tr__link_rate(link, bytes / messages);
    double each = fmax(bytes / messages / rate, link->latency / TR_COMM_WINDOW);
    return peers > 0 && bytes > 0 ? link->latency + (double)peers * messages * each : 0;
}

int64_t tr__transfer_on_node(const tr_transfer *t, int64_t node_ranks) {
    if (t->pair) {
        int64_t node = tr__max_i64(1, node_ranks);
        return t->first / node == (t->first + t->stride) / node ? 2 : 1;
    }
    return tr__min_i64(t->members, tr__max_i64(1, node_ranks / t->stride));
}

static int64_t longest_part(const tr_transfer *t) {
    return tr__min_i64(t->shard, t->count) * t->bytes;
}

// ---- seconds

// The busiest rank is one with a whole part: in a gather it sends its own to each of
// the others, in a reduction it receives its own from each of them.
static double direct_seconds(const tr_links *links, const tr_transfer *t) {
    double part = (double)longest_part(t);
    int64_t near = tr__transfer_on_node(t, links->node_ranks);
    return in_turn(&links->inside, near - 1, part) +
           in_turn(&links->between, t->members - near, part);
}

// Stage after stage (comm/stages.h): in a gather, parts go to other nodes and then,
// those of each node after those of another, on each node; in a reduction, slice by
// slice, the other way round.
static double hierarchical_seconds(const tr_links *links, const tr_transfer *t) {
    const tr_comm_room room = {
        .ranks = links->ranks, .node_ranks = t->node_ranks, .by_nodes = true};
    int64_t nodes = t->members / t->near, longest = longest_part(t), slices = 1;
    if (t->kind == TR_COMM_REDUCE && longest > 0) {
        slices = tr__ceil_div(longest, tr__comm_sums_bytes(&room) / nodes);
    }
    double some = (double)longest / (double)slices;
    double inside = in_turn(&links->inside, t->near - 1, some);
    double between = in_turn(&links->between, nodes - 1, some);
    return (double)slices * ((double)nodes * inside + between);
}

// A message from one member of a ring to the next: alone, and behind others. Of several
// links, the sum of all, and the slowest.
typedef struct hops {
    double alone, behind, latency;
} hops;

static void add_hops(hops *to, int64_t count, const tr_link_figures *link, double rate,
                     double bytes) {
    if (count > 0) {
        double behind = fmax(bytes / rate, link->latency / TR_COMM_WINDOW);
        to->latency = behind > to->behind ? link->latency : to->latency;
        to->behind = fmax(to->behind, behind);
        to->alone += (double)count * (link->latency + bytes / rate);
    }
}

// Members of a node follow each other in the ring, so that one of them alone sends to
// another node. Either what the slowest link has to carry tells, or the way of one
// message around. A reduction goes round with two messages of each part at a time.
static double ring_seconds(const tr_links *links, const tr_transfer *t) {
    double part = (double)longest_part(t),
           messages = fmax(1, ceil(part / TR_COMM_CHUNK));
    double bytes = part / messages;
    int64_t near = tr__transfer_on_node(t, links->node_ranks), all = t->members - 1;
    int64_t outside = near == t->members ? 0
                      : near == 1        ? all
                                         : tr__ceil_div(t->members, near);
    double alone = links->shared_between ? (double)near : 1;
    hops h = {0, 0, 0};
    if (part == 0) {
        return 0;
    }
    add_hops(&h, outside, &links->between,
             tr__link_rate(&links->between, bytes) * alone, bytes);
    add_hops(&h, all - outside, &links->inside, tr__link_rate(&links->inside, bytes),
             bytes);
    double together = t->kind == TR_COMM_GATHER ? messages : fmin(messages, 2);
    double behind = h.latency + (double)all * together * h.behind;
    return ceil(messages / together) * fmax(h.alone, behind);
}

// All of a round's messages, of which a few are under way at a time; one alone is late
// once.
static double round_seconds(const tr_link_figures *link, double bytes) {
    double messages = fmax(1, ceil(bytes / TR_COMM_CHUNK));
    double seconds = bytes / tr__link_rate(link, bytes / messages);
    double late = messages > 1 ? messages * link->latency / TR_COMM_WINDOW : 0;
    return bytes > 0 ? link->latency + fmax(seconds, late) : 0;
}

// Round after round; where there are several nodes, some member's message of each
// round goes to another node.
static double tree_seconds(const tr_links *links, const tr_transfer *t) {
    const tr_comm_op op = {.kind = TR_COMM_GATHER, .algorithm = TR_COMM_TREE};
    bool alone = tr__transfer_on_node(t, links->node_ranks) == t->members;
    const tr_link_figures *link = alone ? &links->inside : &links->between;
    double seconds = 0, whole = (double)(t->count * t->bytes);
    for (int i = 0; i < tr__rounds(TR_COMM_TREE, (int)t->members); i++) {
        tr_round round = tr__round(&op, (int)t->members, i);
        double parts = round.parts * (double)longest_part(t);
        seconds += round_seconds(link, fmin(whole, parts));
    }
    return seconds;
}

// ---- bytes

static tr_task task_of(const tr_transfer *t) {
    return (tr_task){.op = {.kind = t->kind,
                            .count = t->count,
                            .shard = t->shard,
                            .algorithm = tr__algorithm_of_op(t->algorithm)},
                     .root = -1};
}

static int64_t node_of(const tr_transfer *t, int64_t member) {
    return (t->first + member * t->stride) / t->node_ranks;
}

// All that a member sends, or what goes to other nodes.
static int64_t sent(const tr_transfer *t, bool between) {
    const tr_task task = task_of(t);
    int members = (int)t->members;
    int64_t elements = 0;
    for (int i = 0; i < tr__rounds(task.op.algorithm, members); i++) {
        tr_round round = tr__round(&task.op, members, i);
        int64_t to = (t->member + round.by + members) % members;
        if (between && node_of(t, to) == node_of(t, t->member)) {
            continue;
        }
        for (int run = 0; run < TR_ROUND_RUNS; run++) {
            int64_t first, count;
            tr__round_run(&task, members, &round, (int)t->member, run, &first, &count);
            elements += count;
        }
    }
    return elements * t->bytes;
}

int64_t tr__algorithm_sent(const tr_transfer *t) {
    return sent(t, false);
}

int64_t tr__algorithm_between(const tr_transfer *t) {
    return t->node_ranks > 0 ? sent(t, true) : 0;
}

// ---- the algorithms

// The order of additions of a ring or a tree is that of so many ranks, which a direct
// sum of few ranks has in another form; two ranks have one order only.
static bool any_order(const tr_plan_request *request, bool rounds,
                      const tr_transfer *t) {
    return t->members > 2 && !t->pair && !t->away && !(request->reproducible && rounds);
}

static bool direct_may(const tr_plan_request *request, bool rounds,
                       const tr_transfer *t) {
    (void)request, (void)rounds, (void)t;
    return true;
}

static bool hierarchical_may(const tr_plan_request *request, bool rounds,
                             const tr_transfer *t) {
    (void)request, (void)rounds;
    return t->near > 1;
}

static bool tree_may(const tr_plan_request *request, bool rounds,
                     const tr_transfer *t) {
    return any_order(request, rounds, t) &&
           (t->kind == TR_COMM_GATHER || tr__comm_tree_fits(t->count, t->bytes));
}

typedef struct row {
    tr_comm_algorithm of_op;
    bool (*may)(const tr_plan_request *request, bool rounds, const tr_transfer *t);
    double (*seconds)(const tr_links *links, const tr_transfer *t);
} row;

static const char *const names[] = {"auto", TR_EXCHANGE_NAMES};
static const row rows[TR_EXCHANGE_ALGORITHMS] = {
    [TR_EXCHANGE_DIRECT] = {.of_op = TR_COMM_DIRECT,
                            .may = direct_may,
                            .seconds = direct_seconds},
    [TR_EXCHANGE_HIERARCHICAL] = {.of_op = TR_COMM_DIRECT, // of each stage
                                  .may = hierarchical_may,
                                  .seconds = hierarchical_seconds},
    [TR_EXCHANGE_RING] = {.of_op = TR_COMM_RING,
                          .may = any_order,
                          .seconds = ring_seconds},
    [TR_EXCHANGE_TREE] = {.of_op = TR_COMM_TREE,
                          .may = tree_may,
                          .seconds = tree_seconds},
};

const char *tr__algorithm_name(tr_exchange_algorithm algorithm) {
    return names[algorithm];
}

tr_exchange_algorithm tr__algorithm_find(const char *name) {
    int a = TR_EXCHANGE_ALGORITHMS - 1;
    while (a > TR_EXCHANGE_AUTO && strcmp(names[a], name) != 0) {
        a--;
    }
    return (tr_exchange_algorithm)a;
}

tr_comm_algorithm tr__algorithm_of_op(tr_exchange_algorithm algorithm) {
    return rows[algorithm].of_op;
}

double tr__algorithm_seconds(const tr_links *links, const tr_transfer *t) {
    tr_exchange_algorithm as_is =
        t->near > 1 ? TR_EXCHANGE_HIERARCHICAL : TR_EXCHANGE_DIRECT;
    return rows[t->algorithm == TR_EXCHANGE_AUTO ? as_is : t->algorithm].seconds(links,
                                                                                 t);
}

// ---- the choice

// An algorithm takes the place of another one that takes longer by a hundredth.
#define CLEARLY 0.99

static tr_links links_of(const tr_plan_request *r) {
    int64_t ranks = tr_mesh_ranks(&r->mesh);
    return (tr_links){.inside = r->inside,
                      .between = r->between,
                      .shared_between = r->shared_between,
                      .node_ranks = r->node_ranks > 0 ? r->node_ranks : ranks,
                      .ranks = ranks};
}

static bool are_known(const tr_links *links, const tr_transfer *t) {
    int64_t near = tr__transfer_on_node(t, links->node_ranks);
    return (near == 1 || links->inside.rate > 0) &&
           (near == t->members || links->between.rate > 0);
}

void tr__algorithm_choose(const tr_plan_request *request, bool rounds, int64_t near,
                          tr_transfer *t) {
    tr_exchange_algorithm asked = request->algorithm;
    const tr_links links = links_of(request);
    t->near = near;
    t->algorithm = near > 1 ? TR_EXCHANGE_HIERARCHICAL : TR_EXCHANGE_DIRECT;
    if (asked != TR_EXCHANGE_AUTO && rows[asked].may(request, rounds, t)) {
        t->algorithm = asked;
    } else if (asked == TR_EXCHANGE_AUTO && are_known(&links, t)) {
        double least = tr__algorithm_seconds(&links, t);
        tr_transfer other = *t;
        for (int a = TR_EXCHANGE_DIRECT; a < TR_EXCHANGE_ALGORITHMS; a++) {
            other.algorithm = (tr_exchange_algorithm)a;
            double seconds = rows[a].may(request, rounds, t)
                                 ? tr__algorithm_seconds(&links, &other)
                                 : least;
            if (seconds < CLEARLY * least) {
                t->algorithm = other.algorithm;
                least = seconds;
            }
        }
    }
    t->near = t->algorithm == TR_EXCHANGE_HIERARCHICAL ? near : 1;
}
