#include "data/order/feed.h"

#include "data/order/loss_weights.h"
#include "data/sources/dataset.h"
#include "data/sources/ids.h"

#include "base/batch.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { PIECE = 16 }; // samples read between two looks at `stop`

struct tr_feed {
    tr_feed_options options;
    tr_batch_tensors batch; // of a slot
    int64_t slot_bytes;
    tr_feed_micro *micro;       // [slots]
    tr_feed_waits waits;        // of the acquiring thread
    int64_t acquired, released; // likewise; `released` under the lock

    // Of whoever fills: the step, its rows, its micro-batches so far, and all of them.
    int64_t step, cursor, micro_of_step, number;
    tr_batch now;
    tr_loss_weights weights;
    float weight; // of the step's samples

    bool alone; // filled by the thread that acquires, as it asks: there is no other
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled_more, released_more;
    atomic_bool stop;
    // Under the lock. Counts of micro-batches since the start: filled - released of
    // them are in the ring.
    int64_t filled;
    bool ended; // nothing will be filled any more: `status` says why (TR_OK: the end)
    tr_status status;
    tr_error error;
};

// ---- the thread

// The sample of this global index, as the data set counts: a batch lies in one epoch.
static int64_t sample_of(const tr_feed *feed, int64_t global) {
    const tr_feed_options *o = &feed->options;
    int64_t per_epoch = o->batcher.samples;
    int64_t all =
        tr__dataset_has_epochs(o->dataset) ? tr_dataset_samples(o->dataset) : 0;
    return tr__order_sample(&o->order, global / per_epoch, global % per_epoch) +
           global / per_epoch * all;
}

// What the second loss of the samples [first, first + count) weighs.
static tr_status weigh(tr_feed *feed, int64_t first, int64_t count, tr_error *err) {
    int64_t targets = 0;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < count && feed->weights.dataset && status == TR_OK; i++) {
        if (atomic_load(&feed->stop)) {
            return TR_OK; // nobody will look at the rows
        }
        status = tr__loss_weights_count(&feed->weights, sample_of(feed, first + i),
                                        &targets, err);
    }
    feed->weight = (float)((double)tr__max_i64(targets, 1) / (double)count);
    return status;
}

// rows: [count] of the slot, from row `row` on; `global`: index of the first. A batch
// lies in one epoch.
static tr_status read_rows(tr_feed *feed, char *slot, int64_t row, int64_t count,
                           int64_t global, tr_error *err) {
    int64_t index[PIECE];
    void *rows[TR_BATCH_TENSORS_MAX];
    for (int64_t i = 0; i < count; i++) {
        index[i] = sample_of(feed, global + i);
    }
    tr__batch_rows(tr_dataset_tensors(feed->options.dataset), &feed->batch, slot,
                   feed->options.micro_batch, row, rows);
    tr_status status = tr_dataset_read(feed->options.dataset, index, count, rows, err);
    if (status == TR_OK && feed->weights.dataset) {
        tr__loss_weights_put(&feed->weights, feed->weight, count, rows);
    }
    return status == TR_OK && feed->options.model
               ? tr__ids_check_rows(feed->options.dataset, feed->options.model, rows,
                                    (tr_sample_list){index, count}, err)
               : status;
}

static tr_status fill_slot(tr_feed *feed, int64_t which, tr_batch batch, int64_t micro,
                           tr_error *err) {
    char *slot = (char *)feed->options.memory + which * feed->slot_bytes;
    int64_t m = feed->options.micro_batch, offset = micro * m;
    int64_t rows = tr__max_i64(0, tr__min_i64(m, batch.count - offset));
    tr_status status = TR_OK;
    for (int64_t row = 0; status == TR_OK && row < rows; row += PIECE) {
        if (atomic_load(&feed->stop)) {
            return TR_OK; // nobody will look at it
        }
        status = read_rows(feed, slot, row, tr__min_i64(PIECE, rows - row),
                           batch.first + offset + row, err);
    }
    if (status == TR_OK) {
        tr__batch_pad(&feed->batch, slot, m, rows);
        feed->micro[which] = (tr_feed_micro){slot, batch.first + offset, rows, batch};
    }
    return status;
}

