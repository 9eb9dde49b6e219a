#include "ops/shared_matrix.h"

#include "base/rng.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/guarded.h"
#include "ops/launch.h"
#include "ops/operand.h"
#include "ops/optimizers/muon/muon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 13, COLUMNS = 22, COUNT = ROWS * COLUMNS, RANKS = 3, ROOM = 4 };

// How often it has a dimension that is cut so.
static int64_t times_of(const tr_division *d) {
    return COUNT / tr__division_all(d);
}

static int64_t count_of(const tr_division *d, int64_t rank) {
    return times_of(d) * tr__division_part(d, RANKS, rank);
}

static tr_matrix_part part_of(const tr_division *d, int64_t room, int64_t rank) {
    return (tr_matrix_part){.offset = rank * room + ROOM,
                            .count = count_of(d, rank),
                            .lies = tr__division_lies(d, RANKS, rank)};
}

static float number(int64_t i, uint64_t stream) {
    float x;
    tr__fill_uniform(&x, i, 1, -1, 1, 5, stream);
    return x;
}

static float *floats(const test_memory *memory) {
    return (void *)memory->data;
}

static int64_t place(const tr_stride *lies, int64_t i) {
    int64_t one = 1;
    return tr__stride_at(lies, i, &one);
}

// Updates param, what the range has of the matrix, by directions [ranks, room].
static void update(const tr_kernel *kernel, tr_target target,
                   const tr_update_range *range, int64_t all,
                   const test_memory *directions, const test_memory *param) {
    static const double power[1][2] = {{1, 1}};
    tr_hyper hyper = {.lr = 0.02, .weight_decay = 0.1};
    tr_muon_hyper own = {.momentum = 0.9, .steps = 5, .nesterov = true, .type = TR_F32};
    memcpy(hyper.own, &own, sizeof own);
    const tr_update_order order = {.optimizer = &tr__optimizer_muon,
                                   .ranges = range,
                                   .range_count = 1,
                                   .hyper = &hyper,
                                   .grad_scale = 1,
                                   .number = 1,
                                   .power = power};
    const tr_run_context run = {.rows = INT64_MAX, .update = &order};
    tr_orthogonal_attr attr = {.update = {.first = range->offset},
                               .rows = ROWS,
                               .columns = COLUMNS,
                               .shared = range->part_count > 0};
    tr_op_desc desc = {.op = &tr__op_orthogonal,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_F32, TR_SHAPE1(all)}},
                       .out = {{TR_F32, TR_SHAPE1(range->count)}},
                       .fresh = 1,
                       .accumulate = 1,
                       .target = target};
    memcpy(desc.attr, &attr, sizeof attr);
    test_launch(kernel, &desc,
                &(tr_launch){.in = {directions->data},
                             .out = {param->data},
                             .accumulate = 1,
                             .run = &run});
}

static void by_one_rank(const tr_kernel *kernel, tr_target target, float *result) {
    test_memory directions = test_memory_take(COUNT * sizeof(float));
    test_memory param = test_memory_take(COUNT * sizeof(float));
    const tr_update_range range = {.count = COUNT, .rows = ROWS, .columns = COLUMNS};
    for (int64_t i = 0; i < COUNT; i++) {
        floats(&directions)[i] = number(i, 0);
        floats(&param)[i] = number(i, 1);
    }
    update(kernel, target, &range, COUNT, &directions, &param);
    memcpy(result, param.data, COUNT * sizeof(float));
    test_memory_give(&directions);
    test_memory_give(&param);
}

static void by_ranks(const tr_kernel *kernel, tr_target target, const tr_division *d,
                     const float *want) {
    int64_t room = count_of(d, 0) + 2 * ROOM, all = RANKS * room;
    test_memory directions = test_memory_take((size_t)all * sizeof(float));
    tr_matrix_part parts[RANKS];
    for (int64_t i = 0; i < all; i++) {
        floats(&directions)[i] = 1e30f; // what lies between is no part of it
    }
    for (int64_t rank = 0; rank < RANKS; rank++) {
        parts[rank] = part_of(d, room, rank);
        for (int64_t i = 0; i < parts[rank].count; i++) {
            floats(&directions)[parts[rank].offset + i] =
                number(place(&parts[rank].lies, i), 0);
        }
    }
    for (int64_t rank = 0; rank < RANKS; rank++) {
        const tr_matrix_part *own = &parts[rank];
        const tr_update_range range = {.offset = ROOM,
                                       .count = own->count,
                                       .rows = ROWS,
                                       .columns = COLUMNS,
                                       .parts = parts,
                                       .part_count = RANKS,
                                       .lies = own->lies};
        test_memory param = test_memory_take((size_t)own->count * sizeof(float));
        for (int64_t i = 0; i < own->count; i++) {
            floats(&param)[i] = number(place(&own->lies, i), 1);
        }
        update(kernel, target, &range, all, &directions, &param);
        for (int64_t i = 0; i < own->count; i++) {
            assert_true(floats(&param)[i] == want[place(&own->lies, i)]);
        }
        test_memory_give(&param);
    }
    test_memory_give(&directions);
}

void test_shared_matrix(const tr_kernel *kernel, tr_target target) {
    // By rows; by rows of three blocks; by columns; by columns of two blocks that lie
    // side by side, equal or not.
    static const tr_division divisions[] = {{1, {ROWS}, COLUMNS},
                                            {3, {ROWS - 7, 4, 3}, COLUMNS},
                                            {1, {COLUMNS}, 1},
                                            {2, {COLUMNS / 2, COLUMNS / 2}, 1},
                                            {2, {COLUMNS - 5, 5}, 1}};
    float want[COUNT];
    by_one_rank(kernel, target, want);
    assert_true(want[0] != number(0, 1));
    for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++) {
        by_ranks(kernel, target, &divisions[i], want);
    }
}
