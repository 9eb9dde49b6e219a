// Which algorithm an exchange takes, and what each rank sends by it.
#include "comm/orders.h"
#include "plan/flow/algorithm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// 64 ranks, 8 on a node, which reach 10 GB/s there and 1 GB/s between nodes.
static tr_plan_request cluster(void) {
    return (tr_plan_request){.mesh = {.size = {64, 1, 1}},
                             .node_ranks = 8,
                             .hierarchical = true,
                             .inside = {1e10, 0, 1e-6},
                             .between = {1e9, 0, 1e-5}};
}

static tr_transfer transfer_of(tr_comm_kind kind, int64_t members, int64_t count) {
    return (tr_transfer){.kind = kind,
                         .count = count,
                         .shard = (count + members - 1) / members,
                         .bytes = 4,
                         .members = members,
                         .stride = 1,
                         .node_ranks = 8,
                         .algorithm = TR_EXCHANGE_DIRECT,
                         .near = 1};
}

static tr_exchange_algorithm choose(const tr_plan_request *r, bool rounds, int64_t near,
                                    tr_transfer t) {
    tr__algorithm_choose(r, rounds, near, &t);
    assert_int_equal(t.near, t.algorithm == TR_EXCHANGE_HIERARCHICAL ? near : 1);
    return t.algorithm;
}

static const tr_comm_kind kinds[] = {TR_COMM_GATHER, TR_COMM_REDUCE};

static void the_fastest_is_chosen(void **state) {
    tr_plan_request r = cluster();
    (void)state;
    for (int k = 0; k < 2; k++) {
        // Six messages after each other are sooner there than seven and 56, of which
        // four are under way.
        tr_transfer small = transfer_of(kinds[k], 64, 640);
        assert_int_equal(choose(&r, false, 1, small), TR_EXCHANGE_TREE);
        tr_transfer large = transfer_of(kinds[k], 64, 1 << 28);
        assert_int_equal(choose(&r, false, 8, large), TR_EXCHANGE_HIERARCHICAL);
        assert_int_equal(choose(&r, false, 1, large), TR_EXCHANGE_DIRECT);
        r.shared_between = true; // eight times the rate of one rank
        r.inside.rate = 4e9;
        assert_int_equal(choose(&r, false, 8, large), TR_EXCHANGE_RING);
        r = cluster();
        // On one node all ways take the same time; two ranks have one way.
        tr_transfer near = transfer_of(kinds[k], 4, 1 << 20);
        assert_int_equal(choose(&r, false, 1, near), TR_EXCHANGE_DIRECT);
        tr_transfer two = transfer_of(kinds[k], 2, 64);
        assert_int_equal(choose(&r, false, 1, two), TR_EXCHANGE_DIRECT);
    }
}

// The plan's own rule holds where nothing is known of the links.
static void what_is_not_known_is_not_chosen(void **state) {
    tr_plan_request r = cluster();
    tr_transfer small = transfer_of(TR_COMM_GATHER, 64, 640);
    (void)state;
    r.between.rate = 0;
    assert_int_equal(choose(&r, false, 1, small), TR_EXCHANGE_DIRECT);
    assert_int_equal(choose(&r, false, 8, small), TR_EXCHANGE_HIERARCHICAL);
}

