#include "backend/cpu/isa.h"
#include "ops/flat/packed_state/cells.h"

#include <math.h>

extern const tr_state_kernel TR_ISA_NAME(tr__state_cpu);

// Below this a scale has no inverse.
static const float least_scale = 1e-38F;

static float largest(const float *values, int64_t count) {
    float most = 0;
    for (int64_t i = 0; i < count; i++) {
        float magnitude = fabsf(values[i]);
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

// What lies behind the last element has the code of 0.
static void pack(const tr_state_codes *codes, const float *values, int64_t count,
                 bool keeps, unsigned char *block) {
    float scale;
    memcpy(&scale, block, sizeof scale);
    scale = keeps ? scale : largest(values, count);
    memcpy(block, &scale, sizeof scale);
    float inverse = 1.0F / (scale > least_scale ? scale : least_scale);
    unsigned char *code = block + sizeof scale;
    for (int64_t i = 0; i < count; i++) {
        code[i] = tr__nearest_code(codes, values[i] * inverse);
    }
    memset(code + count, tr__nearest_code(codes, 0), (size_t)(TR_STATE_BLOCK - count));
}

static void unpack(const tr_state_codes *codes, const unsigned char *block,
                   int64_t count, float *values) {
    float scale;
    memcpy(&scale, block, sizeof scale);
    for (int64_t i = 0; i < count; i++) {
        values[i] = codes->value[block[sizeof scale + (size_t)i]] * scale;
    }
}

const tr_state_kernel TR_ISA_NAME(tr__state_cpu) = {pack, unpack};
