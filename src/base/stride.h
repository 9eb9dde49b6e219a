// Which elements of a whole a part of it has: of every `every` elements, `run` of them
// from `first` on. So a rank has some columns of a matrix, or some rows.
#ifndef TR_BASE_STRIDE_H
#define TR_BASE_STRIDE_H

#include <stdint.h>

typedef struct tr_stride {
    int64_t first;      // of the whole: the part's first element
    int64_t run, every; // run 0: the part's elements follow each other in the whole
} tr_stride;

// Where element `local` of the part is in the whole. *count: elements of the part from
// there on; becomes those of them that follow each other in the whole, too.
static inline int64_t tr__stride_at(const tr_stride *stride, int64_t local,
                                    int64_t *count) {
    if (stride->run == 0) {
        return stride->first + local;
    }
    int64_t in_run = local % stride->run, left = stride->run - in_run;
    *count = *count < left ? *count : left;
    return stride->first + local / stride->run * stride->every + in_run;
}

// The same of blocks of so many elements, none of which the part cuts.
static inline tr_stride tr__stride_of_blocks(const tr_stride *stride, int64_t block) {
    return (tr_stride){stride->first / block, stride->run / block,
                       stride->every / block};
}

#endif
