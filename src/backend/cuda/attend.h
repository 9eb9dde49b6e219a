// Attention of whole samples by a library, cuDNN: what it is told, and how much memory
// it works in. A plan needs no library to know that.
#ifndef TR_BACKEND_CUDA_ATTEND_H
#define TR_BACKEND_CUDA_ATTEND_H

#include <tranche/status.h>
#include <tranche/types.h>

#include <stdbool.h>
#include <stdint.h>

// Attention of `batch` samples: a query sees the keys up to its own or, both ways, all
// of them. Their scores are multiplied by 1 / sqrt(depth).
typedef struct tr_cuda_attend_shape {
    int64_t batch, context, depth;
    int64_t heads, pairs; // of queries; of keys and values
    int64_t pitch, width; // elements from a token to the next: of q, k and v; of y
    int32_t half;         // tr_dtype: bf16 or f16
    int32_t backward, both;
    int32_t has_lse; // the forward also leaves the logarithms
    // The version that the plan counts on, 919 for 9.19, and the bytes that it has for
    // the library: another version is not asked, and no engine that wants more is
    // taken.
    int64_t version, workspace;
} tr_cuda_attend_shape;

// Addresses of the first sample's first head. lse, delta: [batch, heads, context]
typedef struct tr_cuda_attend {
    tr_cuda_attend_shape of;
    const void *q, *k, *v; // rows of `pitch`
    void *y;               // rows of `width`: written; in the backward read
    float *lse;            // likewise
    // Of the backward.
    const void *dy;
    float *delta; // what it adds up of dy . y
    void *dq, *dk, *dv;
    void *workspace; // 256-byte aligned
} tr_cuda_attend;

// What a driver has of such a library; all by the same thread.
typedef struct tr_cuda_attention_library {
    // Of the one that is installed: 919 for 9.19; 0: there is none, and *why says so.
    int (*version)(const char **why);
    // On the open device, before the first launch: chooses how it is computed, within
    // the workspace, and compiles that. TR_USAGE says why it cannot be.
    tr_status (*ready)(const tr_cuda_attend_shape *shape, tr_error *err);
    // Puts it into the stream. Returns an error of the driver's, or 0.
    int (*attend)(const tr_cuda_attend *attend, void *stream);
} tr_cuda_attention_library;

// ---- attend.c

// Is it known in how much memory this version works?
bool tr__cuda_attend_knows(int64_t version);
// Bytes that the library works in on sm_90; -1: it does not compute this shape. In a
// backward these are the gradients of all scores, but for the last
// TR_CUDA_ATTEND_LEAST.
int64_t tr__cuda_attend_room(const tr_cuda_attend_shape *shape);
enum { TR_CUDA_ATTEND_LEAST = 256 };

#endif
