// One rank: operations are done when they are started; nobody else is asked.
#include "comm/add.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int open_self(void **state) {
    tr_error err = {0};
    tr_comm *comm = NULL;
    if (tr_comm_open(&comm, &err) != TR_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    *state = comm;
    return 0;
}

static int close_self(void **state) {
    tr_comm_close(*state);
    return 0;
}

static void test_facts(void **state) {
    const tr_comm *comm = *state;
    assert_int_equal(tr_comm_rank(comm), 0);
    assert_int_equal(tr_comm_ranks(comm), 1);
    assert_true(tr_comm_threads(comm) >= 1);
    assert_true(tr_comm_speaks(comm));
    assert_false(tr__comm_is_broken(comm));
    tr_comm_room alone = {.ranks = 1, .ferries = true}, room = {.ranks = 4};
    assert_int_equal(tr__comm_staging_bytes(&alone), 0);
    int64_t bytes = tr__comm_staging_bytes(&room);
    assert_true(bytes > 0);
    room.node_ranks = 2;
    assert_int_equal(tr__comm_staging_bytes(&room), bytes);
    room.by_nodes = true;
    assert_true(tr__comm_staging_bytes(&room) > bytes);
}

static void test_parts(void **state) {
    (void)state;
    static const struct {
        int64_t count, shard;
        int rank;
        int64_t first, part;
    } cases[] = {
        {10, 4, 0, 0, 4},
        {10, 4, 1, 4, 4},
        {10, 4, 2, 8, 2},
        {10, 4, 3, 10, 0},
        {10, 4, 9, 10, 0},
        {0, 1, 0, 0, 0},
        {0, 1, 2, 0, 0},
        {3, 5, 0, 0, 3},
        {3, 5, 1, 3, 0},
        {INT64_C(1) << 40, INT64_C(1) << 39, 1, INT64_C(1) << 39, INT64_C(1) << 39},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t first = -1, part = -1;
        tr__comm_part(cases[i].count, cases[i].shard, cases[i].rank, &first, &part);
        assert_int_equal(first, cases[i].first);
        assert_int_equal(part, cases[i].part);
    }
}

static void test_gather(void **state) {
    tr_comm *comm = *state;
    const int64_t own[3] = {1, -2, INT64_MAX};
    int64_t all[3] = {7, 8, 9};
    tr_comm_op op = {TR_COMM_GATHER,
                     TR_COMM_I64,
                     3,
                     3,
                     NULL,
                     all,
                     false,
                     false,
                     {0},
                     TR_COMM_RANKS,
                     1,
                     TR_COMM_DIRECT};
    int64_t before = tr__comm_newest(comm, TR_COMM_RANKS);
    assert_int_equal(tr__comm_start(comm, &op), before + 1);
    assert_int_equal(all[0], 7); // in place: it lies there already
    op.send = own;
    assert_int_equal(tr__comm_start(comm, &op), before + 2);
    assert_memory_equal(all, own, sizeof own);
    assert_int_equal(tr__comm_wait(comm, TR_COMM_RANKS, before + 2, NULL), TR_OK);
    assert_int_equal(tr__comm_skip(comm, TR_COMM_RANKS), before + 3);
    assert_memory_equal(all, own, sizeof own);
    assert_int_equal(tr__comm_newest(comm, TR_COMM_RANKS), before + 3);
}

static void test_reduce(void **state) {
    tr_comm *comm = *state;
    float send[5] = {1, 2, 3, 4, 5}, recv[6] = {10, 10, 10, 10, 10, 99};
    tr_comm_op op = {TR_COMM_REDUCE,
                     TR_COMM_F32,
                     5,
                     8,
                     send,
                     recv,
                     true,
                     false,
                     {0},
                     TR_COMM_RANKS,
                     1,
                     TR_COMM_DIRECT};
    tr__comm_start(comm, &op);
    assert_true(recv[0] == 11 && recv[4] == 15 && recv[5] == 99);
    op.add = false;
    tr__comm_start(comm, &op);
    assert_memory_equal(recv, send, sizeof send);
    op.recv = send; // in place
    tr__comm_start(comm, &op);
    assert_true(send[0] == 1 && send[4] == 5);
    op.count = 0;
    op.send = op.recv = NULL;
    assert_int_equal(
        tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_start(comm, &op), NULL), TR_OK);
}

static void test_integers_wrap(void **state) {
    int64_t send = INT64_MAX, recv = 1;
    tr_comm_op op = {TR_COMM_REDUCE,
                     TR_COMM_I64,
                     1,
                     1,
                     &send,
                     &recv,
                     true,
                     false,
                     {0},
                     TR_COMM_RANKS,
                     1,
                     TR_COMM_DIRECT};
    tr__comm_start(*state, &op);
    assert_true(recv == INT64_MIN);
}

