// The allocator of offsets against brute force.
#include "base/checked.h"
#include "base/memory.h"
#include "base/rng.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 17, MANY = 10000 };

typedef struct draws {
    uint64_t stream, next;
} draws;

static int64_t below(draws *d, int64_t bound) {
    return (int64_t)tr__draw_below((uint64_t)bound, d->next++, SEED, d->stream);
}

// Lifetimes of up to `length` steps among `steps`, one in ten of no bytes.
static void fill_random(tr_interval *items, size_t count, int64_t steps, int64_t length,
                        uint64_t stream) {
    draws d = {stream, 0};
    for (size_t i = 0; i < count; i++) {
        int64_t first = below(&d, steps), last = first + below(&d, length);
        int64_t bytes = below(&d, 10) ? 1 + below(&d, 5000) : 0;
        items[i] = (tr_interval){.bytes = bytes,
                                 .first = (int32_t)first,
                                 .last = (int32_t)tr__min_i64(last, steps - 1)};
    }
}

// Nested lifetimes: what a forward saves for its backward, with temporaries between.
static size_t fill_nested(tr_interval *items, int depth, uint64_t stream) {
    draws d = {stream, 0};
    size_t count = 0;
    for (int k = 0; k < depth; k++) {
        int32_t forward = k, backward = 2 * depth - 1 - k;
        for (int64_t n = below(&d, 4); n >= 0; n--) {
            items[count++] = (tr_interval){1 + below(&d, 100000), forward, backward, 0};
        }
        items[count++] = (tr_interval){1 + below(&d, 100000), forward, forward, 0};
        items[count++] = (tr_interval){1 + below(&d, 100000), backward, backward, 0};
    }
    return count;
}

static bool is_alive(const tr_interval *item, int32_t step) {
    return item->bytes > 0 && item->first <= step && step <= item->last;
}

// The most that lives at one step, in whole units of alignment.
static int64_t fullest_step(const tr_interval *items, size_t count, int32_t steps) {
    int64_t most = 0;
    for (int32_t step = 0; step < steps; step++) {
        int64_t live = 0;
        for (size_t i = 0; i < count; i++) {
            live += is_alive(&items[i], step)
                        ? tr__round_up(items[i].bytes, TR_ALIGNMENT)
                        : 0;
        }
        most = tr__max_i64(most, live);
    }
    return most;
}

