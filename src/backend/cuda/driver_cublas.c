// Products by cuBLASLt. The library takes a quarter of a second to open, and a plan
// needs none, so it is opened with the device. Descriptions lie on the stack, and no
// workspace is given: a product allocates nothing.
#include "backend/cuda/driver_cublas.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <string.h>

static struct {
    cublasLtHandle_t handle;
    cublasStatus_t (*create)(cublasLtHandle_t *);
    cublasStatus_t (*matmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *,
                             const void *, cublasLtMatrixLayout_t, const void *,
                             cublasLtMatrixLayout_t, const void *, const void *,
                             cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
                             const cublasLtMatmulAlgo_t *, void *, size_t,
                             cudaStream_t);
    cublasStatus_t (*describe)(cublasLtMatmulDesc_t, size_t, cublasComputeType_t,
                               cudaDataType_t);
    cublasStatus_t (*set)(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                          const void *, size_t);
    cublasStatus_t (*layout)(cublasLtMatrixLayout_t, size_t, cudaDataType, uint64_t,
                             uint64_t, int64_t);
} lt;

static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

int tr__cublas_open(void) {
    void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    library = library ? library : dlopen("libcublasLt.so", RTLD_NOW | RTLD_LOCAL);
    bool there = library && find(library, "cublasLtCreate", &lt.create) &&
                 find(library, "cublasLtMatmul", &lt.matmul) &&
                 find(library, "cublasLtMatmulDescInit_internal", &lt.describe) &&
                 find(library, "cublasLtMatmulDescSetAttribute", &lt.set) &&
                 find(library, "cublasLtMatrixLayoutInit_internal", &lt.layout);
    if (!there) {
        return TR_CUBLAS_MISSING;
    }
    cublasStatus_t status = lt.create(&lt.handle);
    return status == CUBLAS_STATUS_SUCCESS ? 0 : TR_CUBLAS_ERROR + (int)status;
}

static cudaDataType type_of(tr_dtype real) {
    return real == TR_BF16 ? CUDA_R_16BF : real == TR_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static cudaDataType type_of_fp8(tr_fp8 format) {
    return format == TR_FP8_E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

// A matrix of so many rows, by rows: for cuBLASLt, which goes by columns, its
// transpose.
static bool lay_out(cublasLtMatrixLayoutOpaque_t *layout, cudaDataType type,
                    int64_t rows, int64_t columns, int64_t row) {
    return lt.layout(layout, sizeof *layout, type, (uint64_t)columns, (uint64_t)rows,
                     row) == CUBLAS_STATUS_SUCCESS;
}

static bool set(cublasLtMatmulDescOpaque_t *desc, cublasLtMatmulDescAttributes_t what,
                const void *value, size_t bytes) {
    return lt.set(desc, what, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

// Its first factor is b.
static bool describe(cublasLtMatmulDescOpaque_t *desc, const tr_cuda_product *p) {
    cublasOperation_t first = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool good = lt.describe(desc, sizeof *desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
                    CUBLAS_STATUS_SUCCESS &&
                set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) &&
                set(desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    return good && (!p->fp8 || (set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                    &p->b_scale, sizeof p->b_scale) &&
                                set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                    &p->a_scale, sizeof p->a_scale)));
}

// c' = op(b)' op(a)'
int tr__cublas_multiply(const tr_cuda_product *p, void *stream) {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    const float one = 1;
    cudaDataType a_type = p->fp8 ? type_of_fp8(p->a_format) : type_of(p->real);
    cudaDataType b_type = p->fp8 ? type_of_fp8(p->b_format) : type_of(p->real);
    bool good = describe(&desc, p) &&
                lay_out(&a, a_type, p->a_transposed ? p->k : p->m,
                        p->a_transposed ? p->m : p->k, p->a_row) &&
                lay_out(&b, b_type, p->b_transposed ? p->n : p->k,
                        p->b_transposed ? p->k : p->n, p->b_row) &&
                lay_out(&c, type_of(p->c_real), p->m, p->n, p->c_row);
    cublasStatus_t status =
        good ? lt.matmul(lt.handle, &desc, &one, p->b, &b, p->a, &a, &p->beta, p->c, &c,
                         p->c, &c, NULL, NULL, 0, stream)
             : CUBLAS_STATUS_NOT_INITIALIZED;
    return status == CUBLAS_STATUS_SUCCESS ? 0 : TR_CUBLAS_ERROR + (int)status;
}
