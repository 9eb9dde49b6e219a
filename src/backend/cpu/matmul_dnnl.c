// The matrix products: by this project's kernels (gemm.h), or where there are none by
// oneDNN's primitives, which take their scratch memory from us, too.
#include "backend/cpu/matmul.h"

#include "backend/cpu/dnnl.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/strided.h"
#include "backend/cpu/team.h"
#include "base/memory.h"

#include <omp.h>

struct tr_matmul {
    tr_matmul_desc desc;
    const tr_gemm_kernel *gemm;      // NULL: by oneDNN; else all that follows is
    tr_strided a_strided, c_strided; // what oneDNN is given dense copies of
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    tr_layout a_layout, b_layout, bias_layout, c_layout;
    dnnl_memory_t a, b, bias, c; // without memory of their own
    tr_primitive ways[2];        // index: accumulate
};

static bool is_f32(tr_dtype type) {
    return type == TR_F32 || type == TR_NONE;
}

// oneDNN has bf16 everywhere, but without the instructions far slower than f32.
bool tr__matmul_has(tr_dtype type) {
    return is_f32(type) || (type == TR_BF16 && tr__cpu_has_bf16());
}

static bool is_valid(const tr_matmul_desc *d) {
    return d->m >= 1 && d->n >= 1 && d->k >= 1 && (d->a_row == 1 || d->a_col == 1) &&
           (d->b_row == 1 || d->b_col == 1) && d->c_row >= d->n && d->threads >= 1 &&
           (d->fresh || d->accumulate) && tr__matmul_has(d->type) &&
           (is_f32(d->c_type) || d->c_type == d->type);
}

// oneDNN 2.6 divides by zero beyond 2^32.
static bool is_too_large(const tr_matmul_desc *d) {
    return d->m > INT32_MAX || d->n > INT32_MAX || d->k > INT32_MAX;
}

static tr_status refused(const tr_matmul_desc *d, dnnl_status_t status, tr_error *err) {
    if (status == dnnl_out_of_memory) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare a matrix product");
    }
    return tr_fail(err, TR_INTERNAL,
                   "oneDNN refused the matrix product %lld x %lld x %lld (status %d)",
                   (long long)d->m, (long long)d->n, (long long)d->k, (int)status);
}

// ---- preparing

static dnnl_status_t describe(tr_layout *out, tr_dtype type, int64_t rows,
                              int64_t columns, int64_t row, int64_t column) {
    dnnl_dims_t dims = {rows, columns}, strides = {row, column};
    return tr__layout_strided(2, dims, is_f32(type) ? dnnl_f32 : dnnl_bf16, strides,
                              out);
}

static dnnl_status_t create_memory(tr_matmul *p, const tr_layout *layout,
                                   dnnl_memory_t *out) {
    return tr__layout_memory(layout, p->engine, out);
}

static dnnl_status_t create_operands(tr_matmul *p) {
    const tr_matmul_desc *d = &p->desc;
    dnnl_status_t status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    status = status
                 ? status
                 : dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    status = status ? status
                    : describe(&p->a_layout, d->type, d->m, d->k, d->a_row, d->a_col);
    status = status ? status
                    : describe(&p->b_layout, d->type, d->k, d->n, d->b_row, d->b_col);
    status =
        status ? status : describe(&p->c_layout, d->c_type, d->m, d->n, d->c_row, 1);
    status = status ? status : describe(&p->bias_layout, d->type, 1, d->n, d->n, 1);
    status = status ? status : create_memory(p, &p->a_layout, &p->a);
    status = status ? status : create_memory(p, &p->b_layout, &p->b);
    status = status ? status : create_memory(p, &p->c_layout, &p->c);
    return status ? status : create_memory(p, &p->bias_layout, &p->bias);
}

static dnnl_status_t create_way(tr_matmul *p, bool accumulate) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    const tr_product_layouts of = {
        .a = &p->a_layout,
        .b = &p->b_layout,
        .c = &p->c_layout,
        .bias = p->desc.bias ? &p->bias_layout : NULL,
    };
    dnnl_status_t status = tr__attributes_create(accumulate, &attributes);
    status = status ? status : tr__product_describe(p->engine, &of, attributes, &desc);
    status = tr__primitive_create(status, p->engine, desc, &p->ways[accumulate]);
    if (attributes) {
        dnnl_primitive_attr_destroy(attributes);
    }
    return status;
}

static dnnl_status_t create_ways(tr_matmul *p) {
    dnnl_status_t status = create_operands(p);
    if (!status && p->desc.fresh) {
        status = create_way(p, false);
    }
    if (!status && p->desc.accumulate) {
        status = create_way(p, true);
    }
    return status;
}

static size_t element_bytes(tr_dtype type) {
    return is_f32(type) ? sizeof(float) : sizeof(uint16_t);
}

// The description then has no vectors with gaps, where oneDNN would overlook them.
static void close_gaps(tr_matmul *p) {
    tr_matmul_desc *d = &p->desc;
    size_t a_bytes = element_bytes(d->type), c_bytes = element_bytes(d->c_type);
    if (d->m == 1 && d->a_col != 1) {
        p->a_strided = (tr_strided){d->k, a_bytes, (size_t)d->a_col * a_bytes, 0};
        d->a_row = d->k;
        d->a_col = 1;
    }
    if (d->n == 1 && d->c_row != 1) {
        p->c_strided = (tr_strided){d->m, c_bytes, (size_t)d->c_row * c_bytes, 0};
        d->c_row = 1;
    }
}

