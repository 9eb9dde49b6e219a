// Exact sums of f64 numbers: whatever order they are added in, and by whichever ranks,
// the sum is the same, and is rounded once, when it is read.
//
// A sum is a whole number of 22 digits to the base 2^32, times 2^-352, each digit in an
// int64 of its own, so that sums are added digit by digit, and carried when they are
// read. Bits of a number below 2^-352 are cut off; one of 2^352 or more counts as
// infinite: squares of f32 numbers and their sums lie between 2^-298 and 2^320. (After
// Kulisch's long accumulator; U. Kulisch, "Computer Arithmetic and Validity", 2013.)
//
// CUDA's kernels include this as well.
#ifndef TR_BASE_EXACT_SUM_H
#define TR_BASE_EXACT_SUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TR_EXACT static __host__ __device__ inline
#else
#define TR_EXACT static inline
#endif

enum {
    TR_EXACT_DIGITS = 22,
    TR_EXACT_INFINITE = TR_EXACT_DIGITS, // how many numbers were infinite
    TR_EXACT_NAN,                        // or none
    TR_EXACT_WORDS = TR_EXACT_NAN + 3,   // int64 of a sum: three are added to at once
    TR_EXACT_LOWEST = -352,              // exponent of the first digit's lowest bit
};

// What a number adds to the words of a sum from word `at` on.
typedef struct tr_exact_term {
    int at;
    int64_t word[3];
} tr_exact_term;

// x >= 0, or not a number.
TR_EXACT tr_exact_term tr__exact_term(double x) {
    tr_exact_term term = {TR_EXACT_NAN, {1, 0, 0}};
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & 0xfffffffffffffu;
    if (exponent == 0x7ff && mantissa != 0) {
        return term;
    }
    // The lowest bit of the mantissa is worth 2^(exponent - 1075): bit `shift` of all.
    mantissa |= exponent > 0 ? (uint64_t)1 << 52 : 0;
    int shift = (exponent > 0 ? exponent : 1) - 1075 - TR_EXACT_LOWEST;
    if (exponent == 0x7ff || shift + 53 > 32 * TR_EXACT_DIGITS) {
        term.at = TR_EXACT_INFINITE;
        return term;
    }
    mantissa = shift >= 0 ? mantissa : shift > -64 ? mantissa >> -shift : 0;
    shift = shift > 0 ? shift : 0;
    uint64_t low = (mantissa & 0xffffffffu) << shift % 32;
    uint64_t high = (mantissa >> 32) << shift % 32;
    term.at = shift / 32;
    term.word[0] = (int64_t)(low & 0xffffffffu);
    term.word[1] = (int64_t)((low >> 32) + (high & 0xffffffffu));
    term.word[2] = (int64_t)(high >> 32);
    return term;
}

// sum: [TR_EXACT_WORDS]. Up to 2^30 numbers between two calls of tr__exact_carry.
TR_EXACT void tr__exact_add(int64_t *sum, double x) {
    tr_exact_term term = tr__exact_term(x);
    for (int i = 0; i < 3; i++) {
        sum[term.at + i] += term.word[i];
    }
}

// Makes each digit but the last less than 2^32.
TR_EXACT void tr__exact_carry(int64_t *sum) {
    for (int i = 0; i + 1 < TR_EXACT_DIGITS; i++) {
        sum[i + 1] += sum[i] >> 32;
        sum[i] &= 0xffffffff;
    }
}

// `from` is carried first: 2^30 such sums may be added.
TR_EXACT void tr__exact_add_sum(int64_t *sum, const int64_t *from) {
    int64_t carried[TR_EXACT_WORDS];
    memcpy(carried, from, sizeof carried);
    tr__exact_carry(carried);
    for (int i = 0; i < TR_EXACT_WORDS; i++) {
        sum[i] += carried[i];
    }
}

enum { TR_EXACT_ROOM = TR_EXACT_WORDS + 3 }; // int64 in which a sum is rounded

// The nearest f64. digit: [TR_EXACT_ROOM]; a kernel has no array of its own for that.
TR_EXACT double tr__exact_round(const int64_t *sum, int64_t *digit) {
    for (int i = 0; i < TR_EXACT_ROOM; i++) { // three zeros are below the lowest
        digit[i] = i < 3 ? 0 : sum[i - 3];
    }
    tr__exact_carry(digit + 3);
    if (sum[TR_EXACT_NAN] != 0) {
        return NAN;
    }
    int top = TR_EXACT_DIGITS + 2;
    while (top > 3 && digit[top] == 0) {
        top--;
    }
    if (sum[TR_EXACT_INFINITE] != 0 || digit[top] >> 32 != 0) {
        return INFINITY;
    }
    // 64 bits from the highest on, the last of which says whether any follow: f64 keeps
    // 53 of them, so it is rounded as all of them would be.
    uint64_t high = (uint64_t)digit[top] << 32 | (uint64_t)digit[top - 1];
    uint64_t low = (uint64_t)digit[top - 2] << 32 | (uint64_t)digit[top - 3];
    int shift = 0;
    while (shift < 63 && high >> 63 == 0) {
        high = high << 1 | low >> 63;
        low <<= 1;
        shift++;
    }
    int more = low != 0;
    for (int i = top - 4; i >= 3; i--) {
        more |= digit[i] != 0;
    }
    return ldexp((double)(high | (uint64_t)more),
                 TR_EXACT_LOWEST + 32 * (top - 3 - 1) - shift);
}

TR_EXACT double tr__exact_value(const int64_t *sum) {
    int64_t digit[TR_EXACT_ROOM];
    return tr__exact_round(sum, digit);
}

#endif
