// The 16-bit formats: every number there and back, rounding at every border, the same
// bits by one number and by vectors of every instruction set.
#include "backend/cpu/half.h"
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ALL = 1 << 16 };

static float to_f32(tr_dtype dtype, uint16_t half) {
    return dtype == TR_BF16 ? tr__bf16_to_f32(half) : tr__f16_to_f32(half);
}

static uint16_t of_f32(tr_dtype dtype, float x) {
    return dtype == TR_BF16 ? tr__bf16_of_f32(x) : tr__f16_of_f32(x);
}

// What the bits mean, by the definition of the format.
static double meaning(tr_dtype dtype, uint16_t half) {
    int fraction_bits = dtype == TR_BF16 ? 7 : 10, bias = dtype == TR_BF16 ? 127 : 15;
    int exponent = (half & 0x7FFF) >> fraction_bits, top = 2 * bias + 1;
    int fraction = half & ((1 << fraction_bits) - 1);
    double sign = half >> 15 ? -1 : 1;
    if (exponent == top) {
        return fraction ? NAN : sign * INFINITY;
    }
    int whole = exponent ? fraction + (1 << fraction_bits) : fraction;
    return sign * ldexp(whole, (exponent ? exponent : 1) - bias - fraction_bits);
}

static void every_number_has_its_value_and_comes_back(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    for (int i = 0; i < ALL; i++) {
        float x = to_f32(dtype, (uint16_t)i);
        double want = meaning(dtype, (uint16_t)i);
        assert_true(isnan(want) ? isnan(x) : (double)x == want);
        uint16_t back = of_f32(dtype, x);
        assert_true(isnan(want) ? isnan(to_f32(dtype, back)) : back == i);
    }
}

// Between two neighbours: the middle goes to the even one, a little off it to the
// nearer.
static void numbers_round_to_the_nearest(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    for (int i = 0; i < ALL / 2 - 1; i++) {
        double low = meaning(dtype, (uint16_t)i),
               high = meaning(dtype, (uint16_t)i + 1);
        if (!isfinite(low) || (isinf(high) && dtype == TR_BF16)) {
            continue;
        }
        high = isinf(high) ? 65536 : high;
        float middle = (float)((low + high) / 2);
        int even = i % 2 == 0 ? i : i + 1;
        assert_int_equal(of_f32(dtype, middle), even);
        assert_int_equal(of_f32(dtype, nextafterf(middle, 0)), i);
        assert_int_equal(of_f32(dtype, nextafterf(middle, INFINITY)), i + 1);
        assert_int_equal(of_f32(dtype, -middle), even | 0x8000);
    }
}

// Every f32 whose upper bits are these: some lower bits.
static void make_numbers(float *x, uint32_t low) {
    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = tr__f32_of_bits(i << 16 | low);
    }
}

