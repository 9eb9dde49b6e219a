// Which elements of a whole a part of it has: of every `every` elements, `run` of them
// from `first` on. So a rank has some columns of a matrix, or some rows. Where these
// come of blocks that are not equal, there are more runs.
#ifndef TR_BASE_STRIDE_H
#define TR_BASE_STRIDE_H

#include "base/device.h"

#include <stdbool.h>
#include <stdint.h>

enum { TR_STRIDE_MORE = 3 };

typedef struct tr_stride {
    int64_t first;      // of the whole: the part's first element
    int64_t run, every; // run 0: the part's elements follow each other in the whole
    // Of the same `every` elements, behind those: so many more runs.
    int64_t more;
    struct {
        int64_t first, run;
    } others[TR_STRIDE_MORE];
} tr_stride;

// Where element `local` of the part is in the whole. *count: elements of the part from
// there on; becomes those of them that follow each other in the whole, too.
TR_DEVICE static inline int64_t tr__stride_at(const tr_stride *stride, int64_t local,
                                              int64_t *count) {
    int64_t period = stride->run, first = stride->first, run = stride->run;
    if (run == 0) {
        return first + local;
    }
    for (int64_t m = 0; m < TR_STRIDE_MORE; m++) { // unrolled: a GPU indexes nothing
        period += m < stride->more ? stride->others[m].run : 0;
    }
    int64_t at = local % period;
    for (int64_t m = 0; m < TR_STRIDE_MORE; m++) {
        bool behind = m < stride->more && at >= run;
        at -= behind ? run : 0;
        first = behind ? stride->others[m].first : first;
        run = behind ? stride->others[m].run : run;
    }
    *count = *count < run - at ? *count : run - at;
    return local / period * stride->every + first + at;
}

// The same of one element.
TR_DEVICE static inline int64_t tr__stride_place(const tr_stride *stride,
                                                 int64_t local) {
    int64_t one = 1;
    return tr__stride_at(stride, local, &one);
}

// Does a part cut one of the blocks of so many elements?
static inline bool tr__stride_cuts(const tr_stride *stride, int64_t block) {
    bool cuts = stride->first % block != 0 || stride->run % block != 0 ||
                stride->every % block != 0;
    for (int64_t m = 0; m < stride->more; m++) {
        cuts = cuts || stride->others[m].first % block != 0 ||
               stride->others[m].run % block != 0;
    }
    return cuts;
}

// The same with all numbers times `by`, over `over`.
static inline tr_stride tr__stride_scaled(const tr_stride *stride, int64_t by,
                                          int64_t over) {
    tr_stride scaled = *stride;
    scaled.first = stride->first * by / over;
    scaled.run = stride->run * by / over;
    scaled.every = stride->every * by / over;
    for (int64_t m = 0; m < stride->more; m++) {
        scaled.others[m].first = stride->others[m].first * by / over;
        scaled.others[m].run = stride->others[m].run * by / over;
    }
    return scaled;
}

// The same of blocks of so many elements, none of which the part cuts.
static inline tr_stride tr__stride_of_blocks(const tr_stride *stride, int64_t block) {
    return tr__stride_scaled(stride, 1, block);
}

// Are the same elements theirs?
static inline bool tr__stride_same(const tr_stride *a, const tr_stride *b) {
    bool same = a->first == b->first && a->run == b->run && a->every == b->every &&
                a->more == b->more;
    for (int64_t m = 0; m < a->more && same; m++) {
        same = a->others[m].first == b->others[m].first &&
               a->others[m].run == b->others[m].run;
    }
    return same;
}

#endif
