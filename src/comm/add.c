#include "comm/add.h"

static void add_f32(float *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void add_to_f32(float *restrict to, const float *restrict own,
                       const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = own[i] + from[i];
    }
}

// Signed overflow has no meaning in C; unsigned sums have the same bits.
static void add_i64(uint64_t *restrict to, const uint64_t *restrict from,
                    int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void add_to_i64(uint64_t *restrict to, const uint64_t *restrict own,
                       const uint64_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = own[i] + from[i];
    }
}

void tr__add(tr_comm_type type, void *to, const void *from, int64_t count) {
    if (type == TR_COMM_F32) {
        add_f32(to, from, count);
    } else {
        add_i64(to, from, count);
    }
}

void tr__add_to(tr_comm_type type, void *to, const void *own, const void *from,
                int64_t count) {
    if (type == TR_COMM_F32) {
        add_to_f32(to, own, from, count);
    } else {
        add_to_i64(to, own, from, count);
    }
}
