// The draws of dropout: what they depend on, how many are kept, and vectors against
// scalars.
#include "ops/nn/dropout/cpu_draw.h"
#include "ops/nn/dropout/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 1 << 18 };

static const tr_run_context run = {
    .seed = 0x123456789ABCDEFull, .step = 7, .sample = 40, .unit = 3};

static void mean_is_kept(void **state) {
    (void)state;
    const float probability[] = {0, 0.1f, 0.5f, 0.9f};
    for (int p = 0; p < 4; p++) {
        tr_draw draw = tr__draw_open(&run, 0, 1, probability[p]);
        double sum = 0;
        for (uint64_t i = 0; i < MANY; i++) {
            sum += tr__draw_multiplier(&draw, i);
        }
        // Five standard deviations of the mean.
        double odds = probability[p] / (1 - probability[p]);
        assert_true(fabs(sum / MANY - 1) <= 5 * sqrt(odds / MANY));
    }
}

static void scale_is_exact(void **state) {
    (void)state;
    const float probability[] = {0, 0.1f, 0.25f, 0.5f, 0.999999f};
    for (int p = 0; p < 5; p++) {
        tr_draw draw = tr__draw_open(&run, 0, 1, probability[p]);
        assert_true(draw.scale * (float)(65536 - draw.threshold) == 65536.0f ||
                    fabs(draw.scale * (65536.0 - draw.threshold) / 65536.0 - 1) < 1e-7);
        assert_true(isfinite(draw.scale));
    }
    assert_true(tr__draw_open(&run, 0, 1, 0).scale == 1.0f);
    assert_true(tr__draw_open(&run, 0, 1, 0.5f).scale == 2.0f);
}

// How many of MANY draws of probability 1/2 two streams agree on.
static int agreement(const tr_draw *a, const tr_draw *b, uint64_t b_shift) {
    int same = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        same += tr__draw_keep(a, i) == tr__draw_keep(b, i + b_shift);
    }
    return same;
}

static void streams_are_apart(void **state) {
    (void)state;
    tr_run_context other[8];
    for (int i = 0; i < 8; i++) {
        other[i] = run;
    }
    other[0].seed ^= 1;
    other[1].seed ^= 1ull << 40;
    other[2].step++;
    other[3].sample++;
    other[4].sample += 1ull << 32;
    other[5].unit++;
    tr_draw first = tr__draw_open(&run, 0, 1, 0.5f);
    for (int i = 0; i < 8; i++) {
        tr_draw draw = tr__draw_open(&other[i], 0, i == 6 ? 2 : 1, 0.5f);
        int same = agreement(&first, &draw, i == 7 ? 1ull << 40 : 0);
        assert_true(abs(same - MANY / 2) < 5 * 256); // deviation sqrt(MANY) / 2 = 256
    }
    for (uint64_t shift = 1; shift <= 128; shift *= 2) {
        assert_true(abs(agreement(&first, &first, shift) - MANY / 2) < 5 * 256);
    }
}

static void rows_are_global_samples(void **state) {
    (void)state;
    tr_run_context later = run;
    later.sample += 5;
    tr_draw a = tr__draw_open(&run, 5, 1, 0.3f);
    tr_draw b = tr__draw_open(&later, 0, 1, 0.3f);
    assert_int_equal(agreement(&a, &b, 0), MANY);
}

static void vectors_equal_scalars(void **state) {
    (void)state;
    const uint64_t first[] = {0, 1, 127, 128, 1000, (1ull << 35) - 100, 1ull << 42};
    const int64_t count[] = {0, 1, 16, 127, 128, 129, 400};
    float dst[402];
    tr_draw draw = tr__draw_open(&run, 2, 9, 0.3f);
    for (int f = 0; f < 7; f++) {
        for (int c = 0; c < 7; c++) {
            dst[0] = dst[count[c] + 1] = -1;
            tr_v_draw_fill(&draw, first[f], count[c], dst + 1);
            for (int64_t i = 0; i < count[c]; i++) {
                assert_true(dst[i + 1] ==
                            tr__draw_multiplier(&draw, first[f] + (uint64_t)i));
            }
            assert_true(dst[0] == -1 && dst[count[c] + 1] == -1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_is_kept),
        cmocka_unit_test(scale_is_exact),
        cmocka_unit_test(streams_are_apart),
        cmocka_unit_test(rows_are_global_samples),
        cmocka_unit_test(vectors_equal_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
