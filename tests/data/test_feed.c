// The reading thread: the right rows in the right order, whatever the cut; errors,
// stopping, and no allocation on the way.
// Labels: threads serial
#include "base/batch.h"
#include "data/order/feed.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { WIDTH = 3 };

// Sample i: input {i, i + 1, i + 2}, target i.
typedef struct counting {
    _Atomic int64_t reads;
    int64_t bad_sample; // reading it fails; -1: none does
    long nap_us;        // each call takes this long
    pthread_t owner;    // the thread of the test
    _Atomic int64_t by_owner;
} counting;

// Whether data sets are to be asked on the test's own thread.
static bool on_calling_thread;

static tr_status read_counting(void *user, const int64_t *index, int64_t count,
                               void *const *rows, tr_error *err) {
    counting *self = user;
    if (self->nap_us > 0) {
        nanosleep(&(struct timespec){0, self->nap_us * 1000}, NULL);
    }
    for (int64_t i = 0; i < count; i++) {
        if (index[i] == self->bad_sample) {
            return tr_fail(err, TR_DATA, "sample %lld is bad: 100%%s",
                           (long long)index[i]);
        }
        for (int f = 0; f < WIDTH; f++) {
            ((float *)rows[0])[i * WIDTH + f] = (float)(index[i] + f);
        }
        ((int32_t *)rows[1])[i] = (int32_t)index[i];
    }
    atomic_fetch_add(&self->reads, count);
    atomic_fetch_add(&self->by_owner,
                     pthread_equal(pthread_self(), self->owner) ? count : 0);
    return TR_OK;
}

typedef struct feed_fixture {
    counting source;
    tr_dataset *dataset;
    tr_feed_options options;
    tr_feed *feed;
} feed_fixture;

// A data set of `samples`; `cut` has the rest: T, m, micro-batches, slots.
static void set_up(feed_fixture *fixture, int64_t samples, int64_t batch, int64_t micro,
                   int64_t micros, int64_t slots) {
    *fixture = (feed_fixture){.source = {.bad_sample = -1, .owner = pthread_self()}};
    tr_dataset_source source = {
        .size = sizeof(tr_dataset_source),
        .samples = samples,
        .tensors = tr_batch_features(WIDTH),
        .read = read_counting,
        .user = &fixture->source,
        .on_calling_thread = on_calling_thread,
    };
    assert_int_equal(tr_dataset_create_callback(&source, &fixture->dataset, NULL),
                     TR_OK);
    int64_t bytes = tr__batch_offset(&source.tensors, micro, 2);
    assert_int_equal(bytes % 64, 0);
    fixture->options = (tr_feed_options){
        .dataset = fixture->dataset,
        .order = {.samples = samples, .shuffled = true, .seed = 3},
        .batcher = {.samples = samples, .batch = batch},
        .micro_batch = micro,
        .micros = micros,
        .slots = slots,
        .memory = aligned_alloc(64, (size_t)(slots * bytes)),
    };
    memset(fixture->options.memory, 0xA5, (size_t)(slots * bytes));
}

static void start(feed_fixture *fixture) {
    tr_error err = {0};
    tr_status status = tr__feed_create(&fixture->options, &fixture->feed, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TR_OK);
}

static void tear_down(feed_fixture *fixture) {
    tr__feed_destroy(fixture->feed);
    int64_t reads = atomic_load(&fixture->source.reads);
    assert_int_equal(atomic_load(&fixture->source.by_owner),
                     on_calling_thread ? reads : 0);
    tr_dataset_destroy(fixture->dataset);
    free(fixture->options.memory);
}

