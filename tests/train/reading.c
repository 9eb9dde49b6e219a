#include "reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A part of a tensor, whole.
typedef struct whole {
    trial *t;
    const char *name, *part;
    int64_t count;
    float *values;
} whole;

static void read_range(const whole *w, int64_t first, int64_t count, float *to) {
    tr_error err = {0};
    trial_ok(tr_engine_read(w->t->engine, w->name, w->part, first, count, to, &err),
             &err);
}

static void write_range(const whole *w, int64_t first, int64_t count,
                        const float *from) {
    tr_error err = {0};
    trial_ok(tr_engine_write(w->t->engine, w->name, w->part, first, count, from, &err),
             &err);
}

static void assert_values(const whole *w, const float *values, const float *wanted,
                          int64_t count, const char *what) {
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&values[i], &wanted[i], sizeof *values) != 0) {
            fail_msg("%s, %s, %s: element %lld is %g, not %g", w->name, w->part, what,
                     (long long)i, (double)values[i], (double)wanted[i]);
        }
    }
}

static void check_ranges(const whole *w) {
    int64_t first = w->count / 3, count = w->count - first - w->count / 5;
    float *some = calloc((size_t)count + 1, sizeof *some);
    assert_non_null(some);
    some[count] = 12;
    read_range(w, first, count, some);
    assert_values(w, some, w->values + first, count, "a range");
    assert_true(some[count] == 12); // nothing beyond it
    free(some);
}

// Other values in a range, and then the old ones again. Small whole numbers are exact
// in every type.
static void check_writing(const whole *w) {
    int64_t first = w->count / 4, count = w->count / 2 + 1;
    float *now = malloc((size_t)w->count * sizeof *now);
    float *there = malloc((size_t)w->count * sizeof *there);
    assert_true(now && there);
    memcpy(now, w->values, (size_t)w->count * sizeof *now);
    for (int64_t i = 0; i < count; i++) {
        now[first + i] = (float)(i % 7) - 3;
    }
    write_range(w, first, count, now + first);
    read_range(w, 0, w->count, there);
    assert_values(w, there, now, w->count, "written");
    write_range(w, 0, w->count, w->values);
    read_range(w, 0, w->count, there);
    assert_values(w, there, w->values, w->count, "written back");
    free(now);
    free(there);
}

static double squares(const whole *w) {
    double sum = 0;
    for (int64_t i = 0; i < w->count; i++) {
        sum += (double)w->values[i] * w->values[i];
    }
    return sum;
}

// Returns the squares of its gradient.
static double check_tensor(trial *t, const snapshot *all, const tr_tensor_info *info) {
    const snapshot_tensor *held = snapshot_find(all, info->name);
    whole w = {.t = t, .name = info->name, .count = tr_shape_count(info->shape)};
    double sum = 0;
    assert_non_null(held);
    assert_int_equal(held->count, w.count);
    w.values = malloc((size_t)w.count * sizeof *w.values);
    assert_non_null(w.values);
    for (size_t p = 0; (w.part = tr_engine_part(t->engine, p)); p++) {
        if (p > 0 && !info->trained) {
            continue;
        }
        read_range(&w, 0, w.count, w.values);
        if (p == 1) {
            sum = squares(&w);
        } else {
            assert_values(&w, w.values, held->part[p == 0 ? 0 : p - 1], w.count,
                          "read");
        }
        check_ranges(&w);
        bool exact = p != 1 || t->plan->request.sums == TR_F32;
        if (exact && info->trained) { // of fewer bits the first reading is rounded
            check_writing(&w);
        }
    }
    free(w.values);
    return sum;
}

void reading_check(trial *t, double grad_norm, double tolerance) {
    snapshot before, after;
    double sum = 0;
    tr_error err = {0};
    snapshot_gather(&before, t);
    size_t count = tr_engine_tensors(t->engine);
    assert_int_equal(count, before.count + t->plan->state_count);
    for (size_t i = 0; i < before.count; i++) {
        tr_tensor_info info = TR_TENSOR_INFO_INIT;
        trial_ok(tr_engine_tensor(t->engine, i, &info, &err), &err);
        sum += check_tensor(t, &before, &info);
    }
    if (!(fabs(sqrt(sum) - grad_norm) <= tolerance * grad_norm)) {
        fail_msg("the gradients have the norm %.9g, the step told %.9g", sqrt(sum),
                 grad_norm);
    }
    snapshot_gather(&after, t);
    snapshot_assert_same(&before, &after);
    snapshot_free(&before);
    snapshot_free(&after);
}
