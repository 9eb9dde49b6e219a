#include "run/batches.h"

#include "base/checked.h"

#include <math.h>

int64_t tr__batches_at(const tr_batches *batches, int64_t done) {
    int64_t batch = batches->first;
    for (size_t i = 0; i < batches->count && batches->changes[i].step <= done; i++) {
        batch = batches->changes[i].batch;
    }
    return batch;
}

int64_t tr__batches_largest(const tr_batches *batches) {
    int64_t most = batches->adaptive ? batches->most : batches->first;
    for (size_t i = 0; i < batches->count; i++) {
        most = tr__max_i64(most, batches->changes[i].batch);
    }
    return most;
}

// Closer than this to what it is, a batch stays: estimates are no better.
static const double worth_changing = 1.25;

int64_t tr__batches_follow(const tr_batches *batches, int64_t now, double noise) {
    double wanted = batches->share * noise, was = (double)now;
    if (!(wanted > 0) ||
        (wanted < was * worth_changing && wanted > was / worth_changing)) {
        return now;
    }
    wanted = fmin(fmax(wanted, was / 2), was * 2);
    wanted = fmin(fmax(wanted, (double)batches->least), (double)batches->most);
    int64_t unit = batches->multiple;
    int64_t batch = (int64_t)(wanted / (double)unit + 0.5) * unit;
    return batch < batches->least || batch > batches->most ? now : batch;
}

int64_t tr__batches_within(const tr_batches *batches, int64_t batch) {
    return tr__max_i64(batches->least, tr__min_i64(batch, batches->most));
}

// The steps from `done` on that have one batch; INT64_MAX: all that come.
static int64_t steps_of_batch(const tr_batches *batches, int64_t done) {
    for (size_t i = 0; i < batches->count; i++) {
        if (batches->changes[i].step > done) {
            return batches->changes[i].step - done;
        }
    }
    return INT64_MAX;
}

// Where a walk has come to.
typedef struct place {
    int64_t cursor;
    int64_t taken; // samples
} place;

// `steps` steps of one batch on: whole epochs at once.
static place walk(const tr_batcher *batcher, place at, int64_t steps) {
    while (steps > 0 && at.cursor % batcher->samples != 0) {
        tr_batch next = tr__batcher_next(batcher, at.cursor);
        if (next.first % batcher->samples == 0) { // over what is dropped
            at.cursor = next.first;
            break;
        }
        at = (place){next.next, at.taken + next.count};
        steps--;
    }
    if (steps > 0) {
        int64_t per_epoch = tr__batcher_steps_per_epoch(batcher);
        int64_t epochs = (steps - 1) / per_epoch;
        int64_t last = tr__batcher_cursor(batcher, (steps - 1) % per_epoch + 1);
        int64_t whole = tr__batcher_cursor(batcher, per_epoch); // but what is dropped
        at.cursor += epochs * batcher->samples + last;
        at.taken += epochs * whole + last;
    }
    return at;
}

int64_t tr__batches_samples(const tr_batches *batches, const tr_batcher *batcher,
                            int64_t steps) {
    tr_batcher now = *batcher;
    place at = {0, 0};
    for (int64_t done = 0; done < steps;) {
        int64_t run = tr__min_i64(steps_of_batch(batches, done), steps - done);
        now.batch = tr__batches_at(batches, done);
        at = walk(&now, at, run);
        done += run;
    }
    return at.taken;
}

int64_t tr__batches_steps(const tr_batches *batches, const tr_batcher *batcher,
                          int64_t epochs) {
    tr_batcher now = *batcher;
    int64_t done = 0, cursor = 0;
    size_t changes = 0;
    while (changes < batches->count) { // up to the last change, step by step
        now.batch = tr__batches_at(batches, done);
        tr_batch next = tr__batcher_next(&now, cursor);
        if (next.epoch >= epochs) {
            return done;
        }
        cursor = next.next;
        done++;
        changes += batches->changes[changes].step <= done;
    }
    now.batch = tr__batches_at(batches, done);
    while (cursor % batcher->samples != 0) { // to the end of the epoch
        tr_batch next = tr__batcher_next(&now, cursor);
        if (next.epoch > cursor / batcher->samples) {
            cursor = next.first;
            break;
        }
        cursor = next.next;
        done++;
    }
    int64_t left = epochs - cursor / batcher->samples, rest = 0;
    bool fits = tr__mul_i64(left, tr__batcher_steps_per_epoch(&now), &rest);
    return !fits || rest > INT64_MAX - done ? 0 : left > 0 ? done + rest : done;
}