// A micro-batch must be rows [offset, offset + m) of the step, padded.
static void check_micro(const feed_fixture *fixture, const tr_feed_micro *micro,
                        tr_batch batch, int64_t offset) {
    const tr_feed_options *options = &fixture->options;
    int64_t m = options->micro_batch, rows = batch.count - offset;
    const tr_batch_tensors *batch_tensors = tr_dataset_tensors(options->dataset);
    const char *slot = micro->data;
    const float *input = micro->data;
    const int32_t *target =
        (const int32_t *)(const void *)(slot + tr__batch_offset(batch_tensors, m, 1));
    rows = rows < 0 ? 0 : rows > m ? m : rows;
    assert_int_equal((uintptr_t)input % 64, 0);
    assert_int_equal((uintptr_t)target % 64, 0);
    assert_int_equal(micro->sample, batch.first + offset);
    assert_int_equal(micro->rows, rows);
    assert_int_equal(micro->batch.first, batch.first);
    assert_int_equal(micro->batch.count, batch.count);
    for (int64_t row = 0; row < m; row++) {
        bool there = row < rows;
        int64_t sample = 0;
        if (there) {
            int64_t global = batch.first + offset + row, n = options->batcher.samples;
            sample = tr__order_sample(&options->order, global / n, global % n);
        }
        assert_int_equal(target[row], there ? sample : -100);
        for (int f = 0; f < WIDTH; f++) {
            assert_true(input[row * WIDTH + f] == (there ? (float)(sample + f) : 0));
        }
    }
}

// Runs `steps` steps with as many micro-batches held at once as there are slots.
static void check_cut(int64_t samples, int64_t batch, int64_t m, int64_t slots,
                      int64_t first_micro, int64_t micros) {
    feed_fixture fixture;
    enum { STEPS = 7 };
    set_up(&fixture, samples, batch, m, micros, slots);
    fixture.options.first_micro = first_micro;
    fixture.options.cursor = samples; // one epoch later
    fixture.options.steps = STEPS;
    start(&fixture);
    int64_t cursor = samples, held = 0;
    tr_feed_micro micro;
    for (int step = 0; step < STEPS; step++) {
        tr_batch want = tr__batcher_next(&fixture.options.batcher, cursor);
        cursor = want.next;
        for (int64_t j = 0; j < micros; j++) {
            if (held == slots) {
                tr__feed_release(fixture.feed);
                held--;
            }
            assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
            held++;
            check_micro(&fixture, &micro, want, (first_micro + j) * m);
        }
    }
    tr_error err = {0};
    tr__feed_release(fixture.feed);
    assert_int_equal(tr__feed_acquire(fixture.feed, &micro, &err), TR_INTERNAL);
    assert_non_null(strstr(err.message, "the data feed is past its last step"));
    tear_down(&fixture);
}

static void every_cut_has_the_same_rows(void **state) {
    (void)state;
    check_cut(1000, 64, 64, 2, 0, 1);
    check_cut(1000, 64, 16, 4, 0, 4);
    check_cut(1000, 64, 7, 3, 0, 10); // 64 = 9 * 7 + 1
    check_cut(50, 20, 8, 1, 0, 3);    // a short last batch of 10
    check_cut(50, 20, 3, 5, 0, 9);    // micro-batches without a row
    check_cut(5, 40, 4, 2, 0, 10);    // a batch over the data
    check_cut(1, 1, 1, 1, 0, 1);
    check_cut(300, 100, 40, 3, 0, 3); // more rows than are read at once
    check_cut(50, 20, 4, 2, 2, 2);    // the second of two ranks and more
    check_cut(50, 20, 4, 2, 4, 2);    // a rank whose last micro-batch is empty
}

// A step's micro-batches come anew in each round, and the next step behind the last.
static void rounds_have_the_same_rows(void **state) {
    enum { ROUNDS = 3, MICROS = 4, M = 3 };
    (void)state;
    feed_fixture fixture;
    set_up(&fixture, 50, 10, M, MICROS, 2);
    fixture.options.rounds = ROUNDS;
    fixture.options.steps = 2;
    start(&fixture);
    int64_t cursor = 0;
    tr_feed_micro micro;
    for (int step = 0; step < 2; step++) {
        tr_batch want = tr__batcher_next(&fixture.options.batcher, cursor);
        cursor = want.next;
        for (int64_t j = 0; j < (int64_t)ROUNDS * MICROS; j++) {
            assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
            check_micro(&fixture, &micro, want, j % MICROS * M);
            tr__feed_release(fixture.feed);
        }
    }
    assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_INTERNAL);
    tear_down(&fixture);
}

