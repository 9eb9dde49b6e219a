// Data types and shapes.
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

#ifdef __cplusplus
}
#endif
#endif
