// What moves on a stream of its own, alone and beside computing.
#ifndef TR_CALIBRATE_BESIDE_H
#define TR_CALIBRATE_BESIDE_H

#include "calibrate/measure.h"

// Starts `count` orders of a kind and waits for them; before that, `between` is done
// (NULL: nothing).
typedef struct tr_mover {
    tr_status (*move)(const struct tr_mover *mover, int count, void (*between)(void *),
                      void *what, tr_error *err);
    void *own;
} tr_mover;

// Seconds of `count` orders, all ranks beginning together.
tr_status tr__measure_moves(tr_measuring *m, const tr_mover *mover, int count,
                            double *seconds);
// The same of one order, where others have gone before.
tr_status tr__measure_move(tr_measuring *m, const tr_mover *mover, int count,
                           double *each);
// What computing and the mover take from each other, where `each` is the seconds of one
// order; no more than `most` are under way.
tr_status tr__measure_beside(tr_measuring *m, const tr_mover *mover, double each,
                             int most, double *part);

#endif