static size_t aligned(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static size_t scratch_bytes(const tr_matmul *p) {
    size_t fresh = p->ways[0].scratch_bytes, add = p->ways[1].scratch_bytes;
    return fresh > add ? fresh : add;
}

// The dense copies are behind oneDNN's scratch.
static void place_copies(tr_matmul *p) {
    p->a_strided.copy = aligned(scratch_bytes(p));
    p->c_strided.copy =
        p->a_strided.copy + aligned((size_t)p->a_strided.count * p->a_strided.element);
}

tr_status tr__matmul_create(const tr_matmul_desc *desc, tr_matmul **out,
                            tr_error *err) {
    *out = NULL;
    if (!is_valid(desc)) {
        return refused(desc, dnnl_invalid_arguments, err);
    }
    if (is_too_large(desc)) {
        return tr_fail(err, TR_USAGE,
                       "a matrix product of %lld x %lld x %lld has a side of 2^31 or "
                       "more: make the micro-batch or the model smaller",
                       (long long)desc->m, (long long)desc->n, (long long)desc->k);
    }
    tr_matmul *p = tr__calloc(1, sizeof *p);
    if (!p) {
        return refused(desc, dnnl_out_of_memory, err);
    }
    p->desc = *desc;
    p->gemm = tr__gemm_kernel(desc);
    if (!p->gemm) {
        if (!tr__dnnl_sees_gaps()) {
            close_gaps(p);
        }
        // oneDNN cuts the work for as many threads as OpenMP would use now.
        int threads = omp_get_max_threads();
        omp_set_num_threads(desc->threads);
        dnnl_status_t status = create_ways(p);
        omp_set_num_threads(threads);
        if (status) {
            tr__matmul_destroy(p);
            return refused(desc, status, err);
        }
        place_copies(p);
    }
    *out = p;
    return TR_OK;
}

void tr__matmul_destroy(tr_matmul *product) {
    if (!product) {
        return;
    }
    tr__primitive_destroy(&product->ways[0]);
    tr__primitive_destroy(&product->ways[1]);
    tr__tensor_destroy(product->a);
    tr__tensor_destroy(product->b);
    tr__tensor_destroy(product->bias);
    tr__tensor_destroy(product->c);
    tr__layout_destroy(&product->a_layout);
    tr__layout_destroy(&product->b_layout);
    tr__layout_destroy(&product->bias_layout);
    tr__layout_destroy(&product->c_layout);
    if (product->stream) {
        dnnl_stream_destroy(product->stream);
    }
    if (product->engine) {
        dnnl_engine_destroy(product->engine);
    }
    tr__free(product);
}

size_t tr__matmul_workspace(const tr_matmul *product) {
    if (!product) {
        return 0;
    }
    if (product->gemm) {
        return product->gemm->workspace(&product->desc);
    }
    const tr_strided *a = &product->a_strided, *c = &product->c_strided;
    return a->count || c->count ? c->copy + (size_t)c->count * c->element
                                : scratch_bytes(product);
}

// ---- running

static dnnl_status_t run_way(tr_matmul *p, tr_primitive *w, const void *a,
                             const void *b, const void *bias, void *c,
                             void *workspace) {
    tr__tensor_point(p->a, tr__strided_dense(&p->a_strided, a, workspace));
    tr__tensor_point(p->b, b);
    tr__tensor_point(p->c, tr__strided_dense(&p->c_strided, c, workspace));
    dnnl_exec_arg_t args[5] = {
        {DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->b}, {DNNL_ARG_DST, p->c}};
    int count = 3;
    if (p->desc.bias) {
        tr__tensor_point(p->bias, bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, p->bias};
    }
    tr__strided_close(&p->a_strided, a, workspace);
    tr__strided_close(&p->c_strided, c, workspace);
    dnnl_status_t status = tr__primitive_run(w, p->stream, args, count, workspace);
    tr__strided_open(&p->c_strided, c, workspace);
    return status;
}

static tr_status run_dnnl(tr_matmul *product, bool accumulate, const void *a,
                          const void *b, const void *bias, void *c, void *workspace) {
    tr_held before;
    tr__team_hold(product->desc.threads, &before);
    dnnl_status_t status =
        run_way(product, &product->ways[accumulate], a, b, bias, c, workspace);
    tr__team_release(product->desc.threads, &before);
    return tr__dnnl_ran(status);
}

tr_status tr__matmul_run(tr_matmul *product, bool accumulate, const void *a,
                         const void *b, const void *bias, void *c, void *workspace) {
    if (!product->gemm) {
        return run_dnnl(product, accumulate, a, b, bias, c, workspace);
    }
    product->gemm->run(&(tr_gemm_run){.desc = &product->desc,
                                      .accumulate = accumulate,
                                      .a = a,
                                      .b = b,
                                      .bias = bias,
                                      .c = c,
                                      .workspace = workspace});
    return TR_OK;
}
