// The loss scale's rules, step by step.
#include "train/loss_scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

// Runs the steps ('.': good, '!': overflow) and compares the scale after each.
static void check(const tr_loss_scale_rules *rules, const char *steps,
                  const double *scales) {
    tr_loss_scale state = tr__loss_scale_begin(rules);
    for (size_t i = 0; steps[i]; i++) {
        tr_error err = {0};
        assert_int_equal(tr__loss_scale_after(rules, steps[i] == '!', &state, &err),
                         TR_OK);
        if (state.scale != scales[i]) {
            fail_msg("step %zu: scale %g, wanted is %g", i + 1, state.scale, scales[i]);
        }
    }
}

#define SCALES(...) ((const double[]){__VA_ARGS__})

static const tr_loss_scale_rules rules = {
    .dynamic = true, .initial = 16, .minimum = 1, .window = 3, .hysteresis = 2};

static void test_growth(void **state) {
    (void)state;
    check(&rules, "..........", SCALES(16, 16, 16, 32, 32, 32, 64, 64, 64, 128));
    // Counted anew after an overflow.
    check(&rules, "..!......", SCALES(16, 16, 16, 16, 16, 16, 32, 32, 32));
    tr_loss_scale_rules each = rules;
    each.window = 1;
    check(&each, "....", SCALES(16, 32, 64, 128));
    each.initial = 0x1p119;
    check(&each, "....", SCALES(0x1p119, 0x1p120, 0x1p120, 0x1p120));
}

static void test_hysteresis(void **state) {
    (void)state;
    // The first overflow only uses hysteresis up; a halving does not refill it.
    check(&rules, "!!!", SCALES(16, 8, 4));
    // Good steps alone do not refill it, a doubling does.
    check(&rules, "!..!", SCALES(16, 16, 16, 8));
    check(&rules, "!....!!", SCALES(16, 16, 16, 16, 32, 32, 16));
    tr_loss_scale_rules refilled = rules;
    refilled.consecutive = true;
    check(&refilled, "!.!.!!", SCALES(16, 16, 16, 16, 16, 8));
    tr_loss_scale_rules quick = rules;
    quick.hysteresis = 1;
    check(&quick, "!!", SCALES(8, 4));
}

static void test_floor(void **state) {
    (void)state;
    tr_loss_scale_rules low = rules;
    low.initial = 6;
    low.minimum = 4;
    tr_loss_scale now = tr__loss_scale_begin(&low);
    tr_error err = {0};
    assert_int_equal(tr__loss_scale_after(&low, true, &now, &err), TR_OK);
    assert_int_equal(tr__loss_scale_after(&low, true, &now, &err), TR_OK);
    assert_true(now.scale == 4);
    assert_int_equal(tr__loss_scale_after(&low, true, &now, &err), TR_NUMBERS);
    assert_non_null(strstr(err.message, "smallest loss scale, 4"));
    assert_true(now.scale == 4);
}

static void test_static(void **state) {
    (void)state;
    tr_loss_scale_rules fixed = {.initial = 128};
    check(&fixed, "!!!....", SCALES(128, 128, 128, 128, 128, 128, 128));
}

// What DeepSpeed's class does with the same patterns (tools/goldens/loss_scale.py).
static void test_goldens(void **state) {
    char name[64], steps[128], line[1024], path[512];
    int first, least, consecutive, count = 0;
    long long window, hysteresis;
    (void)state;
    snprintf(path, sizeof path, "%s/loss_scale.txt", TR_TEST_DATA);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); count++) {
        int at = 0;
        assert_int_equal(sscanf(line, "%63s %d %lld %d %lld %d %127s %n", name, &first,
                                &window, &least, &hysteresis, &consecutive, steps, &at),
                         7);
        tr_loss_scale_rules golden = {.dynamic = true,
                                      .initial = ldexp(1, first),
                                      .minimum = ldexp(1, least),
                                      .window = window,
                                      .hysteresis = hysteresis,
                                      .consecutive = consecutive};
        tr_loss_scale now = tr__loss_scale_begin(&golden);
        char *next = strtok(line + at, ",\n");
        for (size_t i = 0; next; i++, next = strtok(NULL, ",\n")) {
            tr_error err = {0};
            tr_status status =
                tr__loss_scale_after(&golden, steps[i] == '!', &now, &err);
            bool ends = strcmp(next, "end") == 0;
            assert_int_equal(status, ends ? TR_NUMBERS : TR_OK);
            if (!ends && now.scale != ldexp(1, atoi(next))) {
                fail_msg("%s, step %zu: 2^%g, wanted is 2^%s", name, i + 1,
                         log2(now.scale), next);
            }
        }
    }
    fclose(file);
    assert_int_equal(count, 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),  cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_floor),   cmocka_unit_test(test_static),
        cmocka_unit_test(test_goldens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