// The same where the caller's thread reads, and nobody else: only what is asked for.
static void the_calling_thread_can_read(void **state) {
    feed_fixture fixture;
    tr_feed_micro micro;
    tr_error err = {0};
    on_calling_thread = true;
    every_cut_has_the_same_rows(state);
    set_up(&fixture, 100, 8, 4, 2, 2);
    start(&fixture);
    assert_int_equal(atomic_load(&fixture.source.reads), 0);
    assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
    assert_int_equal(atomic_load(&fixture.source.reads), 4);
    fixture.source.bad_sample = tr__order_sample(&fixture.options.order, 0, 5);
    for (int i = 0; i < 2; i++) { // an error stays
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, &err), TR_DATA);
        assert_non_null(strstr(err.message, "is bad"));
        err = (tr_error){0};
    }
    tear_down(&fixture);
    on_calling_thread = false;
}

// Evaluation of the first samples: a batcher over fewer than there are.
static void the_first_samples_only(void **state) {
    (void)state;
    feed_fixture fixture;
    set_up(&fixture, 100, 8, 8, 1, 2);
    fixture.options.batcher.samples = 20;
    start(&fixture);
    int64_t cursor = 0;
    for (int step = 0; step < 9; step++) {
        tr_feed_micro micro;
        tr_batch want = tr__batcher_next(&fixture.options.batcher, cursor);
        cursor = want.next;
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
        check_micro(&fixture, &micro, want, 0);
        tr__feed_release(fixture.feed);
    }
    assert_int_equal(cursor, 60);
    tear_down(&fixture);
    set_up(&fixture, 100, 8, 8, 1, 2);
    fixture.options.batcher.samples = 101;
    assert_int_equal(tr__feed_create(&fixture.options, &fixture.feed, NULL), TR_USAGE);
    tear_down(&fixture);
}

static void errors_come_in_their_place(void **state) {
    (void)state;
    feed_fixture fixture;
    set_up(&fixture, 100, 10, 10, 1, 3);
    fixture.options.order.shuffled = false;
    fixture.source.bad_sample = 25;
    start(&fixture);
    tr_feed_micro micro;
    for (int step = 0; step < 2; step++) {
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
        tr__feed_release(fixture.feed);
    }
    for (int again = 0; again < 2; again++) {
        tr_error err = {0};
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, &err), TR_DATA);
        assert_string_equal(err.message, "sample 25 is bad: 100%s");
    }
    tear_down(&fixture);
}

static void holding_everything_is_no_deadlock(void **state) {
    (void)state;
    feed_fixture fixture;
    set_up(&fixture, 100, 10, 5, 2, 2);
    start(&fixture);
    tr_feed_micro micro[2], third;
    tr_error err = {0};
    assert_int_equal(tr__feed_acquire(fixture.feed, &micro[0], NULL), TR_OK);
    assert_int_equal(tr__feed_acquire(fixture.feed, &micro[1], NULL), TR_OK);
    assert_int_equal(tr__feed_acquire(fixture.feed, &third, &err), TR_INTERNAL);
    tr__feed_release(fixture.feed);
    assert_int_equal(tr__feed_acquire(fixture.feed, &third, NULL), TR_OK);
    // What is still held has not been written over.
    check_micro(&fixture, &micro[1], micro[1].batch, 5);
    tear_down(&fixture);
}

static void stopping_is_prompt(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) { // at every moment of the thread's life
        feed_fixture fixture;
        tr_feed_micro micro;
        set_up(&fixture, 1000, 64, 32, 2, 1 + i % 4);
        start(&fixture);
        for (int taken = 0; taken < i % 7; taken++) {
            assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
            tr__feed_release(fixture.feed);
        }
        tear_down(&fixture);
    }
    // In the middle of a long read: 1,000 rows would take 6 seconds.
    feed_fixture fixture;
    set_up(&fixture, 1000, 1000, 1000, 1, 1);
    fixture.source.nap_us = 100000;
    start(&fixture);
    double begin = tr__seconds();
    tear_down(&fixture);
    assert_true(tr__seconds() - begin < 3);
    tr__feed_destroy(NULL);
}

static void waits_are_counted(void **state) {
    (void)state;
    feed_fixture fixture;
    tr_feed_micro micro;
    set_up(&fixture, 1000, 16, 16, 1, 2);
    fixture.source.nap_us = 20000;
    start(&fixture);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
        tr__feed_release(fixture.feed);
    }
    tr_feed_waits waits = tr__feed_waits(fixture.feed);
    assert_in_range(waits.count, 1, 5);
    assert_true(waits.seconds > 0.001);
    tear_down(&fixture);
}

