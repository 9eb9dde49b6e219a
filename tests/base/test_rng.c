// Counter-based random numbers.
#include "base/rng.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The known answers of the authors' library Random123 (tests/kat_vectors, lines
// "philox4x32 7" and "philox4x32 10").
static const struct {
    int rounds;
    uint32_t counter[4], key[2], want[4];
} known[] = {
    {7, {0}, {0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
    {7,
     {~0u, ~0u, ~0u, ~0u},
     {~0u, ~0u},
     {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
    {7,
     {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
    {10, {0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {10,
     {~0u, ~0u, ~0u, ~0u},
     {~0u, ~0u},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {10,
     {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void known_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        tr__philox(known[i].counter, known[i].key, known[i].rounds, out);
        assert_memory_equal(out, known[i].want, sizeof out);
    }
}

typedef void (*fill_function)(float *dst, int64_t first, int64_t count, float a,
                              float b, uint64_t seed, uint64_t stream);

static const fill_function fills[] = {tr__fill_normal, tr__fill_uniform};

enum { COUNT = 1000003 };

static float *drawn(fill_function fill, int64_t count, uint64_t seed, uint64_t stream) {
    float *x = malloc((size_t)count * sizeof *x);
    assert_non_null(x);
    fill(x, 0, count, 0, 1, seed, stream);
    return x;
}

static void cuts_and_threads_change_no_bit(void **state) {
    (void)state;
    enum { ALL = 10007 };
    static const int64_t pieces[] = {1, 3, 4, 17, 1024, ALL};
    for (int f = 0; f < 2; f++) {
        omp_set_num_threads(1);
        float *want = drawn(fills[f], ALL, 1, 2), part[ALL];
        for (int p = 0; p < 6; p++) {
            omp_set_num_threads(1 + p % 3);
            for (int64_t first = 0; first < ALL; first += pieces[p]) {
                int64_t left = ALL - first;
                fills[f](part + first, first, left < pieces[p] ? left : pieces[p], 0, 1,
                         1, 2);
            }
            assert_memory_equal(part, want, sizeof part);
        }
        free(want);
    }
}

static void nothing_outside_is_written(void **state) {
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (int first = 0; first < 9; first++) {
            for (int count = 0; count < 9; count++) {
                float x[11];
                for (int i = 0; i < 11; i++) {
                    x[i] = 99;
                }
                fills[f](x + 1, first, count, 0, 1, 1, 1);
                assert_true(x[0] == 99 && x[1 + count] == 99);
            }
        }
    }
}

// Element 4 b + i comes from word i of the block with counter (b, stream).
static void elements_are_the_generators_words(void **state) {
    (void)state;
    enum { FIRST = 61, N = 300 };
    const uint64_t seed = 0x0123456789abcdef, stream = 0xfedcba9876543210;
    float x[N];
    tr__fill_uniform(x, FIRST, N, 0, 1, seed, stream);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t counter[4] = {(FIRST + i) / 4, 0, 0x76543210, 0xfedcba98}, words[4];
        uint32_t key[2] = {0x89abcdef, 0x01234567};
        tr__philox(counter, key, TR_PHILOX_ROUNDS, words);
        double want = ((words[(FIRST + i) % 4] >> 9) + 0.5) * 0x1p-23;
        assert_true(x[i] == (float)want);
    }
}

// Box and Muller's transform of those uniforms, in f64.
static void normals_are_exact(void **state) {
    (void)state;
    enum { N = 100000 };
    float *x = drawn(tr__fill_normal, N, 9, 9), *u = drawn(tr__fill_uniform, N, 9, 9);
    for (int i = 0; i < N; i += 2) {
        double radius = sqrt(-2 * log(u[i])), angle = 2 * acos(-1.) * u[i + 1];
        assert_true(fabs(x[i] - radius * cos(angle)) < 1e-6);
        assert_true(fabs(x[i + 1] - radius * sin(angle)) < 1e-6);
    }
    free(x);
    free(u);
}

// Far elements are drawn with the whole 64-bit counter.
static void far_elements(void **state) {
    (void)state;
    float near[8], far[8];
    tr__fill_uniform(near, 0, 8, 0, 1, 1, 1);
    tr__fill_uniform(far, 1LL << 34, 8, 0, 1, 1, 1); // counter 2^32
    for (int i = 0; i < 8; i++) {
        assert_true(near[i] != far[i]);
    }
}

// (mean, deviation, and the third and fourth moment of a normal), within five standard
// errors.
static void moments_of_normal(void **state) {
    (void)state;
    float *x = drawn(tr__fill_normal, COUNT, 3, 4);
    double moment[5] = {0};
    for (int i = 0; i < COUNT; i++) {
        double power = 1;
        for (int k = 1; k <= 4; k++) {
            power *= x[i];
            moment[k] += power / COUNT;
        }
    }
    double error = 5 / sqrt(COUNT);
    assert_true(fabs(moment[1]) < error);
    assert_true(fabs(moment[2] - 1) < error * sqrt(2));
    assert_true(fabs(moment[3]) < error * sqrt(15));
    assert_true(fabs(moment[4] - 3) < error * sqrt(96));
    free(x);
}

// Each of 20 equally likely intervals is hit as often as it should be, within five
// standard errors.
static void shape_of_normal(void **state) {
    (void)state;
    enum { BINS = 20 };
    float *x = drawn(tr__fill_normal, COUNT, 5, 6);
    int hits[BINS] = {0};
    for (int i = 0; i < COUNT; i++) {
        double p = 0.5 * erfc(-x[i] / sqrt(2));
        assert_true(p > 0 && p < 1);
        hits[(int)(p * BINS)]++;
    }
    double want = (double)COUNT / BINS;
    for (int b = 0; b < BINS; b++) {
        assert_true(fabs(hits[b] - want) < 5 * sqrt(want));
    }
    free(x);
}

static void uniform_is_even_and_open(void **state) {
    (void)state;
    enum { BINS = 64 };
    float *x = drawn(tr__fill_uniform, COUNT, 7, 8);
    int hits[BINS] = {0};
    double mean = 0;
    for (int i = 0; i < COUNT; i++) {
        // The middle of one of 2^23 equal intervals: never 0 or 1.
        double cell = (double)x[i] * 0x1p23 - 0.5;
        assert_true(cell >= 0 && cell < 0x1p23 && cell == floor(cell));
        hits[(int)(x[i] * BINS)]++;
        mean += x[i];
    }
    double want = (double)COUNT / BINS;
    for (int b = 0; b < BINS; b++) {
        assert_true(fabs(hits[b] - want) < 5 * sqrt(want));
    }
    assert_true(fabs(mean / COUNT - 0.5) < 5 / sqrt(12. * COUNT));
    free(x);
}

static void scale_and_shift(void **state) {
    (void)state;
    float x[100], y[100];
    tr__fill_normal(x, 0, 100, 0, 1, 1, 1);
    tr__fill_normal(y, 0, 100, 3, 0.02f, 1, 1);
    for (int i = 0; i < 100; i++) {
        assert_float_equal(y[i], 3 + 0.02 * x[i], 1e-6);
    }
    tr__fill_uniform(x, 0, 100, -2, 5, 1, 1);
    for (int i = 0; i < 100; i++) {
        assert_true(x[i] >= -2 && x[i] <= 5);
    }
}

static double correlation(const float *a, const float *b, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum / count;
}

static void streams_and_seeds_are_independent(void **state) {
    (void)state;
    enum { N = 100000 };
    static const struct {
        uint64_t seed, stream;
    } other[] = {{1, 2}, {2, 1}, {1, 1ull << 32}, {1ull << 32 | 1, 1}, {0, 0}};
    float *x = drawn(tr__fill_normal, N, 1, 1);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        float *y = drawn(tr__fill_normal, N, other[i].seed, other[i].stream);
        assert_true(fabs(correlation(x, y, N)) < 5 / sqrt(N));
        free(y);
    }
    for (int lag = 1; lag <= 8; lag++) {
        assert_true(fabs(correlation(x, x + lag, N - lag)) < 5 / sqrt(N));
    }
    free(x);
}

static void integers_below(void **state) {
    (void)state;
    enum { BOUND = 7, N = 70000 };
    int hits[BOUND] = {0};
    for (uint64_t i = 0; i < N; i++) {
        uint64_t value = tr__draw_below(BOUND, i, 1, 1);
        assert_true(value < BOUND);
        hits[value]++;
        assert_int_equal(tr__draw_below(1, i, 1, 1), 0);
        assert_true(tr__draw_below(1ull << 63, i, 1, 1) < 1ull << 63);
    }
    for (int b = 0; b < BOUND; b++) {
        assert_true(abs(hits[b] - N / BOUND) < 5 * sqrt(N / (double)BOUND));
    }
    assert_true(tr__draw_below(1ull << 60, 5, 1, 1) ==
                tr__draw_below(1ull << 60, 5, 1, 1));
    assert_true(tr__draw_below(1ull << 60, 5, 1, 1) !=
                tr__draw_below(1ull << 60, 6, 1, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(cuts_and_threads_change_no_bit),
        cmocka_unit_test(nothing_outside_is_written),
        cmocka_unit_test(elements_are_the_generators_words),
        cmocka_unit_test(normals_are_exact),
        cmocka_unit_test(far_elements),
        cmocka_unit_test(moments_of_normal),
        cmocka_unit_test(shape_of_normal),
        cmocka_unit_test(uniform_is_even_and_open),
        cmocka_unit_test(scale_and_shift),
        cmocka_unit_test(streams_and_seeds_are_independent),
        cmocka_unit_test(integers_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
