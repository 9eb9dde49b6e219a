// The first phase over the blocks of a flat buffer: a block that two tensors share has
// a part for each, and no cut at blocks changes a bit.
#include "ops/optimizers/optimizer_measure.h"

#include "ops/optimizers/lamb/lamb.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 70001, PARTS_MAX = COUNT / TR_NORM_BLOCK + 2, ODD = 1000 };

static tr_hyper hyper;

static int set_up(void **state) {
    tr_hyper shared = {.lr = 0.1, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99};
    (void)state;
    hyper = test_hyper(shared, &(tr_lamb_hyper){.eps = 1e-6}, sizeof(tr_lamb_hyper));
    return 0;
}

static void measure(test_update *u, int which, int threads, int64_t begin,
                    int64_t count, tr_squares *parts) {
    const tr_optimizer *lamb = &tr__optimizer_lamb;
    tr_update range = test_update_range(u, &hyper, 3, begin, count);
    int isa = which == 0 ? -1 : test_update_isa(lamb, which);
    tr_target target = {.level = isa, .workers = threads};
    tr__optimizer_measure(lamb, &target, &hyper, &range, ODD + begin, parts);
}

static void how_many_parts(void **state) {
    (void)state;
    assert_int_equal(tr__measure_parts(0, 1), 1);
    assert_int_equal(tr__measure_parts(0, 1024), 1);
    assert_int_equal(tr__measure_parts(0, 1025), 2);
    assert_int_equal(tr__measure_parts(1023, 1), 1);
    assert_int_equal(tr__measure_parts(1023, 2), 2);
    assert_int_equal(tr__measure_parts(2048, 2048), 2);
    assert_int_equal(tr__measure_parts(1000, 2100), 4);
}

// Each part is the sum over its own elements, and only theirs.
static void parts_are_of_blocks(void **state) {
    (void)state;
    for (int which = 0; test_update_function(&tr__optimizer_lamb, which); which++) {
        tr_squares parts[4];
        test_update u;
        test_update_open(&u, 2100);
        float *p = u.buffer[0].data, *g = u.buffer[1].data;
        memset(g, 0, 2100 * sizeof *g);
        memset(u.buffer[2].data, 0, 2100 * sizeof *g);
        for (int i = 0; i < 2100; i++) {
            p[i] = i < 24 ? 1 : i < 1048 ? 2 : i < 2072 ? 3 : 4;
        }
        measure(&u, which, 1, 0, 2100, parts);
        static const double counts[] = {24, 1024, 1024, 28};
        for (int k = 0; k < 4; k++) {
            double squares = counts[k] * (k + 1) * (k + 1);
            assert_true(parts[k].param == squares);
            // Without mean and gradient the direction is the decay alone.
            assert_float_equal(parts[k].direction, 0.01 * squares, 1e-5 * squares);
        }
        test_update_close(&u);
    }
}

// Cut where blocks end, by any number of threads: the same parts, the same states.
static void cuts_change_no_bit(void **state) {
    static const int64_t pieces[] = {1, 3, 64};
    (void)state;
    for (int which = 0; test_update_function(&tr__optimizer_lamb, which); which++) {
        tr_squares want[PARTS_MAX] = {{0}};
        test_update all;
        test_update_open(&all, COUNT);
        measure(&all, which, 1, 0, COUNT, want);
        for (int i = 0; i < 3; i++) {
            tr_squares got[PARTS_MAX] = {{0}};
            test_update u;
            test_update_open(&u, COUNT);
            int64_t part = 0, begin = 0;
            while (begin < COUNT) {
                int64_t end = (part + pieces[i]) * TR_NORM_BLOCK - ODD;
                end = end < COUNT ? end : COUNT;
                measure(&u, which, i + 1, begin, end - begin, got + part);
                part += pieces[i];
                begin = end;
            }
            assert_memory_equal(got, want, sizeof want);
            for (int b = 0; b < TEST_BUFFERS; b++) {
                assert_memory_equal(u.buffer[b].data, all.buffer[b].data,
                                    u.buffer[b].bytes);
                assert_true(test_memory_intact(&u.buffer[b]));
            }
            test_update_close(&u);
        }
        test_update_close(&all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_many_parts),
        cmocka_unit_test(parts_are_of_blocks),
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
