// Steps from the cursor.
#include "data/order/batcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_last_batch_is_short(void **state) {
    (void)state;
    tr_batcher batcher = {.samples = 1000, .batch = 64};
    int64_t cursor = 0;
    assert_int_equal(tr__batcher_steps_per_epoch(&batcher), 16);
    for (int step = 0; step < 80; step++) {
        tr_batch batch = tr__batcher_next(&batcher, cursor);
        assert_int_equal(batch.first, step / 16 * 1000 + step % 16 * 64);
        assert_int_equal(batch.count, step % 16 == 15 ? 40 : 64);
        assert_int_equal(batch.epoch, step / 16);
        cursor = batch.next;
    }
    assert_int_equal(cursor, 5000);
}

static void the_last_batch_is_dropped(void **state) {
    (void)state;
    tr_batcher batcher = {.samples = 10, .batch = 4, .drop_last = true};
    const int64_t first[] = {0, 4, 10, 14, 20};
    int64_t cursor = 0;
    assert_int_equal(tr__batcher_steps_per_epoch(&batcher), 2);
    for (int step = 0; step < 5; step++) {
        tr_batch batch = tr__batcher_next(&batcher, cursor);
        assert_int_equal(batch.first, first[step]);
        assert_int_equal(batch.count, 4);
        assert_int_equal(batch.epoch, step / 2);
        cursor = batch.next;
    }
}

// For every small case: epochs hold every sample once (drop_last: at most once), the
// steps of an epoch are as many as said, and the cursor after s steps is the closed
// form.
static void check(tr_batcher batcher) {
    int64_t cursor = 0, per_epoch = tr__batcher_steps_per_epoch(&batcher), rows = 0;
    for (int64_t step = 0; step < 3 * per_epoch; step++) {
        assert_int_equal(cursor, tr__batcher_cursor(&batcher, step));
        tr_batch batch = tr__batcher_next(&batcher, cursor);
        assert_int_equal(batch.epoch, step / per_epoch);
        assert_int_equal(batch.first / batcher.samples, batch.epoch);
        assert_int_equal((batch.first + batch.count - 1) / batcher.samples,
                         batch.epoch);
        assert_in_range(batch.count, 1, batcher.batch);
        assert_true(batch.first >= cursor);
        assert_int_equal(batch.next, batch.first + batch.count);
        rows += batch.count;
        cursor = batch.next;
    }
    int64_t whole = batcher.samples;
    if (batcher.drop_last && batcher.batch < batcher.samples) {
        whole -= batcher.samples % batcher.batch;
    }
    assert_int_equal(rows, 3 * whole);
}

static void every_small_case(void **state) {
    (void)state;
    for (int64_t samples = 1; samples <= 30; samples++) {
        for (int64_t batch = 1; batch <= 40; batch++) {
            check((tr_batcher){samples, batch, false});
            check((tr_batcher){samples, batch, true});
        }
    }
}

static void a_batch_over_the_data_is_an_epoch(void **state) {
    (void)state;
    tr_batcher batcher = {.samples = 5, .batch = INT64_MAX, .drop_last = true};
    assert_int_equal(tr__batcher_steps_per_epoch(&batcher), 1);
    tr_batch batch = tr__batcher_next(&batcher, 15);
    assert_int_equal(batch.first, 15);
    assert_int_equal(batch.count, 5);
    assert_int_equal(batch.epoch, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_batch_is_short),
        cmocka_unit_test(the_last_batch_is_dropped),
        cmocka_unit_test(every_small_case),
        cmocka_unit_test(a_batch_over_the_data_is_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
