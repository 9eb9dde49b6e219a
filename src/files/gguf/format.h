// How the tensors of GGUF files are stored: rows of blocks, each of so many elements in
// so many bytes. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#ifndef TR_FILES_GGUF_FORMAT_H
#define TR_FILES_GGUF_FORMAT_H

#include <tranche/types.h>

// Their numbers in files.
enum {
    TR_GGUF_F32 = 0,
    TR_GGUF_F16 = 1,
    TR_GGUF_Q4_0 = 2,
    TR_GGUF_Q4_1 = 3,
    TR_GGUF_Q5_0 = 6,
    TR_GGUF_Q5_1 = 7,
    TR_GGUF_Q8_0 = 8,
    TR_GGUF_Q2_K = 10,
    TR_GGUF_Q3_K = 11,
    TR_GGUF_Q4_K = 12,
    TR_GGUF_Q5_K = 13,
    TR_GGUF_Q6_K = 14,
    TR_GGUF_BF16 = 30
};

enum { TR_GGUF_BLOCK_MAX = 256, TR_GGUF_BLOCK_BYTES_MAX = 210 };

typedef struct tr_gguf_format {
    int number;
    const char *name;
    int elements; // of a block
    int bytes;
    tr_dtype dtype; // of plain numbers; else TR_NONE
    // One block to numbers, to the bits that gguf-py gives.
    void (*decode)(const unsigned char *block, float *values);
    // NULL: blocks of this format are not written. false: a value does not fit.
    bool (*encode)(const float *values, unsigned char *block);
} tr_gguf_format;

// The format of this number; NULL: it is not supported.
const tr_gguf_format *tr__gguf_format(int64_t number);
// The name of a format that may be unsupported; NULL: the number is unknown.
const char *tr__gguf_format_name(int64_t number);
// "F32, F16, ...": all that are supported. dst: [size]; returns dst.
const char *tr__gguf_format_names(char *dst, size_t size);

// Blocks of 32 elements: decode_32.c. Blocks of 256: decode_256.c.
void tr__gguf_decode_q4_0(const unsigned char *block, float *values);
void tr__gguf_decode_q4_1(const unsigned char *block, float *values);
void tr__gguf_decode_q5_0(const unsigned char *block, float *values);
void tr__gguf_decode_q5_1(const unsigned char *block, float *values);
void tr__gguf_decode_q8_0(const unsigned char *block, float *values);
void tr__gguf_decode_q2_k(const unsigned char *block, float *values);
void tr__gguf_decode_q3_k(const unsigned char *block, float *values);
void tr__gguf_decode_q4_k(const unsigned char *block, float *values);
void tr__gguf_decode_q5_k(const unsigned char *block, float *values);
void tr__gguf_decode_q6_k(const unsigned char *block, float *values);
bool tr__gguf_encode_q8_0(const float *values, unsigned char *block);

#endif
