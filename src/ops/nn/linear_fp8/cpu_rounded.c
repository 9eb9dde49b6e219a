// An exact emulation: the factors are rounded into the workspace, in their own type,
// which holds every number of 8 bits, and the kernel of `linear` multiplies them.
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "base/memory.h"
#include "ops/nn/linear_fp8/cpu.h"
#include "ops/nn/linear_fp8/factors.h"

extern const tr_fp8_rounding TR_REAL_KERNELS(tr__fp8_rounding);
extern const tr_kernel tr__linear_fp8_kernel;

// A rounded element costs about as much as this many moved ones. Threads share no
// cache line: neither of factors nor of the largest values that each of them found.
enum { ROUNDING_WEIGHT = 3, LINE = 64 };

typedef struct product {
    tr_op_desc desc; // of `linear`
    const tr_kernel *kernel;
    void *state;
    const tr_fp8_rounding *rounding;
    int threads; // the most that round
} product;

static const tr_fp8_rounding *rounding_of(const tr_op_desc *desc) {
    static const tr_fp8_rounding *const plain[TR_ISA_COUNT] =
        TR_ISA_TABLE(&tr__fp8_rounding);
    static const tr_fp8_rounding *const halves[TR_CPU_HALVES][TR_ISA_COUNT] =
        TR_HALF_TABLE(&tr__fp8_rounding);
    bool half = desc->in[0].dtype == TR_BF16;
    int isa = desc->target.level;
    while (isa > 0 && !(half ? halves[1][isa] : plain[isa])) {
        isa--;
    }
    return half ? halves[1][isa] : plain[isa];
}

static bool supports(const tr_op_desc *desc) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    tr_dtype real = desc->in[0].dtype;
    return (real == TR_F32 || real == TR_BF16) && desc->target.level >= 0 &&
           tr__cpu_kernel(&plain) != NULL;
}

// Before the product, each factor is read twice, and written; what is kept, only once.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    const tr_kernel *kernel = tr__cpu_kernel(&plain);
    *out = (tr_cost){0};
    if (kernel && kernel->cost) {
        kernel->cost(&plain, out);
    }
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        *(i >= tr__fp8_factors_passing(desc) ? &out->pack : &out->prepare) +=
            3 * (double)tr_tensor_bytes(desc->in[i]);
    }
}

static void release(void *state) {
    product *p = state;
    if (p && p->kernel->release) {
        p->kernel->release(p->state);
    }
    tr__free(p);
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    product *p = tr__calloc(1, sizeof *p);
    *state = p;
    if (!p) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare %s", desc->op->name);
    }
    p->desc = tr__fp8_plain_desc(desc);
    p->kernel = tr__cpu_kernel(&p->desc);
    p->rounding = rounding_of(desc);
    p->threads = desc->target.workers;
    tr_status status =
        p->kernel->prepare ? p->kernel->prepare(&p->desc, &p->state, err) : TR_OK;
    if (status != TR_OK) {
        tr__free(p);
        *state = NULL;
    }
    return status;
}

// The copies that nobody keeps, then what the product takes. Before that is needed, its
// memory has the largest values that the threads found.
static size_t workspace(const tr_op_desc *desc, const void *state) {
    const product *p = state;
    size_t own = p->kernel->workspace ? p->kernel->workspace(&p->desc, p->state) : 0;
    size_t found = (size_t)p->threads * LINE;
    return tr__fp8_copy_at(desc, tr__fp8_factors_passing(desc)) +
           (own > found ? own : found);
}

// The weight's copy.
static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_factors_passing(desc) < TR_FP8_FACTORS
               ? (size_t)tr_tensor_bytes(desc->in[TR_FP8_FACTORS - 1])
               : 0;
}

// Element `at` of a tensor.
static const void *element(const tr_op_desc *desc, int factor, const void *x,
                           int64_t at) {
    return (const char *)x + at * (int64_t)tr_dtype_bytes(desc->in[factor].dtype);
}

// found: LINE bytes for each thread
static uint32_t largest_bits(const product *p, int factor, const void *x, int64_t count,
                             char *found) {
    int threads = tr__threads_for(count, 1, p->threads);
    uint32_t largest = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, LINE, t, threads);
        *(uint32_t *)(void *)(found + (size_t)t * LINE) = p->rounding->largest(
            element(&p->desc, factor, x, r.begin), r.end - r.begin);
    }
    for (int t = 0; t < threads; t++) {
        uint32_t its = *(const uint32_t *)(const void *)(found + (size_t)t * LINE);
        largest = its > largest ? its : largest;
    }
    return largest;
}

// scratch: memory for the search of the largest value
static void round_factor(const product *p, const tr_op_desc *desc,
                         const tr_launch *launch, int factor, char *scratch, char *to) {
    tr_fp8 format = tr__fp8_factor_format(desc, factor);
    const char *x = launch->in[factor];
    uint32_t largest =
        largest_bits(p, factor, x, tr__fp8_factor_there(desc, factor, launch), scratch);
    tr_fp8_scale scale = tr__fp8_scale_of(format, largest);
    int64_t count = tr__fp8_factor_count(desc, factor);
    int threads = tr__threads_for(count, ROUNDING_WEIGHT, p->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, LINE, t, threads);
        const char *from = element(desc, factor, x, r.begin);
        p->rounding->round(format, scale, from, r.end - r.begin, to + (from - x));
    }
}

static void launch_rounded(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    const product *p = state;
    int passing = tr__fp8_factors_passing(desc);
    tr_launch same = *launch;
    char *copies = launch->workspace;
    same.workspace = copies + tr__fp8_copy_at(desc, passing);
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        bool kept = i >= passing;
        char *copy = kept ? launch->packed : copies + tr__fp8_copy_at(desc, i);
        if (!kept || !launch->is_packed) {
            round_factor(p, desc, launch, i, same.workspace, copy);
        }
        same.in[i] = copy;
    }
    p->kernel->launch(&p->desc, p->state, &same);
}

const tr_kernel tr__linear_fp8_kernel = {
    .name = "linear_fp8.cpu",
    .supports = supports,
    .cost = cost,
    .prepare = prepare,
    .workspace = workspace,
    .packed = packed,
    .launch = launch_rounded,
    .release = release,
};
