// Data types, shapes, the tensors of a batch, and where texts go.
#ifndef TRANCHE_TYPES_H
#define TRANCHE_TYPES_H

#include <tranche/api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TR_ALIGNAS(bytes) alignas(bytes)
extern "C" {
#else
#define TR_ALIGNAS(bytes) _Alignas(bytes)
#endif

// X(name, bytes, safetensors name)
#define TR_DTYPE_LIST(X)                                                               \
    X(NONE, 0, "")                                                                     \
    X(F32, 4, "F32")                                                                   \
    X(F64, 8, "F64")                                                                   \
    X(F16, 2, "F16")                                                                   \
    X(BF16, 2, "BF16")                                                                 \
    X(I8, 1, "I8")                                                                     \
    X(U8, 1, "U8")                                                                     \
    X(I16, 2, "I16")                                                                   \
    X(U16, 2, "U16")                                                                   \
    X(I32, 4, "I32")                                                                   \
    X(U32, 4, "U32")                                                                   \
    X(I64, 8, "I64")                                                                   \
    X(U64, 8, "U64")                                                                   \
    X(BOOL, 1, "BOOL")

typedef enum tr_dtype {
#define TR_DTYPE_ENUM(name, bytes, st) TR_##name,
    TR_DTYPE_LIST(TR_DTYPE_ENUM)
#undef TR_DTYPE_ENUM
        TR_DTYPE_COUNT
} tr_dtype;

TR_API size_t tr_dtype_bytes(tr_dtype dtype);
TR_API const char *tr_dtype_name(tr_dtype dtype); // the safetensors name, "F32"
// The dtype with that safetensors name, TR_NONE when there is none.
TR_API tr_dtype tr_dtype_find(const char *name);

enum { TR_RANK_MAX = 4 };

// In a model, a first dimension of TR_BATCH stands for the samples of one micro-batch;
// a compiled unit program has the number in its place.
#define TR_BATCH ((int64_t)-1)

typedef struct tr_shape {
    int rank; // 0: a scalar
    int64_t dim[TR_RANK_MAX];
} tr_shape;

typedef struct tr_tensor_desc {
    tr_dtype dtype; // TR_NONE: absent
    tr_shape shape;
} tr_tensor_desc;

// Elements of a concrete shape; -1 when a dimension is negative or the product
// overflows.
TR_API int64_t tr_shape_count(tr_shape shape);
// Bytes of a concrete tensor; -1 as above. 0 when absent.
TR_API int64_t tr_tensor_bytes(tr_tensor_desc desc);
TR_API bool tr_shape_equal(tr_shape a, tr_shape b);

// A shape as a value, and, in ISO C, for variables that live as long as the program.
#define TR_SHAPE1(a)          ((tr_shape){1, {(a), 0, 0, 0}})
#define TR_SHAPE2(a, b)       ((tr_shape){2, {(a), (b), 0, 0}})
#define TR_SHAPE3(a, b, c)    ((tr_shape){3, {(a), (b), (c), 0}})
#define TR_SHAPE4(a, b, c, d) ((tr_shape){4, {(a), (b), (c), (d)}})
#define TR_SHAPE1_INIT(a)                                                              \
    {                                                                                  \
        1, {                                                                           \
            (a), 0, 0, 0                                                               \
        }                                                                              \
    }
#define TR_SHAPE2_INIT(a, b)                                                           \
    {                                                                                  \
        2, {                                                                           \
            (a), (b), 0, 0                                                             \
        }                                                                              \
    }
#define TR_SHAPE3_INIT(a, b, c)                                                        \
    {                                                                                  \
        3, {                                                                           \
            (a), (b), (c), 0                                                           \
        }                                                                              \
    }
#define TR_SHAPE4_INIT(a, b, c, d)                                                     \
    {                                                                                  \
        4, {                                                                           \
            (a), (b), (c), (d)                                                         \
        }                                                                              \
    }

// ---- the tensors of a batch: what a data set delivers and what a model takes
//
// Both sides declare a list of tensors, and the two lists are matched by name. A batch
// of m samples holds, for each tensor, m rows of the shape that one sample has, one
// behind the other.

// The value of a missing target: its loss does not count.
enum { TR_NO_TARGET = -100 };

enum {
    TR_BATCH_TENSORS_MAX = 8,
    TR_BATCH_NAME_MAX = 32, // bytes of a name, the closing zero included
};

// What a tensor is for. The role says which values are allowed, and what is in the rows
// of samples that a short batch lacks. If a caller's source of data says I64 in place
// of I32, its values are converted.
typedef enum tr_batch_role {
    // What the model computes from: F32 features, or I32 token ids, each in
    // [0, vocabulary). Missing rows are zeros.
    TR_ROLE_INPUT,
    // What the loss compares with. I32: class numbers or token ids, each in [0,
    // classes), or TR_NO_TARGET; missing rows are TR_NO_TARGET. F32: numbers, for a
    // loss of the caller's own; NAN is no target, and missing rows are NAN.
    TR_ROLE_TARGET,
    // The positions of tokens in their documents, I32 [S], if documents share a sample.
    // 0 begins a document; one more than before continues it. Missing rows are 0.
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

// A list with at least one input and at most one tensor of positions. The library's own
// loss reads one I32 target. Several targets, or F32 ones, are for a loss that is an op
// of the caller's. No target is for a loss that the caller computes
// (tr_engine_forward).
typedef struct tr_batch_tensors {
    int count;
    tr_batch_tensor tensor[TR_BATCH_TENSORS_MAX]; // [count]
} tr_batch_tensors;

// A batch without a tensor, to begin with.
#define TR_BATCH_TENSORS_INIT                                                          \
    {                                                                                  \
        0, {                                                                           \
            {                                                                          \
                "", TR_ROLE_INPUT, {                                                   \
                    TR_NONE, {                                                         \
                        0, {                                                           \
                            0, 0, 0, 0                                                 \
                        }                                                              \
                    }                                                                  \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }

// The lists that the library's own data sets and models have.
// "input_ids" I32 [length], "labels" I32 [length]: the label of a position is the token
// after it.
TR_API tr_batch_tensors tr_batch_tokens(int64_t length);
// The same, and "position_ids" I32 [length]: documents that share a sample. The last
// token of a document has no target.
TR_API tr_batch_tensors tr_batch_packed(int64_t length);
// Rows of whole texts for encoders: "input_ids" I32 [length], "token_type_ids" I32
// [length], "position_ids" I32 [length], "labels" I32 [texts]: one for each text that a
// row may have, in their order; TR_NO_TARGET where there is no text.
TR_API tr_batch_tensors tr_batch_texts(int64_t length, int64_t texts);
// What the labels of texts are.
typedef enum tr_label_kind {
    TR_LABELS_NONE,  // there are none: a text's number in the data is in their place
    TR_LABELS_CLASS, // one of several classes
    TR_LABELS_SET,   // any of several classes: of each 0 or 1, or a share between
    TR_LABELS_VALUE, // numbers
} tr_label_kind;

// As tr_batch_texts, with labels of this kind: I32 [texts] of classes, else F32 [texts,
// labels], NAN where there is no text. types: false: "token_type_ids" are left out.
TR_API tr_batch_tensors tr_batch_labelled(int64_t length, int64_t texts, bool types,
                                          tr_label_kind kind, int64_t labels);

// As tr_batch_texts, with "labels" I32 [length]: the token that was there, where one is
// masked; else TR_NO_TARGET.
TR_API tr_batch_tensors tr_batch_masked(int64_t length);
// "features" F32 [features], "labels" I32 [] (one class for each sample).
TR_API tr_batch_tensors tr_batch_features(int64_t features);
// "pixel_values" F32 [height, width, channels], "labels" I32 [].
TR_API tr_batch_tensors tr_batch_images(int64_t height, int64_t width,
                                        int64_t channels);

// The place of the tensor of this name in the list; -1: there is none.
TR_API int tr_batch_find(const tr_batch_tensors *batch, const char *name);
// The first input of the list, its first target, and its positions; NULL: there is
// none.
TR_API const tr_batch_tensor *tr_batch_input(const tr_batch_tensors *batch);
TR_API const tr_batch_tensor *tr_batch_target(const tr_batch_tensors *batch);
TR_API const tr_batch_tensor *tr_batch_positions(const tr_batch_tensors *batch);

// ---- texts

// Takes a text that the library prints, such as a plan or an inspection. The calls come
// from the thread that asks for the text.
typedef struct tr_sink {
    // Takes the next piece of the text, in UTF-8 where names in it are; no zero ends
    // it. False: it takes no more, and the function that prints ends with TR_IO.
    bool (*write)(void *user, const char *text, size_t bytes);
    void *user;
} tr_sink;

// A number of bytes in words, "2.31 GiB". dst: [size], 16 is always enough. Returns
// dst.
TR_API const char *tr_size_words(int64_t bytes, char *dst, size_t size);

#ifdef __cplusplus
}
#endif
#endif
