// A stand-in for cuBLASLt, on the host's memory: as strict as its documentation says
// the library is, and slow. Descriptions are opaque to who uses the library, so what is
// in them is the stand-in's own.
#include "cuda/libraries/cublas_lt.h"

#include "base/fp8.h"

#include <cublasLt.h>
#include <string.h>

enum { MADE = 0x4C54, WORKSPACE_ALIGNMENT = 256, FP8_ALIGNMENT = 16 };

typedef struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t leading; // elements from a column to the next
} layout;

typedef struct product {
    cublasComputeType_t compute;
    cudaDataType scale;
    cublasOperation_t op_a, op_b;
    const float *scale_a, *scale_b;
    cublasLtEpilogue_t epilogue;
    void *bias;        // or what a factor's sums go to
    int32_t bias_type; // -1: not said
    int8_t fast;       // sums of products of 8 bits
} product;

typedef struct preference {
    uint64_t workspace;
    uint32_t schemes, aligned[4];
} preference;

// What a choice counts on.
typedef struct algorithm {
    uint64_t made, workspace;
    uint32_t aligned[4];
    uint32_t bias_aligned; // as that was with which the choice was asked for
} algorithm;

static lt_seen seen;

const lt_seen *lt_look(void) {
    return &seen;
}

void lt_lack_sums(bool lacks) {
    seen.lacks_sums = lacks;
}

static layout *layout_of(cublasLtMatrixLayout_t l) {
    return (layout *)(void *)l;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = (cublasLtHandle_t)(void *)&seen;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE";
}

