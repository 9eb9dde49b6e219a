// Arithmetic on sizes that cannot overflow unseen. Each returns false on overflow.
#ifndef TR_BASE_CHECKED_H
#define TR_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tr__mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tr__add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool tr__mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tr__add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

// `value` rounded up to a multiple of `unit` (> 0). The caller knows that it fits.
static inline int64_t tr__round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static inline int64_t tr__ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int64_t tr__min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t tr__max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
