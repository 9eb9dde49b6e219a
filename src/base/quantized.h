// Weights in few bits: how many bytes they take, how they are made, what they stand
// for.
//
// NF4 (Dettmers et al., QLoRA, arXiv 2305.14314): codes of 4 bits, two in a byte, the
// first in the upper half. A code is one of 16 numbers between -1 and 1; a block of 64
// is multiplied by its largest absolute value, an f32. With double quantization these
// are codes of 8 bits themselves, in blocks of 256, beside their mean. Codes and values
// are those of bitsandbytes.
// Q8_0 (ggml): codes of 8 bits with sign, in blocks of 32 times an f16.
//
// In memory a tensor of n elements is its codes, then what they are multiplied by; each
// part begins at a multiple of 4 bytes.
#ifndef TR_BASE_QUANTIZED_H
#define TR_BASE_QUANTIZED_H

#include "base/device.h"
#include "base/stride.h"

#include <tranche/extend/op.h>

#include <stddef.h>

enum { TR_NF4_BLOCK = 64, TR_NF4_NESTED = 256, TR_Q8_0_BLOCK = 32 };

// Where the parts of a quantized tensor lie, in bytes from its first.
typedef struct tr_quantized_layout {
    int64_t blocks;
    int64_t scales; // of the blocks: f32, f16 (Q8_0), or codes of 8 bits (double)
    int64_t nested; // double: an f32 for every 256 of these, then their mean, an f32
    int64_t bytes;
} tr_quantized_layout;

tr_quantized_layout tr__quantized_layout(tr_quantization kind, int64_t count);
int64_t tr__quantized_block(tr_quantization kind); // elements
// How parts of a tensor are kept that consist of whole blocks: what the blocks of
// several parts share has no place in one, so of double quantization each block is
// multiplied by an f32, which is what its code stands for.
tr_quantization tr__quantization_of_parts(tr_quantization kind);
const char *tr__quantization_name(tr_quantization kind);

// ---- made

// Makes a quantized tensor of elements that come in runs, twice: once for what blocks
// are multiplied by, once for the codes. Runs begin at a multiple of a block and end at
// one, or with the tensor.
typedef struct tr_quantizer {
    tr_quantization kind;
    int64_t count;
    tr_quantized_layout at;
    float *scales;         // [blocks]
    unsigned char *behind; // what lies behind the codes, as it lies there
} tr_quantizer;

tr_status tr__quantizer_begin(tr_quantizer *q, tr_quantization kind, int64_t count,
                              tr_error *err);
void tr__quantizer_see(tr_quantizer *q, int64_t first, int64_t count, const float *x);
void tr__quantizer_settle(tr_quantizer *q); // all have been seen
// Of NF4, in the place of the two: what these blocks of a whole are multiplied by,
// which has been settled, are those of a part, or of all.
void tr__quantizer_take(tr_quantizer *q, const tr_quantizer *whole,
                        const tr_stride *blocks);
// The codes of a run: to holds those bytes.
void tr__quantizer_codes(const tr_quantizer *q, int64_t first, int64_t count,
                         const float *x, unsigned char *to);
// Bytes that `count` codes take, rounded up.
int64_t tr__code_bytes(tr_quantization kind, int64_t count);
void tr__quantizer_end(tr_quantizer *q);

// What a tensor becomes, in its place. TR_MEMORY.
tr_status tr__quantize_through(tr_quantization kind, float *x, int64_t count,
                               tr_error *err);

// ---- what it stands for

extern const float tr__nf4_values[16];

// Code number `i` of NF4.
TR_DEVICE static inline int tr__nf4_code(const unsigned char *codes, int64_t i) {
    return i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
}

// What a block is multiplied by, of its code. nested: as it lies in the tensor.
float tr__nf4_double_scale(unsigned char code, const float *nested, int64_t blocks,
                           int64_t block);
// x: [rows, columns]; to: [columns, rows], the same with both exchanged.
void tr__exchange_sides(const float *x, int64_t rows, int64_t columns, float *to);

// What block `block` of a tensor is multiplied by.
float tr__quantized_scale(tr_quantization kind, const tr_quantized_layout *at,
                          const unsigned char *tensor, int64_t block);
// Element number `i`.
float tr__quantized_value(tr_quantization kind, const tr_quantized_layout *at,
                          const unsigned char *tensor, int64_t i);

#endif
