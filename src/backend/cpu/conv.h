// Convolutions of images: batches [batch, h, w, channels] (channels last), and weights
// [out channels, in channels / groups, kernel h, kernel w] as files have them. Sums are
// f32.
#ifndef TR_BACKEND_CPU_CONV_H
#define TR_BACKEND_CPU_CONV_H

#include <tranche/status.h>
#include <tranche/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tr_conv_kind {
    TR_CONV_OUTPUT, // y from x and weight (and bias)
    TR_CONV_INPUT,  // dx from dy and weight
    TR_CONV_WEIGHT, // dweight (and dbias) from dy and x
} tr_conv_kind;

typedef struct tr_conv_desc {
    tr_conv_kind kind;
    tr_dtype type; // f32 or bf16: of all but the gradients of weight and bias, f32
    int64_t batch;
    int64_t in_h, in_w, in_channels;
    int64_t out_h, out_w, out_channels;
    int64_t kernel_h, kernel_w, groups;
    int64_t stride[2], padding[2], dilation[2]; // along h, w
    bool bias;
    bool fresh, accumulate; // what will be asked for: the result written; added to
    int threads;            // that will run it
} tr_conv_desc;

typedef struct tr_conv tr_conv;

// Has this processor convolutions of such images, faster than f32's?  f32: always.
bool tr__conv_has(tr_dtype type);

// Prepares a convolution. TR_USAGE: a side of 2^31 or more; TR_MEMORY; TR_INTERNAL: no
// implementation of it.
tr_status tr__conv_create(const tr_conv_desc *desc, tr_conv **out, tr_error *err);
void tr__conv_destroy(tr_conv *conv); // NULL-safe
// Bytes of 64-byte aligned memory that a run needs.
size_t tr__conv_workspace(const tr_conv *conv);

typedef struct tr_conv_operands {
    const void *image;    // x; of TR_CONV_INPUT and TR_CONV_WEIGHT dy
    const void *other;    // the weight; of TR_CONV_WEIGHT x
    const void *bias;     // [out channels] of TR_CONV_OUTPUT, where there is one
    void *result;         // y, dx or dweight
    float *bias_gradient; // [out channels] of TR_CONV_WEIGHT, where there is one
    bool accumulate;      // result += instead of =
    bool accumulate_bias; // the same of bias_gradient
} tr_conv_operands;
// TR_MEMORY, TR_INTERNAL: the result is undefined.
tr_status tr__conv_run(tr_conv *conv, const tr_conv_operands *operands,
                       void *workspace);

#endif
