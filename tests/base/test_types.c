// Data types, shapes, and sizes that would overflow.
#include "base/checked.h"

#include <tranche/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void dtypes_and_their_names(void **state) {
    (void)state;
    assert_int_equal(tr_dtype_bytes(TR_NONE), 0);
    assert_int_equal(tr_dtype_bytes(TR_F32), 4);
    assert_int_equal(tr_dtype_bytes(TR_BF16), 2);
    assert_int_equal(tr_dtype_bytes(TR_I64), 8);
    assert_int_equal(tr_dtype_bytes((tr_dtype)1000), 0);
    assert_string_equal(tr_dtype_name((tr_dtype)1000), "");
    for (int i = TR_NONE + 1; i < TR_DTYPE_COUNT; i++) {
        assert_true(tr_dtype_bytes((tr_dtype)i) > 0);
        assert_int_equal(tr_dtype_find(tr_dtype_name((tr_dtype)i)), i);
    }
    assert_int_equal(tr_dtype_find("F128"), TR_NONE);
    assert_int_equal(tr_dtype_find("f32"), TR_NONE);
    assert_int_equal(tr_dtype_find(""), TR_NONE);
}

static void counts(void **state) {
    (void)state;
    assert_int_equal(tr_shape_count((tr_shape){0}), 1);
    assert_int_equal(tr_shape_count(TR_SHAPE1(7)), 7);
    assert_int_equal(tr_shape_count(TR_SHAPE4(2, 3, 5, 7)), 210);
    assert_int_equal(tr_shape_count(TR_SHAPE2(3, 0)), 0);
    assert_int_equal(tr_shape_count(TR_SHAPE2(TR_BATCH, 4)), -1);
    assert_int_equal(tr_shape_count(TR_SHAPE2(INT64_MAX, 1)), INT64_MAX);
    assert_int_equal(tr_shape_count(TR_SHAPE2(INT64_MAX, 2)), -1);
    assert_int_equal(tr_shape_count(TR_SHAPE2(1LL << 32, 1LL << 32)), -1);
}

static void bytes(void **state) {
    (void)state;
    tr_tensor_desc desc = {TR_F32, TR_SHAPE2(3, 5)};
    assert_int_equal(tr_tensor_bytes(desc), 60);
    desc.dtype = TR_NONE;
    assert_int_equal(tr_tensor_bytes(desc), 0);
    desc = (tr_tensor_desc){TR_F32, TR_SHAPE1(INT64_MAX / 4)};
    assert_int_equal(tr_tensor_bytes(desc), INT64_MAX / 4 * 4);
    desc = (tr_tensor_desc){TR_F32, TR_SHAPE1(INT64_MAX / 4 + 1)};
    assert_int_equal(tr_tensor_bytes(desc), -1);
    desc = (tr_tensor_desc){TR_U8, TR_SHAPE1(TR_BATCH)};
    assert_int_equal(tr_tensor_bytes(desc), -1);
}

static void equality(void **state) {
    (void)state;
    assert_true(tr_shape_equal(TR_SHAPE2(2, 3), TR_SHAPE2(2, 3)));
    assert_false(tr_shape_equal(TR_SHAPE2(2, 3), TR_SHAPE2(3, 2)));
    assert_false(tr_shape_equal(TR_SHAPE2(2, 1), TR_SHAPE1(2)));
    tr_shape junk = TR_SHAPE1(2);
    junk.dim[1] = 9; // behind the rank
    assert_true(tr_shape_equal(junk, TR_SHAPE1(2)));
}

static void checked_arithmetic(void **state) {
    (void)state;
    int64_t i = 0;
    size_t s = 0;
    assert_true(tr__mul_i64(-3, 5, &i) && i == -15);
    assert_false(tr__mul_i64(INT64_MIN, -1, &i));
    assert_true(tr__add_i64(INT64_MAX, -1, &i) && i == INT64_MAX - 1);
    assert_false(tr__add_i64(INT64_MAX, 1, &i));
    assert_true(tr__mul_size(3, 5, &s) && s == 15);
    assert_false(tr__mul_size(SIZE_MAX / 2, 3, &s));
    assert_false(tr__add_size(SIZE_MAX, 1, &s));
    assert_int_equal(tr__round_up(0, 64), 0);
    assert_int_equal(tr__round_up(1, 64), 64);
    assert_int_equal(tr__round_up(64, 64), 64);
    assert_int_equal(tr__ceil_div(7, 3), 3);
    assert_int_equal(tr__ceil_div(6, 3), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_and_their_names),
        cmocka_unit_test(counts),
        cmocka_unit_test(bytes),
        cmocka_unit_test(equality),
        cmocka_unit_test(checked_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