// Waits for a free slot; false: stop.
static bool wait_for_slot(tr_feed *feed) {
    pthread_mutex_lock(&feed->lock);
    while (feed->filled - feed->released == feed->options.slots &&
           !atomic_load(&feed->stop)) {
        pthread_cond_wait(&feed->released_more, &feed->lock);
    }
    pthread_mutex_unlock(&feed->lock);
    return !atomic_load(&feed->stop);
}

static void publish(tr_feed *feed) {
    pthread_mutex_lock(&feed->lock);
    feed->filled++;
    pthread_cond_signal(&feed->filled_more);
    pthread_mutex_unlock(&feed->lock);
}

static void end(tr_feed *feed, tr_status status) {
    pthread_mutex_lock(&feed->lock);
    feed->status = status;
    feed->ended = true;
    pthread_cond_signal(&feed->filled_more);
    pthread_mutex_unlock(&feed->lock);
}

static tr_status weigh_step(tr_feed *feed, tr_error *err) {
    bool whole = feed->options.weigh_whole;
    if (whole && feed->step > 0) {
        return TR_OK; // as the first step has found
    }
    return whole ? weigh(feed, 0, feed->options.batcher.samples, err)
                 : weigh(feed, feed->now.first, feed->now.count, err);
}

// Fills the next slot of the ring, which is free, or ends the feed.
static void fill_next(tr_feed *feed) {
    const tr_feed_options *options = &feed->options;
    int64_t rounds = tr__max_i64(options->rounds, 1);
    if (feed->micro_of_step == options->micros * rounds) { // the step is whole
        feed->step++;
        feed->micro_of_step = 0;
    }
    if (options->steps > 0 && feed->step == options->steps) {
        end(feed, TR_OK);
        return;
    }
    tr_status status = TR_OK;
    if (feed->micro_of_step == 0) {
        feed->now = tr__batcher_next(&options->batcher, feed->cursor);
        feed->cursor = feed->now.next;
        status = weigh_step(feed, &feed->error);
    }
    int64_t micro = options->first_micro + feed->micro_of_step++ % options->micros;
    if (status == TR_OK) {
        status = fill_slot(feed, feed->number++ % options->slots, feed->now, micro,
                           &feed->error);
    }
    if (status == TR_OK) {
        publish(feed);
    } else {
        end(feed, status);
    }
}

static void *run(void *argument) {
    tr_feed *feed = argument;
    tr__parallel_threads_set(1); // of this thread: the cores belong to the step
    while (!feed->ended && wait_for_slot(feed)) {
        fill_next(feed);
    }
    return NULL;
}

// ---- the caller's side

tr_status tr__feed_acquire(tr_feed *feed, tr_feed_micro *out, tr_error *err) {
    if (feed->acquired - feed->released == feed->options.slots) {
        return tr_fail(err, TR_INTERNAL, "all %lld slots of the data feed are held",
                       (long long)feed->options.slots);
    }
    if (feed->alone && feed->filled == feed->acquired && !feed->ended) {
        double begin = tr__seconds();
        fill_next(feed);
        feed->waits.count++;
        feed->waits.seconds += tr__seconds() - begin;
    }
    pthread_mutex_lock(&feed->lock);
    if (feed->filled == feed->acquired && !feed->ended) {
        double begin = tr__seconds();
        while (feed->filled == feed->acquired && !feed->ended) {
            pthread_cond_wait(&feed->filled_more, &feed->lock);
        }
        feed->waits.count++;
        feed->waits.seconds += tr__seconds() - begin;
    }
    bool present = feed->filled > feed->acquired;
    pthread_mutex_unlock(&feed->lock);
    if (present) {
        *out = feed->micro[feed->acquired++ % feed->options.slots];
        return TR_OK;
    }
    if (feed->status == TR_OK) {
        return tr_fail(err, TR_INTERNAL, "the data feed is past its last step");
    }
    return tr_fail(err, feed->status, "%s", feed->error.message);
}

void tr__feed_release(tr_feed *feed) {
    pthread_mutex_lock(&feed->lock);
    if (feed->released < feed->acquired) {
        feed->released++;
        pthread_cond_signal(&feed->released_more);
    }
    pthread_mutex_unlock(&feed->lock);
}

tr_feed_waits tr__feed_waits(const tr_feed *feed) {
    return feed->waits;
}

// What a slot holds.
static const tr_batch_tensors *batch_of(const tr_feed_options *options) {
    return options->batch ? options->batch : tr_dataset_tensors(options->dataset);
}

