// The search for gaps against brute force, and the work that it takes.
#include "base/memory.h"
#include "base/rng.h"
#include "plan/units/gaps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SEED = 5, TIMES = 100, ITEMS = 400, DEPTH = 20000 };

typedef struct item {
    int32_t first, last;
    int64_t begin, end;
} item;

static tr_gaps *gaps_of(int32_t times) {
    tr_gaps *gaps = NULL;
    tr_error err = {0};
    assert_int_equal(tr__gaps_create(times, &gaps, &err), TR_OK);
    return gaps;
}

static void take(tr_gaps *gaps, const item *at) {
    tr_error err = {0};
    assert_int_equal(tr__gaps_take(gaps, at->first, at->last, at->begin, at->end, &err),
                     TR_OK);
}

static bool is_free(const item *items, int count, const item *wanted) {
    for (int i = 0; i < count; i++) {
        const item *at = &items[i];
        if (at->first <= wanted->last && wanted->first <= at->last &&
            at->begin < wanted->end && wanted->begin < at->end) {
            return false;
        }
    }
    return true;
}

// Each offset is the end of an item, or 0.
static int64_t lowest(const item *items, int count, item wanted, int64_t bytes) {
    int64_t best = INT64_MAX;
    for (int i = -1; i < count; i++) {
        wanted.begin = i < 0 ? 0 : items[i].end;
        wanted.end = wanted.begin + bytes;
        if (wanted.begin < best && is_free(items, count, &wanted)) {
            best = wanted.begin;
        }
    }
    return best;
}

static int64_t below(uint64_t *at, uint64_t stream, int64_t bound) {
    return (int64_t)tr__draw_below((uint64_t)bound, (*at)++, SEED, stream);
}

// Some items leave gaps behind: they lie where nobody would have put them.
static void the_lowest_gap_is_found(void **state) {
    (void)state;
    static item items[ITEMS];
    for (uint64_t stream = 0; stream < 8; stream++) {
        int32_t times = 1 + (int32_t)stream * (TIMES - 1) / 7;
        tr_gaps *gaps = gaps_of(times);
        uint64_t at = 0;
        for (int i = 0; i < ITEMS; i++) {
            int32_t a = (int32_t)below(&at, stream, times);
            int32_t b = (int32_t)below(&at, stream, times);
            item now = {a < b ? a : b, a < b ? b : a, 0, 0};
            int64_t bytes = 1 + below(&at, stream, 50);
            now.begin = tr__gaps_lowest(gaps, now.first, now.last, bytes);
            assert_int_equal(now.begin, lowest(items, i, now, bytes));
            now.begin += i % 3 == 0 ? below(&at, stream, 200) : 0;
            now.end = now.begin + bytes;
            take(gaps, &now);
            items[i] = now;
        }
        tr__gaps_destroy(gaps);
    }
}

// What forwards keep for their backwards, longest first, then what lives for one step
// beside them: each search sees a few ranges, however many items there are.
static void nested_lifetimes_take_few_looks(void **state) {
    (void)state;
    tr_gaps *gaps = gaps_of(2 * DEPTH);
    for (int32_t i = 0; i < DEPTH; i++) {
        item now = {i, 2 * DEPTH - 1 - i, 0, 0};
        now.begin = tr__gaps_lowest(gaps, now.first, now.last, 64);
        now.end = now.begin + 64;
        assert_int_equal(now.begin, 64 * i);
        take(gaps, &now);
    }
    for (int32_t i = 0; i < 2 * DEPTH; i++) {
        item now = {i, i, 0, 0};
        int32_t live = i < DEPTH ? i + 1 : 2 * DEPTH - i;
        now.begin = tr__gaps_lowest(gaps, i, i, 128);
        now.end = now.begin + 128;
        assert_int_equal(now.begin, 64 * live);
        take(gaps, &now);
    }
    assert_true(tr__gaps_looks(gaps) < INT64_C(200) * 3 * DEPTH);
    tr__gaps_destroy(gaps);
}

static tr_status take_all(tr_error *err) {
    tr_gaps *gaps = NULL;
    tr_status status = tr__gaps_create(40, &gaps, err);
    for (int32_t i = 0; i < 40 && status == TR_OK; i++) {
        status = tr__gaps_take(gaps, i, 39, 100 * i, 100 * i + 50, err);
    }
    tr__gaps_destroy(gaps);
    return status;
}

static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    int failures = 0;
    for (tr_status status = TR_MEMORY; status != TR_OK; failures++) {
        tr_error err = {0};
        tr__memory_fail_at(failures + 1);
        status = take_all(&err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_int_equal(err.status, status);
    }
    assert_true(failures > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_gap_is_found),
        cmocka_unit_test(nested_lifetimes_take_few_looks),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
