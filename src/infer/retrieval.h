// How well embeddings find each other: of pairs of texts, the place of each anchor's
// positive among all candidates, by their products.
#ifndef TR_INFER_RETRIEVAL_H
#define TR_INFER_RETRIEVAL_H

#include <tranche/extend/target.h>
#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

typedef struct tr_retrieval tr_retrieval;

typedef struct tr_retrieved {
    double recall_at_1, recall_at_10; // shares of anchors
    double mrr;                       // the mean of 1 / place
} tr_retrieved;

// For `groups` groups of an anchor, its positive and, of 3 texts, a negative. Takes no
// memory for embeddings yet; tr__retrieval_bytes says how much that will be. host:
// where products are computed. The caller destroys *out.
tr_status tr__retrieval_create(int64_t groups, int64_t texts, int64_t width,
                               tr_target host, tr_retrieval **out, tr_error *err);
void tr__retrieval_destroy(tr_retrieval *r);       // NULL-safe
size_t tr__retrieval_bytes(const tr_retrieval *r); // 0 for NULL
tr_status tr__retrieval_take_memory(tr_retrieval *r, tr_error *err);

// embeddings: [count, texts, width] of the groups from `first` on.
void tr__retrieval_put(tr_retrieval *r, int64_t first, int64_t count,
                       const float *embeddings);
// Over the first `count` groups, whose negatives are candidates of all anchors, too. Of
// candidates with an anchor's largest product its own counts first.
tr_retrieved tr__retrieval_score(const tr_retrieval *r, int64_t count);

#endif
