#include "ops/flat/packed_state/packed_state.h"

#include "backend/cpu/isa.h"
#include "base/checked.h"
#include "base/half.h"

extern const tr_state_kernel TR_ISA_KERNELS(tr__state_cpu);

const tr_state_kernel *tr__state_kernel(int level) {
    static const tr_state_kernel *const kernels[TR_ISA_COUNT] =
        TR_ISA_TABLE(&tr__state_cpu);
    while (level > 0 && !kernels[level]) {
        level--;
    }
    return kernels[level > 0 ? level : 0];
}

static void pack_bf16(const float *values, int64_t count, uint16_t *state) {
    for (int64_t i = 0; i < count; i++) {
        state[i] = tr__bf16_of_f32(values[i]);
    }
}

static void unpack_bf16(const uint16_t *state, int64_t count, float *values) {
    for (int64_t i = 0; i < count; i++) {
        values[i] = tr__bf16_to_f32(state[i]);
    }
}

void tr__state_pack(const tr_state_kernel *kernel, tr_state_type type,
                    const tr_state_codes *codes, const float *values, int64_t count,
                    bool keeps, void *state) {
    unsigned char *block = state;
    if (type == TR_STATE_F32) {
        memcpy(state, values, (size_t)count * sizeof *values);
        return;
    }
    if (type == TR_STATE_BF16) {
        pack_bf16(values, count, state);
        return;
    }
    for (int64_t i = 0; i < count; i += TR_STATE_BLOCK) {
        kernel->pack(codes, values + i, tr__min_i64(count - i, TR_STATE_BLOCK), keeps,
                     block);
        block += TR_STATE_BLOCK_BYTES;
    }
}

void tr__state_unpack(const tr_state_kernel *kernel, tr_state_type type,
                      const tr_state_codes *codes, const void *state, int64_t count,
                      float *values) {
    const unsigned char *block = state;
    if (type == TR_STATE_F32) {
        memcpy(values, state, (size_t)count * sizeof *values);
        return;
    }
    if (type == TR_STATE_BF16) {
        unpack_bf16(state, count, values);
        return;
    }
    for (int64_t i = 0; i < count; i += TR_STATE_BLOCK) {
        kernel->unpack(codes, block, tr__min_i64(count - i, TR_STATE_BLOCK),
                       values + i);
        block += TR_STATE_BLOCK_BYTES;
    }
}
