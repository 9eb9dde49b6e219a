// The keyed permutation: a bijection, different each epoch, and roughly uniform.
#include "data/order/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void is_a_bijection(void **state) {
    enum { MOST = 3000 };
    (void)state;
    char seen[MOST];
    for (int64_t n = 1; n <= MOST; n++) {
        tr_order order = {.samples = n, .shuffled = true, .seed = 7};
        memset(seen, 0, sizeof seen);
        for (int64_t p = 0; p < n; p++) {
            int64_t sample = tr__order_sample(&order, n % 5, p);
            if (sample < 0 || sample >= n || seen[sample]) {
                fail_msg("position %lld of %lld", (long long)p, (long long)n);
            }
            seen[sample] = 1;
        }
    }
}

// Where no table can be made, stretches of positions must lead to distinct samples.
static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void is_injective_where_large(void **state) {
    enum { TAKEN = 20000 };
    (void)state;
    const int64_t sizes[] = {99991,         1000000,     4294967296,
                             4294967297,    10000000019, TR_SAMPLES_MAX - 57,
                             TR_SAMPLES_MAX};
    int64_t *sample = malloc(TAKEN * sizeof *sample);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        tr_order order = {.samples = sizes[s], .shuffled = true, .seed = 3};
        for (int64_t i = 0; i < TAKEN; i++) { // both ends
            int64_t p = i % 2 ? sizes[s] - 1 - i / 2 : i / 2;
            sample[i] = tr__order_sample(&order, 1, p);
            assert_true(sample[i] >= 0 && sample[i] < sizes[s]);
        }
        qsort(sample, TAKEN, sizeof *sample, compare);
        for (int64_t i = 1; i < TAKEN; i++) {
            assert_true(sample[i] > sample[i - 1]);
        }
    }
    free(sample);
}

static int64_t fixed_between(const tr_order *a, int64_t ea, const tr_order *b,
                             int64_t eb) {
    int64_t same = 0;
    for (int64_t p = 0; p < a->samples; p++) {
        same += tr__order_sample(a, ea, p) == tr__order_sample(b, eb, p);
    }
    return same;
}

static void epochs_and_seeds_differ(void **state) {
    (void)state;
    tr_order a = {.samples = 1000, .shuffled = true, .seed = 1};
    tr_order b = {.samples = 1000, .shuffled = true, .seed = 2};
    tr_order plain = {.samples = 1000};
    // Two random permutations agree at one place on average.
    assert_true(fixed_between(&a, 0, &a, 1) < 10);
    assert_true(fixed_between(&a, 0, &b, 0) < 10);
    assert_true(fixed_between(&a, 0, &plain, 0) < 10);
    assert_true(fixed_between(&a, 5, &a, 5) == 1000);
}

// Chi-square of counts against equal ones.
static double chi_square(const int *count, int cells, double expected) {
    double sum = 0;
    for (int i = 0; i < cells; i++) {
        double off = count[i] - expected;
        sum += off * off / expected;
    }
    return sum;
}

static void positions_are_uniform(void **state) {
    enum { N = 10, EPOCHS = 20000 };
    (void)state;
    int count[N][N] = {{0}};
    tr_order order = {.samples = N, .shuffled = true, .seed = 11};
    for (int e = 0; e < EPOCHS; e++) {
        for (int p = 0; p < N; p++) {
            count[p][tr__order_sample(&order, e, p)]++;
        }
    }
    for (int p = 0; p < N; p++) { // 9 degrees: over 39 once in 100,000
        assert_true(chi_square(count[p], N, EPOCHS / (double)N) < 39);
    }
}

// All 24 orders of 4 samples come about equally often.
static void small_orders_are_uniform(void **state) {
    enum { EPOCHS = 48000 };
    (void)state;
    int count[256] = {0}, seen[24], distinct = 0;
    tr_order order = {.samples = 4, .shuffled = true, .seed = 5};
    for (int e = 0; e < EPOCHS; e++) {
        int code = 0;
        for (int p = 0; p < 4; p++) {
            code = code * 4 + (int)tr__order_sample(&order, e, p);
        }
        count[code]++;
    }
    for (int code = 0; code < 256; code++) {
        if (count[code] > 0) {
            assert_true(distinct < 24);
            seen[distinct++] = count[code];
        }
    }
    assert_int_equal(distinct, 24);
    assert_true(chi_square(seen, 24, EPOCHS / 24.0) < 65); // 23 degrees: 1e-5
}

// Neighbours do not stay neighbours: the gap between them is spread evenly.
static void neighbours_part(void **state) {
    enum { N = 16000, CELLS = 16 };
    (void)state;
    int count[CELLS] = {0};
    tr_order order = {.samples = N, .shuffled = true, .seed = 9};
    for (int64_t p = 0; p + 1 < N; p++) {
        int64_t gap =
            tr__order_sample(&order, 0, p + 1) - tr__order_sample(&order, 0, p) + N;
        count[gap % N / (N / CELLS)]++;
    }
    assert_true(chi_square(count, CELLS, (N - 1) / (double)CELLS) < 50); // 15 degrees
}

static void sequential_is_as_it_is(void **state) {
    (void)state;
    tr_order plain = {.samples = 17, .seed = 4};
    for (int64_t p = 0; p < 17; p++) {
        assert_int_equal(tr__order_sample(&plain, p % 3, p), p);
    }
}

static void names_are_parsed(void **state) {
    (void)state;
    bool shuffled = false;
    tr_error err = {0};
    assert_int_equal(tr__order_parse(NULL, &shuffled, NULL), TR_OK);
    assert_true(shuffled);
    assert_int_equal(tr__order_parse("sequential", &shuffled, NULL), TR_OK);
    assert_false(shuffled);
    assert_int_equal(tr__order_parse("shufled", &shuffled, &err), TR_USAGE);
    assert_string_equal(err.message,
                        "data.order: 'shufled' is not known; did you mean 'shuffled'?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_a_bijection),
        cmocka_unit_test(is_injective_where_large),
        cmocka_unit_test(epochs_and_seeds_differ),
        cmocka_unit_test(positions_are_uniform),
        cmocka_unit_test(small_orders_are_uniform),
        cmocka_unit_test(neighbours_part),
        cmocka_unit_test(sequential_is_as_it_is),
        cmocka_unit_test(names_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
