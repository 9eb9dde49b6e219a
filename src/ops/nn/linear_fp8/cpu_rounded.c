// An exact emulation: the factors are rounded into the workspace, in their own type,
// which holds every number of 8 bits, and the kernel of `linear` multiplies them.
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "base/memory.h"
#include "ops/nn/linear_fp8/cpu.h"
#include "ops/nn/linear_fp8/factors.h"

extern const tr_kernel tr__linear_fp8_kernel;

// A rounded element costs about as much as this many moved ones.
enum { ROUNDING_WEIGHT = 3 };

typedef struct product {
    tr_op_desc desc; // of `linear`
    const tr_kernel *kernel;
    void *state;
    const tr_fp8_rounding *rounding;
    int threads; // the most that round
} product;

static bool supports(const tr_op_desc *desc) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    tr_dtype real = desc->in[0].dtype;
    return (real == TR_F32 || real == TR_BF16) && desc->target.level >= 0 &&
           tr__cpu_kernel(&plain) != NULL;
}

// Before the product, each factor is read twice, or once where its largest value is
// told, and written; what is kept, only once.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    const tr_kernel *kernel = tr__cpu_kernel(&plain);
    *out = (tr_cost){0};
    if (kernel && kernel->cost) {
        kernel->cost(&plain, out);
    }
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        int moves = tr__fp8_factor_is_told(desc, i) ? 2 : 3;
        *(i >= tr__fp8_factors_passing(desc) ? &out->pack : &out->prepare) +=
            moves * (double)tr_tensor_bytes(desc->in[i]);
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
    p->rounding = tr__fp8_rounding_of(desc->in[0].dtype, &desc->target);
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
    size_t found = tr__fp8_search_bytes(p->threads);
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

// scratch: memory for the search of the largest value
static void round_factor(const product *p, const tr_op_desc *desc,
                         const tr_launch *launch, int factor, char *scratch, char *to) {
    tr_fp8 format = tr__fp8_factor_format(desc, factor);
    const char *x = launch->in[factor];
    uint32_t largest =
        tr__fp8_factor_is_told(desc, factor)
            ? tr__fp8_factor_told(desc, launch, factor)
            : tr__fp8_search(&desc->in[factor], &desc->target, x,
                             tr__fp8_factor_there(desc, factor, launch), scratch);
    tr_fp8_scale scale = tr__fp8_scale_of(format, largest);
    int64_t count = tr__fp8_factor_count(desc, factor);
    int threads = tr__threads_for(count, ROUNDING_WEIGHT, p->threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_FP8_LINE, t, threads);
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
