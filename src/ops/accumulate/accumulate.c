#include "ops/accumulate/accumulate.h"

#include "backend/cpu/half.h"
#include "ops/operand.h"

extern const tr_kernel tr__accumulate_reference;
extern const tr_kernel tr__accumulate_half_kernel;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_accumulate_attr *attr = node->attr;
    tr_dtype to = (tr_dtype)attr->to;
    tr_status status = tr__operand_count(node, 1, 1, err);
    bool sums = to == TR_I64 && node->in[0].dtype == TR_I64;
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, sums ? TR_I64 : TR_F32, err);
    }
    if (status == TR_OK && to != TR_F32 && to != TR_I64 && !tr__dtype_is_half(to)) {
        status = tr_fail(err, TR_USAGE, "%s: sums of %s are not possible",
                         node->op->name, tr_dtype_name(to));
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){to, node->in[0].shape};
        out[1] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_ACCUMULATE_COUNTS)};
        *out_count = to == TR_I64 && !sums ? 2 : 1;
    }
    return status;
}

// Sums that are added to are read, too.
void tr__accumulate_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 1, cost);
    cost->bytes += desc->accumulate & 1 ? (double)tr_tensor_bytes(desc->out[0]) : 0;
}

// ---- sums in 16 bits

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 && tr__dtype_is_half(desc->out[0].dtype);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__accumulate_cost(desc, out);
}

static void launch_half(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
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

const tr_op tr__op_accumulate = {
    .name = "accumulate",
    .attr_bytes = sizeof(tr_accumulate_attr),
    .infer = infer,
    .reference = &tr__accumulate_reference,
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
                      int isa, int threads, float *x) {
    if (dtype == TR_I64) {
        choose_convert(isa)(sums, count, scale, threads, x);
    } else {
        tr__half_widen(dtype, sums, count, threads, x);
    }
}

// ---- for those who read them

bool tr__sums_are_read(tr_dtype dtype) {
    return dtype == TR_F32 || dtype == TR_I64 || tr__dtype_is_half(dtype);
}

size_t tr__sums_workspace(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 ? 0 : TR_CONVERT_ELEMENTS * sizeof(float);
}

const float *tr__sums_at(const tr_op_desc *desc, const tr_launch *launch, int64_t at,
                         int64_t count) {
    tr_dtype type = desc->in[0].dtype;
    const char *from = (const char *)launch->in[0] + at * (int64_t)tr_dtype_bytes(type);
    if (type == TR_F32) {
        return (const float *)(const void *)from;
    }
    tr__sums_convert(type, from, count, launch->run->fixed_scale, desc->target.level,
                     desc->target.workers, launch->workspace);
    return launch->workspace;
}
