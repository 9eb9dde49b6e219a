#include "ops/nn/linear_fp8/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"

extern const tr_fp8_rounding TR_ISA_NAME(tr__fp8_rounding);

static tr_vi larger(tr_vi a, tr_vi b) {
    tr_vi more = a > b;
    return (a & more) | (b & ~more);
}

static uint32_t largest(const void *x, int64_t count) {
    const tr_real *from = x;
    tr_vi most = {0};
    uint32_t result = 0;
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        most = larger((tr_vi)tr_v_load_r(from + i) & 0x7FFFFFFF, most);
    }
    if (i < count) {
        tr_vf rest = tr_v_load_part_r(from + i, (int)(count - i), 0);
        most = larger((tr_vi)rest & 0x7FFFFFFF, most);
    }
    for (int lane = 0; lane < TR_VW; lane++) {
        uint32_t size = (uint32_t)most[lane];
        result = size > result ? size : result;
    }
    return result;
}

typedef struct grid {
    tr_vf by, back, most;
    tr_vf least;  // normal number
    tr_vf rounds; // times a power of two: what added and subtracted rounds numbers from
                  // that power to the next
} grid;

static grid grid_of(tr_fp8 format, tr_fp8_scale scale) {
    int bits = tr__fp8_fraction_bits(format);
    return (grid){.by = tr_v_set(scale.by),
                  .back = tr_v_set(scale.back),
                  .most = tr_v_set(tr__fp8_largest(format)),
                  .least = tr_v_set(tr__fp8_power(tr__fp8_least_exponent(format))),
                  .rounds = tr_v_set(1.5f * tr__fp8_power(23 - bits))};
}

static tr_vf rounded(const grid *g, tr_vf x) {
    tr_vf y = tr_v_min(g->most, tr_v_max(-g->most, x * g->by)); // NaN stays
    tr_vf power = tr_v_max(g->least, (tr_vf)((tr_vi)y & 0x7F800000));
    tr_vf shift = power * g->rounds;
    tr_vf sum = y + shift;
    return (sum - shift) * g->back;
}

static void round_all(tr_fp8 format, tr_fp8_scale scale, const void *x, int64_t count,
                      void *to) {
    const tr_real *from = x;
    tr_real *result = to;
    grid g = grid_of(format, scale);
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_v_store_r(result + i, rounded(&g, tr_v_load_r(from + i)));
    }
    if (i < count) {
        int part = (int)(count - i);
        tr_v_store_part_r(result + i, rounded(&g, tr_v_load_part_r(from + i, part, 0)),
                          part);
    }
}

const tr_fp8_rounding TR_ISA_NAME(tr__fp8_rounding) = {largest, round_all};
