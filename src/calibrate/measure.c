#include "calibrate/measure.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_LEAST = 4, TRIES_MOST = 40 };

static const double enough = 0.02;    // seconds of tries
static const double lengthy = 0.1;    // two tries
static const double unbearable = 0.5; // one

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double once(tr_measured_work *work, void *what) {
    double begin = tr__seconds();
    work(what);
    return tr__seconds() - begin;
}

double tr__measure(tr_measured_work *work, void *what) {
    double seconds[TRIES_MOST], spent = 0;
    int tries = 0;
    double first = once(work, what);
    if (first > lengthy) {
        double second = first < unbearable ? once(work, what) : first;
        return second < first ? second : first;
    }
    while (tries < TRIES_LEAST || (spent < enough && tries < TRIES_MOST)) {
        seconds[tries] = once(work, what);
        spent += seconds[tries++];
    }
    qsort(seconds, (size_t)tries, sizeof *seconds, by_value);
    return seconds[tries / 4];
}

tr_status tr__measure_together(tr_measuring *m, int64_t mine, int64_t *most) {
    *most = mine;
    return m->comm ? tr_comm_most(m->comm, mine, most, m->err) : TR_OK;
}

typedef struct filling {
    uint32_t *values; // [count]
    int64_t count;
} filling;

// Both halves of a float are the same 16 bits: as bf16 or f16 too, none is huge or
// tiny.
static void fill_part(void *work, int part, int parts) {
    const filling *f = work;
    uint32_t *values = f->values;
    int64_t each = f->count / parts, first = each * part;
    int64_t end = part + 1 == parts ? f->count : first + each;
    for (int64_t i = first; i < end; i++) {
        float value = (float)(i % 1021) / 1021 - 0.4f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        values[i] = (bits & 0xffff0000U) | bits >> 16;
    }
}

void tr__measure_fill(tr_arena *arena, size_t bytes) {
    filling f = {tr__arena_view(arena, 0, bytes), (int64_t)(bytes / sizeof *f.values)};
    tr__parallel_parts(tr__parallel_threads(), fill_part, &f);
}

// While both are at work each goes on at 1 - i of its speed:
// both = shorter / (1 - i) + longer - shorter.
double tr__interference(double one, double other, double both) {
    double shorter = one < other ? one : other;
    double beside = both - one - other + 2 * shorter;
    double part = beside > 0 ? 1 - shorter / beside : 0;
    return part < 0 ? 0 : part > TR_INTERFERENCE_MOST ? TR_INTERFERENCE_MOST : part;
}
