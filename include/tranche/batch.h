// The tensors of a batch: what a data set delivers and what a model takes.
//
// Both sides declare a list of tensors, and the two lists are matched by name. A batch
// of m samples holds, for each tensor, m rows of the shape that one sample has, one
// behind the other.
#ifndef TRANCHE_BATCH_H
#define TRANCHE_BATCH_H

#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

// A target that is none: its loss does not count.
enum { TR_NO_TARGET = -100 };

enum {
    TR_BATCH_TENSORS_MAX = 8,
    TR_BATCH_NAME_MAX = 32, // bytes of a name, the closing zero included
};

// What a tensor is for. The role says which values are allowed, and what is in the rows
// of samples that a short batch lacks.
typedef enum tr_batch_role {
    // What the model computes from: F32 features, or I32 token ids, each in
    // [0, vocabulary). Missing rows are zeros.
    TR_ROLE_INPUT,
    // What the loss compares with: I32 class numbers or token ids, each in
    // [0, classes), or TR_NO_TARGET. Missing rows are TR_NO_TARGET.
    TR_ROLE_TARGET,
    // Where tokens stand in their documents, I32 [S], where documents share a sample:
    // 0 begins a document, one more than before goes on with it. Missing rows are 0.
    TR_ROLE_POSITION,
} tr_batch_role;

// One tensor of a batch. A value without pointers: it is copied wherever it goes.
typedef struct tr_batch_tensor {
    char name[TR_BATCH_NAME_MAX]; // "input_ids"; unique in its list
    tr_batch_role role;
    // Of one sample, without the batch dimension: at most TR_RANK_MAX - 1 dimensions,
    // each at least 1. A model computes in bf16 or fp16 from F32 inputs, too: the graph
    // casts them.
    tr_tensor_desc desc;
} tr_batch_tensor;

// A list of at least one input, exactly one target, and at most one of positions.
typedef struct tr_batch_tensors {
    int count;
    tr_batch_tensor tensor[TR_BATCH_TENSORS_MAX]; // [count]
} tr_batch_tensors;

// The lists that the library's own data sets and models have.
// "input_ids" I32 [length], "labels" I32 [length]: the label of a position is the token
// after it.
TR_API tr_batch_tensors tr_batch_tokens(int64_t length);
// The same, and "position_ids" I32 [length]: documents that share a sample. The last
// token of a document has no target.
TR_API tr_batch_tensors tr_batch_packed(int64_t length);
// "features" F32 [features], "labels" I32 [] (one class for each sample).
TR_API tr_batch_tensors tr_batch_features(int64_t features);
// "pixel_values" F32 [height, width, channels], "labels" I32 [].
TR_API tr_batch_tensors tr_batch_images(int64_t height, int64_t width,
                                        int64_t channels);

// The place of the tensor of this name in the list; -1: there is none.
TR_API int tr_batch_find(const tr_batch_tensors *batch, const char *name);
// The first input of the list, its target, and its positions; NULL: there is none.
TR_API const tr_batch_tensor *tr_batch_input(const tr_batch_tensors *batch);
TR_API const tr_batch_tensor *tr_batch_target(const tr_batch_tensors *batch);
TR_API const tr_batch_tensor *tr_batch_positions(const tr_batch_tensors *batch);

#ifdef __cplusplus
}
#endif
#endif
