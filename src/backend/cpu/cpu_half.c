#include "backend/cpu/half.h"
#include "backend/cpu/simd_half.h"
#include "base/half.h"

extern const tr_half_kernel TR_ISA_NAME(tr__half_cpu);

static void widen_bf16(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store(to + i, tr_v_of_bf16(tr_v_load_h(from + i)));
    }
    for (; i < count; i++) {
        to[i] = tr__bf16_to_f32(from[i]);
    }
}

static void widen_f16(const uint16_t *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store(to + i, tr_v_of_f16(tr_v_load_h(from + i)));
    }
    for (; i < count; i++) {
        to[i] = tr__f16_to_f32(from[i]);
    }
}

static void narrow_bf16(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store_h(to + i, tr_v_to_bf16(tr_v_load(from + i)));
    }
    for (; i < count; i++) {
        to[i] = tr__bf16_of_f32(from[i]);
    }
}

static void narrow_f16(const float *from, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store_h(to + i, tr_v_to_f16(tr_v_load(from + i)));
    }
    for (; i < count; i++) {
        to[i] = tr__f16_of_f32(from[i]);
    }
}

static void add_bf16(const float *x, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf sum = tr_v_of_bf16(tr_v_load_h(to + i)) + tr_v_load(x + i);
        tr_v_store_h(to + i, tr_v_to_bf16(sum));
    }
    for (; i < count; i++) {
        to[i] = tr__bf16_of_f32(tr__bf16_to_f32(to[i]) + x[i]);
    }
}

static void add_f16(const float *x, int64_t count, uint16_t *to) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf sum = tr_v_of_f16(tr_v_load_h(to + i)) + tr_v_load(x + i);
        tr_v_store_h(to + i, tr_v_to_f16(sum));
    }
    for (; i < count; i++) {
        to[i] = tr__f16_of_f32(tr__f16_to_f32(to[i]) + x[i]);
    }
}

const tr_half_kernel TR_ISA_NAME(tr__half_cpu) = {widen_bf16, widen_f16, narrow_bf16,
                                                  narrow_f16, add_bf16,  add_f16};