static void vectors_have_the_same_bits(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    static const uint32_t lows[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    static float x[ALL], wide[ALL];
    static uint16_t halves[ALL];
    for (int isa = 0; isa <= (int)tr__cpu_isa(); isa++) {
        const tr_half_kernel *kernel = tr__half_kernel((tr_isa)isa);
        for (size_t l = 0; l < sizeof lows / sizeof *lows; l++) {
            make_numbers(x, lows[l]);
            (dtype == TR_BF16 ? kernel->narrow_bf16 : kernel->narrow_f16)(x, ALL - 3,
                                                                          halves);
            (dtype == TR_BF16 ? kernel->widen_bf16 : kernel->widen_f16)(halves, ALL - 3,
                                                                        wide);
            for (int i = 0; i < ALL - 3; i++) {
                uint16_t want = of_f32(dtype, x[i]);
                assert_true(isnan(x[i]) ? isnan(to_f32(dtype, halves[i]))
                                        : halves[i] == want);
                assert_true(isnan(x[i]) || wide[i] == to_f32(dtype, want));
            }
        }
    }
}

// Of every number of the format and some f32: the sum in f32, rounded.
static void sums_are_rounded(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    enum { COUNT = ALL - 3 };
    static const float terms[] = {0, 1, -3.25f, 0x1.8p-9f, 1e-30f, 6e4f, -2e38f};
    static float x[ALL];
    static uint16_t halves[ALL];
    for (int isa = 0; isa <= (int)tr__cpu_isa(); isa++) {
        const tr_half_kernel *kernel = tr__half_kernel((tr_isa)isa);
        for (size_t t = 0; t < sizeof terms / sizeof *terms; t++) {
            for (int i = 0; i < ALL; i++) {
                halves[i] = (uint16_t)i;
                x[i] = terms[t] * (float)(1 + i % 5);
            }
            (dtype == TR_BF16 ? kernel->add_bf16 : kernel->add_f16)(x, COUNT, halves);
            for (int i = 0; i < COUNT; i++) {
                float sum = to_f32(dtype, (uint16_t)i) + x[i];
                assert_true(isnan(sum) ? isnan(to_f32(dtype, halves[i]))
                                       : halves[i] == of_f32(dtype, sum));
            }
            assert_int_equal(halves[COUNT], COUNT); // no further
        }
    }
}

// 256 and 258 (bf16), 2048 and 2050 (f16) are neighbours; 1 is half of the way.
static void sums_go_to_the_even_neighbour(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    uint16_t first = dtype == TR_BF16 ? 0x4380 : 0x6800; // 2^8, 2^11
    const struct {
        uint16_t sum;
        float x;
        uint16_t want;
    } cases[] = {{first, 1, first},
                 {first, 1.01f, (uint16_t)(first + 1)},
                 {(uint16_t)(first + 1), 1, (uint16_t)(first + 2)},
                 {(uint16_t)(first + 1), -1, first},
                 {(uint16_t)(first | 0x8000), -1, (uint16_t)(first | 0x8000)}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint16_t sum = cases[c].sum;
        tr__half_add(dtype, &cases[c].x, 1, 1, &sum);
        assert_int_equal(sum, cases[c].want);
    }
}

static void threads_change_nothing(void **state) {
    tr_dtype dtype = *(const tr_dtype *)*state;
    enum { COUNT = 200001 };
    float *x = malloc(COUNT * sizeof *x), *wide = malloc(COUNT * sizeof *wide);
    uint16_t *halves = malloc(COUNT * sizeof *halves);
    assert_true(x && wide && halves);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i / 7;
    }
    tr__half_narrow(dtype, x, COUNT, 3, halves);
    tr__half_widen(dtype, halves, COUNT, 3, wide);
    tr__half_add(dtype, x, COUNT, 3, halves);
    for (int i = 0; i < COUNT; i++) {
        uint16_t narrow = of_f32(dtype, x[i]);
        assert_true(wide[i] == to_f32(dtype, narrow));
        assert_int_equal(halves[i], of_f32(dtype, to_f32(dtype, narrow) + x[i]));
    }
    free(x);
    free(wide);
    free(halves);
}

int main(void) {
    static tr_dtype bf16 = TR_BF16, f16 = TR_F16;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_number_has_its_value_and_comes_back, &bf16),
        cmocka_unit_test_prestate(every_number_has_its_value_and_comes_back, &f16),
        cmocka_unit_test_prestate(numbers_round_to_the_nearest, &bf16),
        cmocka_unit_test_prestate(numbers_round_to_the_nearest, &f16),
        cmocka_unit_test_prestate(vectors_have_the_same_bits, &bf16),
        cmocka_unit_test_prestate(vectors_have_the_same_bits, &f16),
        cmocka_unit_test_prestate(sums_are_rounded, &bf16),
        cmocka_unit_test_prestate(sums_are_rounded, &f16),
        cmocka_unit_test_prestate(sums_go_to_the_even_neighbour, &bf16),
        cmocka_unit_test_prestate(sums_go_to_the_even_neighbour, &f16),
        cmocka_unit_test_prestate(threads_change_nothing, &bf16),
        cmocka_unit_test_prestate(threads_change_nothing, &f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
