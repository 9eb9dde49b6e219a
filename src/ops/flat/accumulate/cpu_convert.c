#include "ops/flat/accumulate/cpu_convert.h"

#include "backend/cpu/half.h"

extern const tr_kernel tr__accumulate_half_kernel;

// ---- sums in 16 bits

static bool supports(const tr_op_desc *desc) {
    tr_dtype from = desc->in[0].dtype, to = desc->out[0].dtype;
    return tr__dtype_is_half(to) && (from == TR_F32 || from == to);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__accumulate_cost(desc, out);
}

// Sums to sums, piece by piece.
static void add_half(const tr_op_desc *desc, const tr_launch *launch) {
    enum { PIECE = 1024 };
    float x[PIECE];
    const uint16_t *from = launch->in[0];
    uint16_t *to = launch->out[0];
    tr_dtype type = desc->out[0].dtype;
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t some = count - at < PIECE ? count - at : PIECE;
        tr__half_widen(type, from + at, some, 1, x);
        (launch->accumulate & 1 ? tr__half_add : tr__half_narrow)(type, x, some, 1,
                                                                  to + at);
    }
}

static void launch_half(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    if (desc->in[0].dtype != TR_F32) {
        add_half(desc, launch);
        return;
    }
    bool add = launch->accumulate & 1;
    (add ? tr__half_add : tr__half_narrow)(desc->out[0].dtype, launch->in[0],
                                           tr_shape_count(desc->in[0].shape),
                                           desc->target.workers, launch->out[0]);
}

const tr_kernel tr__accumulate_half_kernel = {
    .name = "accumulate.cpu.half",
    .supports = supports,
    .cost = cost,
    .launch = launch_half,
};

// ---- back to f32

typedef void (*convert_function)(const int64_t *sums, int64_t count, double scale,
                                 int threads, float *x);

void tr__fixed_convert_reference(const int64_t *sums, int64_t count, double scale,
                                 int threads, float *x);
void tr__fixed_convert_generic(const int64_t *sums, int64_t count, double scale,
                               int threads, float *x);
#if defined(__x86_64__)
void tr__fixed_convert_avx2(const int64_t *sums, int64_t count, double scale,
                            int threads, float *x);
void tr__fixed_convert_avx512(const int64_t *sums, int64_t count, double scale,
                              int threads, float *x);
#endif

static convert_function choose_convert(int isa) {
    static const convert_function table[TR_ISA_COUNT] = TR_ISA_TABLE(tr__fixed_convert);
    for (int i = isa; i >= 0; i--) {
        if (i < TR_ISA_COUNT && table[i]) {
            return table[i];
        }
    }
    return tr__fixed_convert_reference;
}

void tr__sums_convert(tr_dtype dtype, const void *sums, int64_t count, double scale,
                      const tr_target *target, float *x) {
    if (dtype == TR_I64) {
        choose_convert(target->level)(sums, count, scale, target->workers, x);
    } else {
        tr__half_widen(dtype, sums, count, target->workers, x);
    }
}

const float *tr__sums_at(const tr_op_desc *desc, const tr_launch *launch, int64_t at,
                         int64_t count) {
    tr_dtype type = desc->in[0].dtype;
    const char *from = (const char *)launch->in[0] + at * (int64_t)tr_dtype_bytes(type);
    if (type == TR_F32) {
        return (const float *)(const void *)from;
    }
    tr__sums_convert(type, from, count, launch->run->fixed_scale, &desc->target,
                     launch->workspace);
    return launch->workspace;
}
