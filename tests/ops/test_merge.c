// Parts become one in the order of their rows, by addition or by an op's own rule, and
// nothing beside them in a block is looked at or touched.
#include "ops/flat/merge/merge.h"
#include "ops/launch.h"
#include "ops/nn/batch_norm/batch_norm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static tr_op_desc describe(const tr_merge_attr *attr, tr_dtype dtype, int64_t rows,
                           int64_t width, bool adds) {
    tr_op_desc desc = {.op = &tr__op_merge,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{dtype, TR_SHAPE2(rows, width)}},
                       .out = {{dtype, attr->shape}},
                       .fresh = !adds,
                       .accumulate = adds,
                       .target = {.workers = 1}};
    memcpy(desc.attr, attr, sizeof *attr);
    return desc;
}

static void merge(const tr_op_desc *desc, const void *block, void *out) {
    tr_launch launch = {.in = {block}, .out = {out}, .accumulate = desc->accumulate};
    test_launch(test_kernel(&tr__op_merge, 1), desc, &launch);
}

static void parts_are_added(void **state) {
    static const float block[3][4] = {{9, 1, 2, 9}, {9, 10, 20, 9}, {9, 100, 200, 9}};
    const tr_merge_attr attr = {.first = 1, .shape = TR_SHAPE1(2)};
    float sum[] = {1000, 2000, 7};
    (void)state;
    tr_op_desc desc = describe(&attr, TR_F32, 3, 4, true);
    merge(&desc, block, sum);
    assert_true(sum[0] == 1111 && sum[1] == 2222 && sum[2] == 7);
    desc = describe(&attr, TR_F32, 3, 4, false);
    merge(&desc, block, sum);
    assert_true(sum[0] == 111 && sum[1] == 222 && sum[2] == 7);
    desc = describe(&attr, TR_F32, 1, 4, false); // the only part
    merge(&desc, block, sum);
    assert_true(sum[0] == 1 && sum[1] == 2 && sum[2] == 7);
}

// 2^24 + 1 is 2^24 in f32, and 2^53 + 1 is 2^53 in f64.
static void parts_are_added_in_order(void **state) {
    static const float large[] = {0x1p24f, 1, -0x1p24f}, small[] = {1, 1, -0x1p24f};
    static const double wide[] = {0x1p53, 1, -0x1p53};
    const tr_merge_attr attr = {.shape = TR_SHAPE1(1)};
    tr_op_desc desc = describe(&attr, TR_F32, 3, 1, false);
    float sum = NAN;
    double more = NAN;
    (void)state;
    merge(&desc, large, &sum);
    assert_true(sum == 0);
    desc = describe(&attr, TR_F32, 3, 1, true);
    sum = 0x1p24f; // is the first
    merge(&desc, small, &sum);
    assert_true(sum == 0);
    desc = describe(&attr, TR_F64, 3, 1, false);
    merge(&desc, wide, &more);
    assert_true(more == 0);
}

// Of 1, 3; 5; and 7, 9, 11: six numbers, their mean 6, and squares of the differences
// from it 25, 9, 1, 1, 9, 25. A second channel has the numbers in the last part alone.
static void statistics_go_by_their_own_rule(void **state) {
    static const double block[3][8] = {
        {0, 2, 0, 2, 0, 2, 0, 0}, {0, 1, 0, 5, 0, 0, 0, 0}, {0, 3, 3, 9, 9, 8, 8, 0}};
    const tr_merge_attr attr = {&tr__op_batch_stat, 1, TR_SHAPE2(3, 2)};
    tr_op_desc desc = describe(&attr, TR_F64, 3, 8, false);
    double stat[7] = {[6] = 7};
    (void)state;
    merge(&desc, block, stat);
    assert_true(stat[0] == 6 && stat[1] == 3);
    assert_true(fabs(stat[2] - 6) < 1e-14 && stat[3] == 9);
    assert_true(fabs(stat[4] - 70) < 1e-13 && stat[5] == 8);
    assert_true(stat[6] == 7);
}