// Every tensor of the data has a place in a slot, of its own shape, and the reverse.
static bool fits(const tr_batch_tensors *data, const tr_batch_tensors *slot) {
    bool good = data->count == slot->count;
    for (int i = 0; good && i < data->count; i++) {
        int at = tr_batch_find(slot, data->tensor[i].name);
        good = at >= 0 && slot->tensor[at].desc.dtype == data->tensor[i].desc.dtype &&
               tr_shape_equal(slot->tensor[at].desc.shape, data->tensor[i].desc.shape);
    }
    return good;
}

static tr_status check_options(const tr_feed_options *options, tr_error *err) {
    int64_t samples = tr_dataset_samples(options->dataset), last = 0, bytes = 0;
    const tr_batch_tensors *batch = batch_of(options);
    int64_t slot = tr__batch_offset(batch, options->micro_batch, batch->count);
    if (!fits(tr_dataset_tensors(options->dataset), batch)) {
        return tr_fail(err, TR_USAGE,
                       "the data feed's tensors are not those of its dataset");
    }
    if (options->order.samples != samples || options->batcher.samples <= 0 ||
        options->batcher.samples > samples || options->batcher.batch <= 0 ||
        options->cursor < 0 || options->steps < 0) {
        return tr_fail(err, TR_USAGE, "the data feed's order does not fit its dataset");
    }
    if (options->micro_batch <= 0 || options->micros <= 0 || options->first_micro < 0 ||
        !tr__add_i64(options->first_micro, options->micros, &last) ||
        !tr__mul_i64(last, options->micro_batch, &last)) {
        return tr_fail(err, TR_USAGE, "the data feed's micro-batches are not possible");
    }
    if (options->slots <= 0 || slot < 0 || !tr__mul_i64(slot, options->slots, &bytes) ||
        !options->memory || (uintptr_t)options->memory % TR_SLOT_ALIGNMENT != 0) {
        return tr_fail(err, TR_USAGE,
                       "the data feed's memory is missing, too small or not aligned");
    }
    return TR_OK;
}

static void free_feed(tr_feed *feed) {
    pthread_cond_destroy(&feed->filled_more);
    pthread_cond_destroy(&feed->released_more);
    pthread_mutex_destroy(&feed->lock);
    tr__loss_weights_end(&feed->weights);
    tr__free(feed->micro);
    tr__free(feed);
}

tr_status tr__feed_create(const tr_feed_options *options, tr_feed **out,
                          tr_error *err) {
    tr_status status = check_options(options, err);
    *out = NULL;
    if (status != TR_OK) {
        return status;
    }
    tr_feed *feed = tr__calloc(1, sizeof *feed);
    tr_feed_micro *micro = tr__calloc((size_t)options->slots, sizeof *micro);
    if (!feed || !micro) {
        tr__free(feed);
        tr__free(micro);
        return tr_fail(err, TR_MEMORY, "no memory for the data feed");
    }
    status = tr__loss_weights_begin(options->dataset, &feed->weights, err);
    if (status != TR_OK) {
        tr__free(feed);
        tr__free(micro);
        return status;
    }
    feed->options = *options;
    feed->micro = micro;
    feed->batch = *batch_of(options);
    feed->slot_bytes =
        tr__batch_offset(&feed->batch, options->micro_batch, feed->batch.count);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->filled_more, NULL);
    pthread_cond_init(&feed->released_more, NULL);
    feed->cursor = options->cursor;
    feed->alone = tr__dataset_asks_caller(options->dataset);
    int result = feed->alone ? 0 : tr__thread_start(run, feed, &feed->thread);
    if (result != 0) {
        free_feed(feed);
        return tr_fail(err, TR_INTERNAL, "cannot start the reading thread: %s",
                       strerror(result));
    }
    *out = feed;
    return TR_OK;
}

void tr__feed_destroy(tr_feed *feed) {
    if (!feed) {
        return;
    }
    pthread_mutex_lock(&feed->lock);
    atomic_store(&feed->stop, true);
    pthread_cond_signal(&feed->released_more);
    pthread_mutex_unlock(&feed->lock);
    if (!feed->alone) {
        pthread_join(feed->thread, NULL);
    }
    free_feed(feed);
}