static void what_is_asked_for_is_taken_where_it_can_be(void **state) {
    (void)state;
    for (int a = TR_EXCHANGE_DIRECT; a < TR_EXCHANGE_ALGORITHMS; a++) {
        tr_exchange_algorithm asked = (tr_exchange_algorithm)a;
        tr_exchange_algorithm else_direct =
            asked == TR_EXCHANGE_HIERARCHICAL ? asked : TR_EXCHANGE_DIRECT;
        tr_plan_request r = cluster();
        r.algorithm = asked;
        r.reproducible = true;
        for (int k = 0; k < 2; k++) {
            tr_transfer t = transfer_of(kinds[k], 64, 640), pair = t, away = t;
            assert_int_equal(choose(&r, false, 8, t), asked);
            // Sums that are rounded keep one order in a reproducible run.
            assert_int_equal(choose(&r, true, 1, t), TR_EXCHANGE_DIRECT);
            pair.pair = true;
            assert_int_equal(choose(&r, false, 1, pair), TR_EXCHANGE_DIRECT);
            away.away = true;
            assert_int_equal(choose(&r, false, asked == else_direct ? 8 : 1, away),
                             else_direct);
        }
    }
    tr_plan_request r = cluster();
    r.algorithm = TR_EXCHANGE_TREE;
    int64_t most = TR_COMM_TREE_BYTES / 4;
    assert_int_equal(choose(&r, false, 1, transfer_of(TR_COMM_REDUCE, 64, most)),
                     TR_EXCHANGE_TREE);
    assert_int_equal(choose(&r, false, 1, transfer_of(TR_COMM_REDUCE, 64, most + 1)),
                     TR_EXCHANGE_DIRECT);
}

// ---- bytes

static const tr_transfer *counted;

static int64_t part(int member) {
    int64_t first, elements;
    tr__comm_part(counted->count, counted->shard, member, &first, &elements);
    return elements * counted->bytes;
}

static void ranks_send_what_the_algorithm_says(void **state) {
    static const struct {
        tr_exchange_algorithm algorithm;
        tr_comm_algorithm of_op;
    } of[] = {{TR_EXCHANGE_DIRECT, TR_COMM_DIRECT},
              {TR_EXCHANGE_RING, TR_COMM_RING},
              {TR_EXCHANGE_TREE, TR_COMM_TREE}};
    (void)state;
    for (int i = 0; i < 3 * 12 * 5; i++) {
        tr_transfer t = transfer_of(TR_COMM_GATHER, i / 15 + 2, 100 + i / 3 % 5);
        int64_t gathered = 0, reduced = 0, whole = t.count * t.bytes;
        t.shard += i % 5; // the last parts are short, or empty
        t.algorithm = of[i % 3].algorithm;
        counted = &t;
        for (t.member = 0; t.member < t.members; t.member++) {
            t.kind = TR_COMM_GATHER;
            int64_t sent = tr__transfer_sent(&t);
            assert_int_equal(sent, gathered_by(of[i % 3].of_op, (int)t.members,
                                               (int)t.member, part));
            gathered += sent;
            t.kind = TR_COMM_REDUCE;
            assert_int_equal(tr__transfer_sent(&t), whole - part((int)t.member));
            reduced += tr__transfer_sent(&t);
        }
        assert_int_equal(gathered, (t.members - 1) * whole);
        assert_int_equal(reduced, gathered);
    }
}

// Of 16 ranks, 8 on a node: a ring leaves a node once, where a rank's number is the
// last there; along a tree, each of its four rounds leaves it by as many as are too
// near to its end.
static void what_leaves_the_node(void **state) {
    tr_transfer t = transfer_of(TR_COMM_GATHER, 16, 160);
    (void)state;
    for (t.member = 0; t.member < 16; t.member++) {
        int64_t before_the_end = 7 - t.member % 8, tree = 0;
        t.algorithm = TR_EXCHANGE_RING;
        assert_int_equal(tr__transfer_between(&t), before_the_end == 0 ? 15 * 40 : 0);
        for (int64_t d = 1; d < 16; d *= 2) {
            tree += d > before_the_end ? d * 40 : 0;
        }
        t.algorithm = TR_EXCHANGE_TREE;
        assert_int_equal(tr__transfer_between(&t), tree);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_chosen),
        cmocka_unit_test(what_is_not_known_is_not_chosen),
        cmocka_unit_test(what_is_asked_for_is_taken_where_it_can_be),
        cmocka_unit_test(ranks_send_what_the_algorithm_says),
        cmocka_unit_test(what_leaves_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