// A step that is slower than the reading does not wait: micro-batch i is in the ring
// once the one after it has been read.
static void a_warm_step_does_not_wait(void **state) {
    (void)state;
    feed_fixture fixture;
    tr_feed_micro micro;
    set_up(&fixture, 1000, 16, 16, 1, 2);
    start(&fixture);
    for (int i = 0; i < 20; i++) {
        while (atomic_load(&fixture.source.reads) < (i + 2) * 16) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        assert_int_equal(tr__feed_acquire(fixture.feed, &micro, NULL), TR_OK);
        tr__feed_release(fixture.feed);
    }
    tr_feed_waits waits = tr__feed_waits(fixture.feed);
    assert_int_equal(waits.count, 0);
    assert_true(waits.seconds == 0);
    tear_down(&fixture);
}

static void nothing_is_allocated_on_the_way(void **state) {
    (void)state;
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "random",
                               .samples = 1000,
                               .features = 10,
                               .classes = 3,
                               .validation_fraction = 0.1};
    tr_dataset *train, *validation;
    assert_int_equal(tr_dataset_open(&options, &train, &validation, NULL), TR_OK);
    int64_t bytes = tr__batch_offset(tr_dataset_tensors(train), 8, 2);
    tr_feed_options feed_options = {
        .dataset = train,
        .order = {.samples = 900, .shuffled = true},
        .batcher = {.samples = 900, .batch = 30},
        .micro_batch = 8,
        .micros = 4,
        .slots = 3,
        .memory = aligned_alloc(64, (size_t)(3 * bytes)),
    };
    tr_feed *feed = NULL;
    assert_int_equal(tr__feed_create(&feed_options, &feed, NULL), TR_OK);
    int64_t before = tr__memory_calls();
    for (int i = 0; i < 400; i++) {
        tr_feed_micro micro;
        assert_int_equal(tr__feed_acquire(feed, &micro, NULL), TR_OK);
        tr__feed_release(feed);
    }
    assert_int_equal(tr__memory_calls(), before);
    tr__feed_destroy(feed);
    free(feed_options.memory);
    tr_dataset_destroy(train);
    tr_dataset_destroy(validation);
}

static void senseless_options_are_refused(void **state) {
    (void)state;
    feed_fixture fixture;
    tr_feed *feed = NULL;
    set_up(&fixture, 100, 10, 5, 2, 2);
    tr_feed_options bad = fixture.options;
    bad.micro_batch = 0;
    assert_int_equal(tr__feed_create(&bad, &feed, NULL), TR_USAGE);
    bad = fixture.options;
    bad.order.samples = 99;
    assert_int_equal(tr__feed_create(&bad, &feed, NULL), TR_USAGE);
    bad = fixture.options;
    bad.micros = INT64_MAX;
    assert_int_equal(tr__feed_create(&bad, &feed, NULL), TR_USAGE);
    bad = fixture.options;
    bad.memory = (char *)bad.memory + 4;
    assert_int_equal(tr__feed_create(&bad, &feed, NULL), TR_USAGE);
    for (int64_t nth = 1; nth <= 2; nth++) {
        tr__memory_fail_at(nth);
        assert_int_equal(tr__feed_create(&fixture.options, &feed, NULL), TR_MEMORY);
    }
    tr__memory_fail_at(0);
    assert_null(feed);
    assert_int_equal(
        tr__batch_offset(tr_dataset_tensors(fixture.dataset), INT64_MAX / 2, 2), -1);
    tear_down(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_has_the_same_rows),
        cmocka_unit_test(rounds_have_the_same_rows),
        cmocka_unit_test(the_calling_thread_can_read),
        cmocka_unit_test(the_first_samples_only),
        cmocka_unit_test(errors_come_in_their_place),
        cmocka_unit_test(holding_everything_is_no_deadlock),
        cmocka_unit_test(stopping_is_prompt),
        cmocka_unit_test(waits_are_counted),
        cmocka_unit_test(a_warm_step_does_not_wait),
        cmocka_unit_test(nothing_is_allocated_on_the_way),
        cmocka_unit_test(senseless_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