// A sum is made in f32 and rounded: to the nearest, of two to the even one.
static void test_halves_round(void **state) {
    static const struct {
        tr_comm_type type;
        uint16_t a, b, sum;
    } cases[] = {
        {TR_COMM_BF16, 0x4380, 0x3F80, 0x4380}, // 256 + 1: the middle to 258
        {TR_COMM_BF16, 0x4381, 0x3F80, 0x4382}, // 258 + 1: the middle to 260
        {TR_COMM_BF16, 0x4380, 0x3FC0, 0x4381}, // 256 + 1.5
        {TR_COMM_BF16, 0x4380, 0xC380, 0x0000}, // 256 - 256
        {TR_COMM_BF16, 0x7F7F, 0x7F7F, 0x7F80}, // the largest, twice
        {TR_COMM_BF16, 0x0001, 0x0001, 0x0002}, // the smallest, twice
        {TR_COMM_F16, 0x6800, 0x3C00, 0x6800},  // 2048 + 1: the middle to 2050
        {TR_COMM_F16, 0x6801, 0x3C00, 0x6802},  // 2050 + 1: the middle to 2052
        {TR_COMM_F16, 0x6800, 0x3E00, 0x6801},  // 2048 + 1.5
        {TR_COMM_F16, 0x6800, 0xE800, 0x0000},  {TR_COMM_F16, 0x7BFF, 0x7BFF, 0x7C00},
        {TR_COMM_F16, 0x0001, 0x0001, 0x0002},
    };
    enum { RUN = 37 }; // vectors and what is left of them
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint16_t send[RUN], recv[RUN], sum[RUN];
        for (int i = 0; i < RUN; i++) {
            send[i] = cases[c].a;
            recv[i] = cases[c].b;
        }
        tr__add_to(cases[c].type, sum, send, recv, RUN);
        tr_comm_op op = {
            TR_COMM_REDUCE, cases[c].type, RUN, RUN,           send, recv,
            true,           false,         {0}, TR_COMM_RANKS, 1,    TR_COMM_DIRECT};
        tr__comm_start(*state, &op);
        for (int i = 0; i < RUN; i++) {
            assert_int_equal(recv[i], cases[c].sum);
            assert_int_equal(sum[i], cases[c].sum);
        }
    }
}

// What is no number stays none, and shows in a norm.
static void test_halves_stay_infinite(void **state) {
    static const tr_comm_type types[] = {TR_COMM_BF16, TR_COMM_F16};
    static const uint16_t infinite[] = {0x7F80, 0x7C00};
    for (int t = 0; t < 2; t++) {
        uint16_t send[2] = {infinite[t], infinite[t]};
        uint16_t recv[2] = {0, infinite[t] | 0x8000};
        tr_comm_op op = {TR_COMM_REDUCE,
                         types[t],
                         2,
                         2,
                         send,
                         recv,
                         true,
                         false,
                         {0},
                         TR_COMM_RANKS,
                         1,
                         TR_COMM_DIRECT};
        tr__comm_start(*state, &op);
        assert_int_equal(recv[0], infinite[t]);
        assert_true((recv[1] & 0x7FFF) > infinite[t]); // not a number
    }
}

static void test_records(void **state) {
    tr_comm *comm = *state;
    tr_error err = {0};
    char own[5] = "abcd", all[5] = "";
    assert_int_equal(tr__comm_all_gather(comm, own, sizeof own, all, &err), TR_OK);
    assert_string_equal(all, "abcd");
    assert_int_equal(tr__comm_broadcast(comm, 0, own, sizeof own, &err), TR_OK);
    assert_string_equal(own, "abcd");
    assert_int_equal(tr__comm_barrier(comm, &err), TR_OK);
    tr_comm_totals totals = tr__comm_totals(comm);
    assert_int_equal(totals.gather_bytes + totals.reduce_bytes + totals.record_bytes,
                     0);
}

static void test_agreement(void **state) {
    tr_error mine = {0}, err = {0};
    assert_int_equal(tr_comm_agree(*state, NULL, &err), TR_OK);
    assert_int_equal(tr_comm_agree(*state, &mine, &err), TR_OK);
    tr_fail(&mine, TR_DATA, "no such file");
    assert_int_equal(tr_comm_agree(*state, &mine, NULL), TR_DATA);
    assert_int_equal(tr_comm_agree(*state, &mine, &err), TR_DATA);
    assert_string_equal(err.message, "no such file"); // of no rank: all have it
    tr_comm_abandon(*state, &mine);
    assert_int_equal(tr__comm_barrier(*state, NULL), TR_OK);
}

static void test_notices(void **state) {
    tr_comm *comm = *state;
    for (int i = 0; i < 3; i++) {
        assert_false(tr__comm_noticed(comm));
        tr__comm_notice(comm);
        tr__comm_notice(comm);
        assert_true(tr__comm_noticed(comm));
        assert_int_equal(tr__comm_notice_clear(comm, NULL), TR_OK);
    }
    assert_false(tr__comm_noticed(comm));
}

static void test_nothing_to_close(void **state) {
    (void)state;
    tr_comm_close(NULL);
    tr_comm_end(NULL, 0);
    assert_true(tr_comm_speaks(NULL));
}

// A launcher of one rank is none; srun without MPI would start strangers.
static void test_launchers(void **state) {
    (void)state;
    tr_error err = {0};
    tr_comm *comm = NULL;
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    assert_int_equal(tr_comm_open(&comm, &err), TR_OK);
    assert_int_equal(tr_comm_ranks(comm), 1);
    tr_comm_close(comm);
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    setenv("SLURM_PROCID", "1", 1); // the one task of a batch script
    assert_int_equal(tr_comm_open(&comm, &err), TR_OK);
    tr_comm_close(comm);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    assert_int_equal(tr_comm_open(&comm, &err), TR_COMM);
    assert_null(comm);
    assert_non_null(strstr(err.message, "--mpi="));
    assert_false(tr_comm_speaks(NULL)); // rank 0 does
    unsetenv("SLURM_PROCID");
    unsetenv("SLURM_STEP_NUM_TASKS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_halves_round),
        cmocka_unit_test(test_halves_stay_infinite),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_nothing_to_close),
        cmocka_unit_test(test_launchers),
    };
    return cmocka_run_group_tests_name("one rank", tests, open_self, close_self);
}
