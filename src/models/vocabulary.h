// The token embedding and the output projection of a language model, each used whole or
// in slices of the vocabulary.
#ifndef TR_MODELS_VOCABULARY_H
#define TR_MODELS_VOCABULARY_H

#include <tranche/extend/graph.h>

typedef struct tr_vocabulary_tensors {
    const char *embedding, *output; // tensors, by their full names
    bool tied;                      // they are one
    int64_t tokens, width;          // [tokens, width] each
    int slices;                     // 0: 1
    int64_t padding; // 1 + a token that trains no row of the embedding; 0: none
    tr_init init;
} tr_vocabulary_tensors;

// The embedding's first slice: all of it where there is one.
tr_value tr__vocabulary_first(tr_graph *graph, const tr_vocabulary_tensors *v);
// ids [B, S], and x [B, S, width], what the first slice has made of them: the other
// slices follow, each in a segment of its own.
tr_value tr__vocabulary_rest(tr_graph *graph, const tr_vocabulary_tensors *v,
                             tr_value ids, tr_value x);
// The loss of n [B, S, width], which ends the model.
void tr__vocabulary_head(tr_graph *graph, const tr_vocabulary_tensors *v, tr_value n);

#endif