static bool overlap(const tr_interval *x, const tr_interval *y) {
    return x->bytes > 0 && y->bytes > 0 && x->first <= y->last && y->first <= x->last &&
           x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static void assert_sound(const tr_interval *items, size_t count, int64_t total) {
    for (size_t i = 0; i < count; i++) {
        const tr_interval *x = &items[i];
        size_t clashes = 0;
        assert_true(x->offset >= 0 && x->offset % TR_ALIGNMENT == 0);
        assert_true(x->offset + x->bytes <= total);
        for (size_t k = i + 1; k < count; k++) {
            clashes += overlap(x, &items[k]);
        }
        assert_int_equal(clashes, 0);
    }
}

static int64_t assign(tr_interval *items, size_t count) {
    int64_t total = -1;
    tr_error err = {0};
    assert_int_equal(tr__offsets_assign(items, count, &total, &err), TR_OK);
    return total;
}

static void random_lifetimes_never_overlap(void **state) {
    (void)state;
    tr_interval items[300];
    for (uint64_t stream = 0; stream < 60; stream++) {
        size_t count = 1 + (size_t)stream * 299 / 59;
        int32_t steps = 1 + (int32_t)(stream * 7);
        fill_random(items, count, steps, 1 + (int64_t)stream, stream);
        int64_t total = assign(items, count);
        int64_t least = fullest_step(items, count, steps);
        assert_sound(items, count, total);
        assert_true(total >= least);
        assert_true(total <= least + least / 2);
    }
}

static void nested_lifetimes_waste_nothing(void **state) {
    (void)state;
    tr_interval items[300];
    for (uint64_t stream = 0; stream < 40; stream++) {
        int depth = 1 + (int)stream;
        size_t count = fill_nested(items, depth, stream);
        int64_t total = assign(items, count);
        assert_sound(items, count, total);
        assert_int_equal(total, fullest_step(items, count, 2 * depth));
    }
}

static void parts_that_never_meet_share_memory(void **state) {
    (void)state;
    tr_interval items[100];
    for (int i = 0; i < 100; i++) { // two live at a time, always one small one large
        items[i] = (tr_interval){i % 2 ? 64 : 4096, i / 2 * 3, i / 2 * 3 + 1, -1};
    }
    assert_int_equal(assign(items, 100), 4096 + 64);
    for (int i = 2; i < 100; i++) {
        assert_int_equal(items[i].offset, items[i - 2].offset);
    }
}

static void nothing_takes_no_room(void **state) {
    (void)state;
    tr_interval items[3] = {{0, 0, 5, 77}, {0, 1, 1, 77}, {0, 0, 0, 77}};
    assert_int_equal(assign(items, 0), 0);
    assert_int_equal(assign(items, 3), 0);
    assert_int_equal(items[0].offset, 0);
    items[1].bytes = 1;
    assert_int_equal(assign(items, 3), TR_ALIGNMENT);
}

static void the_same_items_get_the_same_offsets(void **state) {
    (void)state;
    static tr_interval a[500], b[500];
    for (uint64_t stream = 100; stream < 110; stream++) {
        fill_random(a, 500, 200, 20, stream);
        memcpy(b, a, sizeof a);
        b[7].offset = 12345; // what lay there before does not count
        assert_int_equal(assign(a, 500), assign(b, 500));
        assert_memory_equal(a, b, sizeof a);
    }
}

static void many_items_are_laid_out(void **state) {
    (void)state;
    tr_interval *items = calloc(MANY, sizeof *items);
    assert_non_null(items);
    fill_random(items, MANY, MANY, 50, 7);
    int64_t total = assign(items, MANY);
    assert_true(total >= fullest_step(items, MANY, MANY));
    assert_sound(items, MANY, total);
    free(items);
}

static void refuse(tr_interval *items, size_t count) {
    int64_t total = 0;
    tr_error err = {0};
    assert_int_equal(tr__offsets_assign(items, count, &total, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "bytes"));
}

static void huge_sizes_are_errors(void **state) {
    (void)state;
    tr_interval huge[] = {{INT64_MAX, 0, 1, 0}, {INT64_MAX, 1, 2, 0}};
    tr_interval sum[64];
    tr_interval negative = {-1, 0, 0, 0};
    refuse(huge, 1);
    refuse(huge, 2);
    refuse(&negative, 1);
    for (int i = 0; i < 64; i++) {
        sum[i] = (tr_interval){INT64_C(1) << 58, 0, 0, 0};
    }
    assert_int_equal(assign(sum, 4), INT64_C(1) << 60);
    refuse(sum, 5);
    refuse(sum, 64);
    for (int i = 0; i < 64; i++) { // one at a time they fit
        sum[i].first = sum[i].last = i;
    }
    assert_int_equal(assign(sum, 64), INT64_C(1) << 58);
}

static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    tr_interval items[50];
    fill_random(items, 50, 20, 5, 3);
    int failures = 0;
    for (tr_status status = TR_MEMORY; status != TR_OK; failures++) {
        int64_t total = 0;
        tr_error err = {0};
        tr__memory_fail_at(failures + 1);
        status = tr__offsets_assign(items, 50, &total, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_int_equal(err.status, status);
    }
    assert_true(failures > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lifetimes_never_overlap),
        cmocka_unit_test(nested_lifetimes_waste_nothing),
        cmocka_unit_test(parts_that_never_meet_share_memory),
        cmocka_unit_test(nothing_takes_no_room),
        cmocka_unit_test(the_same_items_get_the_same_offsets),
        cmocka_unit_test(many_items_are_laid_out),
        cmocka_unit_test(huge_sizes_are_errors),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
