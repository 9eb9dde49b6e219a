// How much the time of a kernel varies.
#include "calibrate/measure.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

enum { TIMES = 32, QUARTER = TIMES / 4 };

static const double quartiles_apart = 1.349; // standard deviations of a normal one

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// By the quartiles: what others do on the machine now and then counts little.
static double spread_of(double seconds[TIMES]) {
    qsort(seconds, TIMES, sizeof *seconds, by_value);
    double middle = (seconds[TIMES / 2 - 1] + seconds[TIMES / 2]) / 2;
    double apart = seconds[TIMES - 1 - QUARTER] - seconds[QUARTER];
    return fmin(1, apart / quartiles_apart / middle);
}

tr_status tr__measure_spread(tr_measuring *m) {
    double seconds[TIMES];
    int64_t any;
    tr_status status = tr__measure_together(m, 0, &any);
    if (status != TR_OK || !m->usual) {
        return status;
    }
    for (int i = 0; i < TIMES; i++) {
        double begin = tr__seconds();
        tr__measure_usual(m, 1);
        seconds[i] = tr__seconds() - begin;
    }
    m->machine->reached.spread = spread_of(seconds);
    return TR_OK;
}