// ---- descriptions

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l, size_t size,
                                                 cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t leading) {
    if (size < sizeof(cublasLtMatrixLayoutOpaque_t) || rows == 0 || columns == 0 ||
        leading < (int64_t)rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *layout_of(l) = (layout){type, rows, columns, leading};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d, size_t size,
                                               cublasComputeType_t compute,
                                               cudaDataType scale) {
    if (size < sizeof(cublasLtMatmulDescOpaque_t)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *(product *)(void *)d = (product){.compute = compute,
                                      .scale = scale,
                                      .op_a = CUBLAS_OP_N,
                                      .op_b = CUBLAS_OP_N,
                                      .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                      .bias_type = -1};
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put(void *to, size_t room, const void *value, size_t bytes) {
    if (room != bytes) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define PUT(field) put(&(field), sizeof(field), value, bytes)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t bytes) {
    product *p = (product *)(void *)d;
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return PUT(p->op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return PUT(p->op_b);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return PUT(p->scale_a);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return PUT(p->scale_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return PUT(p->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return PUT(p->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return PUT(p->bias_type);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return PUT(p->fast);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p,
                                                     size_t size) {
    static const preference usual = {
        .schemes = CUBLASLT_REDUCTION_SCHEME_MASK,
        .aligned = {WORKSPACE_ALIGNMENT, WORKSPACE_ALIGNMENT, WORKSPACE_ALIGNMENT,
                    WORKSPACE_ALIGNMENT}};
    if (size < sizeof(cublasLtMatmulPreferenceOpaque_t)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *(preference *)(void *)p = usual;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t given,
                                     cublasLtMatmulPreferenceAttributes_t what,
                                     const void *value, size_t bytes) {
    preference *p = (preference *)(void *)given;
    switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return PUT(p->workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return PUT(p->schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return PUT(p->aligned[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

// ---- what there is

static int bytes_of(cudaDataType type) {
    return type == CUDA_R_32F                                 ? 4
           : type == CUDA_R_16F || type == CUDA_R_16BF        ? 2
           : type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1
                                                              : 0;
}

static bool is_fp8(cudaDataType type) {
    return bytes_of(type) == 1;
}

// Types that products in f32 have (the tables of cublasLtMatmul).
static bool types_fit(const layout *a, const layout *b, const layout *c) {
    bool wide = c->type == CUDA_R_32F;
    if (is_fp8(a->type) || is_fp8(b->type)) {
        return is_fp8(a->type) && is_fp8(b->type) && bytes_of(c->type) > 1 &&
               !(a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2);
    }
    return bytes_of(a->type) > 0 && a->type == b->type && (wide || c->type == a->type);
}

static bool is_aligned(const void *pointer, uint64_t to) {
    return (uintptr_t)pointer % to == 0;
}

static bool is_whole(const layout *l) {
    return l->leading * bytes_of(l->type) % FP8_ALIGNMENT == 0 &&
           l->rows * (uint64_t)bytes_of(l->type) % FP8_ALIGNMENT == 0;
}

// Of 8 bits there are "TN" products alone on sm_89 and sm_90. From 12.9 on the library
// has none whose scale is not at a multiple of 16 bytes (PyTorch, pull request 159957,
// has NVIDIA's word for scales of rows; an H200 with 13.1 took products beside scales
// at 256 bytes, and not beside ones at 4).
static bool fp8_fits(const product *p, const layout *a, const layout *b,
                     const layout *c, const uint32_t aligned[4]) {
    bool pointers =
        is_aligned(p->scale_a, FP8_ALIGNMENT) && is_aligned(p->scale_b, FP8_ALIGNMENT);
    for (int i = 0; i < 4; i++) {
        pointers = pointers && aligned[i] >= FP8_ALIGNMENT;
    }
    return p->op_a == CUBLAS_OP_T && p->op_b == CUBLAS_OP_N && pointers &&
           is_whole(a) && is_whole(b) && is_whole(c);
}

static uint64_t rows_of(const layout *l, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? l->rows : l->columns;
}

static uint64_t columns_of(const layout *l, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? l->columns : l->rows;
}

static bool sizes_fit(const product *p, const layout *a, const layout *b,
                      const layout *c) {
    return rows_of(a, p->op_a) == c->rows && columns_of(b, p->op_b) == c->columns &&
           columns_of(a, p->op_a) == rows_of(b, p->op_b);
}

static bool adds_bias(const product *p) {
    return p->epilogue == CUBLASLT_EPILOGUE_BIAS;
}

static bool sums_factor(const product *p) {
    return p->epilogue == CUBLASLT_EPILOGUE_BGRADA ||
           p->epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

// A bias, or a factor's sums, have the result's type; in products of 8 bits, that of
// bf16 where the result is f32.
static bool bias_fits(const product *p, const layout *a, const layout *c) {
    cudaDataType type =
        is_fp8(a->type) && c->type == CUDA_R_32F ? CUDA_R_16BF : c->type;
    return !(adds_bias(p) || sums_factor(p)) || p->bias_type < 0 ||
           p->bias_type == (int32_t)type;
}

static cublasStatus_t check(const product *p, const layout *a, const layout *b,
                            const layout *c) {
    bool in_f32 = p->compute == CUBLAS_COMPUTE_32F && p->scale == CUDA_R_32F;
    return !sizes_fit(p, a, b, c) || !bias_fits(p, a, c) ? CUBLAS_STATUS_INVALID_VALUE
           : !in_f32 || !types_fit(a, b, c) || (sums_factor(p) && seen.lacks_sums)
               ? CUBLAS_STATUS_NOT_SUPPORTED
               : CUBLAS_STATUS_SUCCESS;
}

// What an address is aligned to.
static uint32_t alignment(const void *address) {
    enum { MOST = 4096 };
    uintptr_t bits = (uintptr_t)address | MOST;
    return (uint32_t)(bits & -bits);
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t given, int asked,
                               cublasLtMatmulHeuristicResult_t results[], int *count) {
    const product *p = (const product *)(void *)desc;
    const preference *of = (const preference *)(void *)given;
    cublasStatus_t status = check(p, layout_of(a), layout_of(b), layout_of(c));
    *count = 0;
    seen.asked++;
    if (handle != (cublasLtHandle_t)(void *)&seen || asked < 1 ||
        memcmp(layout_of(c), layout_of(d), sizeof(layout)) != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    if (is_fp8(layout_of(a)->type) &&
        !fp8_fits(p, layout_of(a), layout_of(b), layout_of(c), of->aligned)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    algorithm best = {
        .made = MADE, .workspace = of->workspace, .bias_aligned = alignment(p->bias)};
    memcpy(best.aligned, of->aligned, sizeof best.aligned);
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &best, sizeof best);
    results->workspaceSize = of->workspace;
    seen.schemes = of->schemes;
    seen.fast = p->fast;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

// Numbers of its own: which attribute it is.
cublasStatus_t
cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                     cublasLtMatmulAlgoConfigAttributes_t what,
                                     void *value, size_t bytes, size_t *written) {
    bool half = what == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    uint32_t number = (uint32_t)what + 1;
    algorithm by;
    memcpy(&by, algo, sizeof by);
    if (by.made != MADE || bytes != (half ? sizeof(uint16_t) : sizeof(uint32_t))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(value, &number, bytes);
    *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- a product

static float get(const layout *l, const void *x, int64_t row, int64_t column) {
    int64_t i = column * l->leading + row;
    switch (l->type) {
    case CUDA_R_32F:
        return ((const float *)x)[i];
    case CUDA_R_16BF:
        return tr__bf16_to_f32(((const uint16_t *)x)[i]);
    case CUDA_R_16F:
        return tr__f16_to_f32(((const uint16_t *)x)[i]);
    default:
        return tr__fp8_to_f32(l->type == CUDA_R_8F_E4M3 ? TR_FP8_E4M3 : TR_FP8_E5M2,
                              ((const uint8_t *)x)[i]);
    }
}

static void set(const layout *l, void *x, int64_t row, int64_t column, float value) {
    int64_t i = column * l->leading + row;
    if (l->type == CUDA_R_32F) {
        ((float *)x)[i] = value;
    } else {
        ((uint16_t *)x)[i] =
            l->type == CUDA_R_16BF ? tr__bf16_of_f32(value) : tr__f16_of_f32(value);
    }
}

static float dot(const product *p, const layout *a, const void *a_data, const layout *b,
                 const void *b_data, int64_t row, int64_t column) {
    float sum = 0;
    for (int64_t k = 0; k < (int64_t)columns_of(a, p->op_a); k++) {
        sum +=
            (p->op_a == CUBLAS_OP_N ? get(a, a_data, row, k) : get(a, a_data, k, row)) *
            (p->op_b == CUBLAS_OP_N ? get(b, b_data, k, column)
                                    : get(b, b_data, column, k));
    }
    return sum * (p->scale_a ? *p->scale_a : 1) * (p->scale_b ? *p->scale_b : 1);
}

// Of rows of op(a), or of columns of op(b), over k.
static void put_sums(const product *p, const layout *a, const void *a_data,
                     const layout *b, const void *b_data, const layout *c) {
    bool first = p->epilogue == CUBLASLT_EPILOGUE_BGRADA;
    const layout *of = first ? a : b;
    const void *data = first ? a_data : b_data;
    bool by_rows = first ? p->op_a == CUBLAS_OP_N : p->op_b != CUBLAS_OP_N;
    for (int64_t i = 0; i < (int64_t)(first ? c->rows : c->columns); i++) {
        float sum = 0;
        for (int64_t k = 0; k < (int64_t)columns_of(a, p->op_a); k++) {
            sum += by_rows ? get(of, data, i, k) : get(of, data, k, i);
        }
        set(c, p->bias, i, 0, sum);
    }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    const product *p = (const product *)(void *)desc;
    const layout *la = layout_of(a_layout), *lb = layout_of(b_layout);
    const layout *lc = layout_of(c_layout);
    float times = *(const float *)alpha, keep = *(const float *)beta;
    algorithm by = {0};
    memcpy(&by, algo, sizeof by);
    if (handle != (cublasLtHandle_t)(void *)&seen || by.made != MADE || c != d ||
        c_layout != d_layout || by.workspace > workspace_bytes ||
        (by.workspace > 0 && !is_aligned(workspace, WORKSPACE_ALIGNMENT)) ||
        !is_aligned(a, by.aligned[0]) || !is_aligned(b, by.aligned[1]) ||
        !is_aligned(c, by.aligned[2]) || !is_aligned(d, by.aligned[3]) ||
        ((adds_bias(p) || sums_factor(p)) &&
         !(p->bias && is_aligned(p->bias, by.bias_aligned)))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (int64_t column = 0; column < (int64_t)lc->columns; column++) {
        for (int64_t row = 0; row < (int64_t)lc->rows; row++) {
            float sum = times * dot(p, la, a, lb, b, row, column);
            sum += keep != 0 ? keep * get(lc, c, row, column) : 0;
            sum += adds_bias(p) ? get(lc, p->bias, row, 0) : 0;
            set(lc, d, row, column, sum);
        }
    }
    if (sums_factor(p)) {
        put_sums(p, la, a, lb, b, lc);
    }
    seen.products++;
    seen.stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
