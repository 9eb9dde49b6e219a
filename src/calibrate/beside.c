#include "calibrate/beside.h"

#include "base/clock.h"

#include <math.h>

static const double most_seconds = 0.1; // of each, beside each other
static const double part_of_all = 0.02; // of what measuring may take

typedef struct computing {
    tr_measuring *m;
    int times;
} computing;

static void compute(void *what) {
    const computing *w = what;
    tr__measure_usual(w->m, w->times);
}

static tr_status timed(tr_measuring *m, const tr_mover *mover, int count,
                       computing *between, double *seconds) {
    int64_t any;
    tr_status status = tr__measure_together(m, 0, &any);
    double begin = tr__seconds();
    if (status == TR_OK) {
        status = mover->move(mover, count, between ? compute : NULL, between, m->err);
    }
    *seconds = tr__seconds() - begin;
    return status;
}

tr_status tr__measure_moves(tr_measuring *m, const tr_mover *mover, int count,
                            double *seconds) {
    return timed(m, mover, count, NULL, seconds);
}

tr_status tr__measure_move(tr_measuring *m, const tr_mover *mover, int count,
                           double *each) {
    tr_status status = tr__measure_moves(m, mover, 2, each);
    if (status == TR_OK) {
        status = tr__measure_moves(m, mover, count, each);
    }
    *each /= count;
    return status;
}

// Rank 0 says how many of each, so that all move the same.
tr_status tr__measure_beside(tr_measuring *m, const tr_mover *mover, double each,
                             int most, double *part) {
    int counts[2] = {1, 2};
    double alone = 0, moving = 0, both = 0;
    double lasting = fmin(most_seconds, part_of_all * m->seconds);
    tr_status status = TR_OK;
    if (!m->usual) { // the threads that compute share their cores with what moves
        *part = 0.5;
        return TR_OK;
    }
    counts[0] += (int)(lasting / m->usual_seconds);
    counts[1] += (int)(lasting / each);
    counts[1] = counts[1] < most ? counts[1] : most;
    if (m->comm) {
        status = tr__comm_broadcast(m->comm, 0, counts, sizeof counts, m->err);
    }
    computing w = {m, counts[0]};
    if (status == TR_OK) {
        int64_t any;
        status = tr__measure_together(m, 0, &any);
        double begin = tr__seconds();
        compute(&w);
        alone = tr__seconds() - begin;
    }
    if (status == TR_OK) {
        status = timed(m, mover, counts[1], NULL, &moving);
    }
    if (status == TR_OK) {
        status = timed(m, mover, counts[1], &w, &both);
    }
    *part = status == TR_OK ? tr__interference(alone, moving, both) : 0;
    return status;
}
