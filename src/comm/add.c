#include "comm/add.h"

#include "base/half.h"

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

static void add_bf16(uint16_t *restrict to, const uint16_t *restrict from,
                     int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = tr__bf16_of_f32(tr__bf16_to_f32(to[i]) + tr__bf16_to_f32(from[i]));
    }
}

static void add_to_bf16(uint16_t *restrict to, const uint16_t *restrict own,
                        const uint16_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = tr__bf16_of_f32(tr__bf16_to_f32(own[i]) + tr__bf16_to_f32(from[i]));
    }
}

static void add_f16(uint16_t *restrict to, const uint16_t *restrict from,
                    int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = tr__f16_of_f32(tr__f16_to_f32(to[i]) + tr__f16_to_f32(from[i]));
    }
}

static void add_to_f16(uint16_t *restrict to, const uint16_t *restrict own,
                       const uint16_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] = tr__f16_of_f32(tr__f16_to_f32(own[i]) + tr__f16_to_f32(from[i]));
    }
}

void tr__add(tr_comm_type type, void *to, const void *from, int64_t count) {
    switch (type) {
    case TR_COMM_F32:
        add_f32(to, from, count);
        break;
    case TR_COMM_BF16:
        add_bf16(to, from, count);
        break;
    case TR_COMM_F16:
        add_f16(to, from, count);
        break;
    default:
        add_i64(to, from, count);
        break;
    }
}

void tr__add_to(tr_comm_type type, void *to, const void *own, const void *from,
                int64_t count) {
    switch (type) {
    case TR_COMM_F32:
        add_to_f32(to, own, from, count);
        break;
    case TR_COMM_BF16:
        add_to_bf16(to, own, from, count);
        break;
    case TR_COMM_F16:
        add_to_f16(to, own, from, count);
        break;
    default:
        add_to_i64(to, own, from, count);
        break;
    }
}

void tr__add_first(tr_comm_type type, void *to, const void *own, const void *from,
                   bool add, int64_t count) {
    if (add) {
        tr__add(type, to, own, count);
    }
    if (add || own == to) {
        tr__add(type, to, from, count);
    } else {
        tr__add_to(type, to, own, from, count);
    }
}