static void columns_are_packed(void **state) {
    static const int64_t block[2][5] = {{9, 1, 2, 3, 9}, {9, 4, 5, 6, 9}};
    static const int64_t want[] = {1, 2, 3, 4, 5, 6, 7};
    const tr_pack_attr attr = {.first = 1, .count = 3};
    int64_t packed[7] = {[6] = 7};
    tr_op_desc desc = {.op = &tr__op_pack,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_I64, TR_SHAPE2(2, 5)}},
                       .out = {{TR_I64, TR_SHAPE2(2, 3)}},
                       .fresh = 1,
                       .target = {.workers = 1}};
    tr_launch launch = {.in = {block}, .out = {packed}};
    tr_cost cost = {0};
    (void)state;
    memcpy(desc.attr, &attr, sizeof attr);
    test_launch(test_kernel(&tr__op_pack, 1), &desc, &launch);
    assert_memory_equal(packed, want, sizeof want);
    tr__op_pack.reference->cost(&desc, &cost);
    assert_true(cost.bytes == 2 * 6 * sizeof(int64_t) && cost.flops == 0);
}

// What is read are the parts, not what lies beside them; what is added to is read, too.
static void cost_counts_the_parts(void **state) {
    const tr_merge_attr attr = {.first = 8, .shape = TR_SHAPE1(4)};
    tr_op_desc desc = describe(&attr, TR_F64, 3, 100, false);
    tr_cost cost = {0};
    (void)state;
    tr__op_merge.reference->cost(&desc, &cost);
    assert_true(cost.bytes == (3 + 1) * 4 * sizeof(double) && cost.flops == 3 * 4);
    desc = describe(&attr, TR_F64, 3, 100, true);
    tr__op_merge.reference->cost(&desc, &cost);
    assert_true(cost.bytes == (3 + 2) * 4 * sizeof(double));
}

static tr_status infer(const tr_op *op, const void *attr, tr_tensor_desc in) {
    tr_tensor_desc out[TR_OP_OUT_MAX];
    tr_error err = {0};
    int count = 0;
    tr_op_node node = {.op = op, .attr = attr, .in_count = 1, .in = &in};
    return op->infer(&node, out, &count, &err);
}

static void parts_beyond_their_row_are_refused(void **state) {
    const tr_tensor_desc block = {TR_F32, TR_SHAPE2(3, 10)};
    static const int64_t good[][2] = {{0, 10}, {9, 1}, {3, 7}};
    static const int64_t bad[][2] = {{0, 11}, {10, 1}, {-1, 3}, {3, 0}, {INT64_MAX, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tr_merge_attr part = {NULL, good[i][0], TR_SHAPE1(good[i][1])};
        tr_pack_attr columns = {good[i][0], good[i][1]};
        assert_int_equal(infer(&tr__op_merge, &part, block), TR_OK);
        assert_int_equal(infer(&tr__op_pack, &columns, block), TR_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tr_merge_attr part = {NULL, bad[i][0], TR_SHAPE1(bad[i][1])};
        tr_pack_attr columns = {bad[i][0], bad[i][1]};
        assert_int_equal(infer(&tr__op_merge, &part, block), TR_USAGE);
        assert_int_equal(infer(&tr__op_pack, &columns, block), TR_USAGE);
    }
    assert_int_equal(infer(&tr__op_pack, &(tr_pack_attr){0, 2},
                           (tr_tensor_desc){TR_F32, TR_SHAPE1(10)}),
                     TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_added),
        cmocka_unit_test(parts_are_added_in_order),
        cmocka_unit_test(statistics_go_by_their_own_rule),
        cmocka_unit_test(columns_are_packed),
        cmocka_unit_test(cost_counts_the_parts),
        cmocka_unit_test(parts_beyond_their_row_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
