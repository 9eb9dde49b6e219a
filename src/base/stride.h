// Which elements of a whole a part of it has: of every `every` elements, `run` of them
// from `first` on. So a rank has some columns of a matrix, or some rows.
#ifndef TR_BASE_STRIDE_H
#define TR_BASE_STRIDE_H

#include "base/device.h"

#include <stdint.h>

typedef struct tr_stride {
    int64_t first;      // of the whole: the part's first element
    int64_t run, every; // run 0: the part's elements follow each other in the whole
} tr_stride;

// Where element `local` of the part is in the whole.
TR_DEVICE static inline int64_t tr__stride_place(const tr_stride *stride,
                                                 int64_t local) {
    return stride->first + (stride->run == 0 ? local
                                             : local / stride->run * stride->every +
                                                   local % stride->run);
}

// The same. *count: elements of the part from there on; becomes those of them that
// follow each other in the whole, too.
static inline int64_t tr__stride_at(const tr_stride *stride, int64_t local,
                                    int64_t *count) {
    if (stride->run > 0) {
        int64_t left = stride->run - local % stride->run;
        *count = *count < left ? *count : left;
    }
    return tr__stride_place(stride, local);
}

// The same of blocks of so many elements, none of which the part cuts.
static inline tr_stride tr__stride_of_blocks(const tr_stride *stride, int64_t block) {
    return (tr_stride){stride->first / block, stride->run / block,
                       stride->every / block};
}

#endif
