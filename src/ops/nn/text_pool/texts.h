// Where the texts of a sample lie.
#ifndef TR_OPS_NN_TEXT_POOL_TEXTS_H
#define TR_OPS_NN_TEXT_POOL_TEXTS_H

#include "base/device.h"
#include "ops/nn/text_pool/text_pool.h"

// Text k of a sample: the tokens whose rows count, and what each counts.
typedef struct tr_pooled_text {
    int64_t begin, end; // an empty one is not there
    double weight;
} tr_pooled_text;

// Where the text behind the one that begins at `begin` begins. places: [S], NULL: the
// sample is one text.
TR_DEVICE static inline int64_t tr__text_next(const int32_t *places, int64_t begin,
                                              int64_t length) {
    int64_t at = begin < length ? begin + 1 : length;
    while (at < length && (!places || places[at] > 0)) {
        at++;
    }
    return at;
}

// The text that begins at `begin`.
TR_DEVICE static inline tr_pooled_text tr__text_at(const tr_text_pool_attr *attr,
                                                   const int32_t *places, int64_t begin,
                                                   int64_t length) {
    int64_t end = tr__text_next(places, begin, length);
    tr_pooled_text t = {begin, end, 1};
    if (begin == end) {
        return t;
    }
    if (attr->kind == TR_TEXT_MEAN) {
        t.weight = 1 / (double)(end - begin);
    } else if (attr->kind == TR_TEXT_CLS) {
        t.end = begin + 1;
    } else {
        t.begin = end - 1;
    }
    return t;
}

#endif
