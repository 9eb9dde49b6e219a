// Products by cuBLASLt. The library takes a quarter of a second to open, and a plan
// needs none, so it is opened with the device. Descriptions lie on the stack, and the
// workspace is the queue's: a product allocates nothing.
//
// cuBLASLt is asked once how it would compute a product: left to choose by itself, it
// takes operands to be aligned to 256 bytes and uses no workspace. Parts of a sum may
// be added in f32 in the workspace, which has one order; not in C's own type.
#include "backend/cuda/driver_cublas.h"

#include "backend/cuda/symbol.h"
#include "base/hash.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
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
    cublasStatus_t (*prefer)(cublasLtMatmulPreference_t, size_t);
    cublasStatus_t (*set_preference)(cublasLtMatmulPreference_t,
                                     cublasLtMatmulPreferenceAttributes_t, const void *,
                                     size_t);
    cublasStatus_t (*choose)(cublasLtHandle_t, cublasLtMatmulDesc_t,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                             cublasLtMatmulPreference_t, int,
                             cublasLtMatmulHeuristicResult_t[], int *);
    const char *(*status_name)(cublasStatus_t);
    cublasStatus_t (*config)(const cublasLtMatmulAlgo_t *,
                             cublasLtMatmulAlgoConfigAttributes_t, void *, size_t,
                             size_t *);
} lt;

// CUDA's own folder is often not among those that are searched.
static void *open_library(void) {
    static const char *const names[] = {"libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "libcublasLt.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

int tr__cublas_open(void) {
    void *library = open_library();
    bool there =
        library && tr__cuda_symbol(library, "cublasLtCreate", &lt.create) &&
        tr__cuda_symbol(library, "cublasLtMatmul", &lt.matmul) &&
        tr__cuda_symbol(library, "cublasLtMatmulDescInit_internal", &lt.describe) &&
        tr__cuda_symbol(library, "cublasLtMatmulDescSetAttribute", &lt.set) &&
        tr__cuda_symbol(library, "cublasLtMatrixLayoutInit_internal", &lt.layout) &&
        tr__cuda_symbol(library, "cublasLtMatmulPreferenceInit_internal", &lt.prefer) &&
        tr__cuda_symbol(library, "cublasLtMatmulPreferenceSetAttribute",
                        &lt.set_preference) &&
        tr__cuda_symbol(library, "cublasLtMatmulAlgoGetHeuristic", &lt.choose) &&
        tr__cuda_symbol(library, "cublasLtMatmulAlgoConfigGetAttribute", &lt.config) &&
        tr__cuda_symbol(library, "cublasLtGetStatusName", &lt.status_name);
    if (!there) {
        return TR_CUBLAS_MISSING;
    }
    cublasStatus_t status = lt.create(&lt.handle);
    return status == CUBLAS_STATUS_SUCCESS ? 0 : TR_CUBLAS_ERROR + (int)status;
}

// The first product that the library has refused since somebody asked which: those that
// are put into a queue behind it may be refused as well.
static struct {
    cublasStatus_t status;
    bool told;
    char text[320];
} refused = {.told = true};

const char *tr__cublas_error_text(int error) {
    cublasStatus_t status = (cublasStatus_t)(error - TR_CUBLAS_ERROR);
    refused.told = true;
    return error == TR_CUBLAS_MISSING
               ? "cuBLASLt (libcublasLt.so.13, of CUDA's libraries) cannot be opened: "
                 "install it, or have LD_LIBRARY_PATH name its folder"
           : refused.status == status ? refused.text
                                      : lt.status_name(status);
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

// A bias is added to columns of c', before they are written; sums of a factor are
// written beside c'. cuBLASLt's first factor is b.
static cublasLtEpilogue_t epilogue_of(const tr_cuda_product *p) {
    return p->bias     ? CUBLASLT_EPILOGUE_BIAS
           : !p->sums  ? CUBLASLT_EPILOGUE_DEFAULT
           : p->sums_b ? CUBLASLT_EPILOGUE_BGRADA
                       : CUBLASLT_EPILOGUE_BGRADB;
}

// Both have one place in the description, and c's type.
static const void *beside(const tr_cuda_product *p) {
    return p->bias ? p->bias : p->sums;
}

static bool describe_beside(cublasLtMatmulDescOpaque_t *desc,
                            const tr_cuda_product *p) {
    cublasLtEpilogue_t epilogue = epilogue_of(p);
    const void *at = beside(p);
    int32_t type = (int32_t)type_of(p->c_real);
    return !at ||
           (set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
            set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at) &&
            set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
}

// Its first factor is b.
static bool describe(cublasLtMatmulDescOpaque_t *desc, const tr_cuda_product *p) {
    cublasOperation_t first = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool good = lt.describe(desc, sizeof *desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
                    CUBLAS_STATUS_SUCCESS &&
                set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) &&
                set(desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) &&
                describe_beside(desc, p);
    const int8_t fast = p->fast;
    return good && (!p->fp8 ||
                    (set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p->b_scale,
                         sizeof p->b_scale) &&
                     set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p->a_scale,
                         sizeof p->a_scale) &&
                     set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast)));
}

// All that cuBLASLt knows of a product. c' = op(b)' op(a)'
typedef struct described {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
} described;

static bool describe_all(described *of, const tr_cuda_product *p) {
    cudaDataType a_type = p->fp8 ? type_of_fp8(p->a_format) : type_of(p->real);
    cudaDataType b_type = p->fp8 ? type_of_fp8(p->b_format) : type_of(p->real);
    return describe(&of->desc, p) &&
           lay_out(&of->a, a_type, p->a_transposed ? p->k : p->m,
                   p->a_transposed ? p->m : p->k, p->a_row) &&
           lay_out(&of->b, b_type, p->b_transposed ? p->n : p->k,
                   p->b_transposed ? p->k : p->n, p->b_row) &&
           lay_out(&of->c, type_of(p->c_real), p->m, p->n, p->c_row);
}

// ---- how cuBLASLt would compute it

// What the choice depends on.
typedef struct key {
    int64_t m, n, k, a_row, b_row, c_row, scratch_bytes;
    int32_t real, c_real, a_format, b_format, fp8, a_transposed, b_transposed, adds;
    int32_t epilogue, fast;
    uint32_t a_aligned, b_aligned, c_aligned;
    uint32_t beside_aligned; // of a bias, or of sums; 0: there is none
} key;

typedef struct choice {
    key of;
    bool made;
    cublasStatus_t status;
    cublasLtMatmulAlgo_t algorithm;
} choice;

// Of pointers, what buffers of a plan have wherever they lie: with more, the place of a
// buffer would decide which algorithm computes it, and so its bits.
enum { CHOICES = 1024, NEAR = 32, ALIGNED_MOST = 64 };

// From where the hash of their keys says on, so near that few are compared. Only the
// thread that puts work into the compute queue asks.
static choice choices[CHOICES];
static const cublasLtMatmulAlgo_t *last; // that was used; NULL: none since it was said

static uint32_t alignment(const void *address) {
    uintptr_t bits = (uintptr_t)address | ALIGNED_MOST;
    return (uint32_t)(bits & -bits);
}

static key key_of(const tr_cuda_product *p) {
    return (key){.m = p->m,
                 .n = p->n,
                 .k = p->k,
                 .a_row = p->a_row,
                 .b_row = p->b_row,
                 .c_row = p->c_row,
                 .scratch_bytes = p->scratch_bytes,
                 .real = (int32_t)p->real,
                 .c_real = (int32_t)p->c_real,
                 .a_format = (int32_t)p->a_format,
                 .b_format = (int32_t)p->b_format,
                 .fp8 = p->fp8,
                 .a_transposed = p->a_transposed,
                 .b_transposed = p->b_transposed,
                 .adds = p->beta != 0,
                 .epilogue = (int32_t)epilogue_of(p),
                 .fast = p->fast,
                 .a_aligned = alignment(p->a),
                 .b_aligned = alignment(p->b),
                 .c_aligned = alignment(p->c),
                 .beside_aligned = beside(p) ? alignment(beside(p)) : 0};
}

static bool prefer(cublasLtMatmulPreferenceOpaque_t *preference, const key *of) {
    const uint64_t bytes = (uint64_t)of->scratch_bytes;
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t bytes;
    } set[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &of->b_aligned, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &of->a_aligned, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &of->c_aligned, sizeof(uint32_t)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &of->c_aligned, sizeof(uint32_t)},
    };
    bool good = lt.prefer(preference, sizeof *preference) == CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        good = good && lt.set_preference(preference, set[i].what, set[i].value,
                                         set[i].bytes) == CUBLAS_STATUS_SUCCESS;
    }
    return good;
}

// Of a bias, or of sums, it is told the alignment by an address, at which nobody looks.
static bool place_beside(cublasLtMatmulDescOpaque_t *desc, const key *of) {
    uintptr_t address = of->beside_aligned;
    return address == 0 ||
           set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof address);
}

static cublasStatus_t choose(const described *of, choice *to) {
    described asked = *of;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t best = {0};
    int count = 0;
    if (!prefer(&preference, &to->of) || !place_beside(&asked.desc, &to->of)) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasStatus_t status =
        lt.choose(lt.handle, &asked.desc, &asked.b, &asked.a, &asked.c, &asked.c,
                  &preference, 1, &best, &count);
    status = status == CUBLAS_STATUS_SUCCESS && count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED
                                                           : status;
    to->made = status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED;
    to->status = status;
    to->algorithm = best.algo;
    return status;
}

static bool is_of(const choice *c, const key *of) {
    return c->made && memcmp(&c->of, of, sizeof *of) == 0;
}

// The choice of a product, or a free place near; where there is none, another's, which
// will be asked for again.
static choice *find(const key *of) {
    uint64_t first = tr__hash(of, sizeof *of);
    for (uint64_t i = first; i < first + NEAR; i++) {
        choice *c = &choices[i % CHOICES];
        if (!c->made || is_of(c, of)) {
            return c;
        }
    }
    return &choices[first % CHOICES];
}

static cublasStatus_t choice_of(const tr_cuda_product *p, described *of,
                                const cublasLtMatmulAlgo_t **out) {
    key mine = key_of(p);
    choice *known = find(&mine);
    *out = &known->algorithm;
    if (is_of(known, &mine)) {
        return known->status;
    }
    known->of = mine;
    return choose(of, known);
}

// Of a result in f32, products of 8 bits have a bias in bf16, and ours is f32.
static bool has_bias_of_its_own(const tr_cuda_product *p) {
    return p->bias && p->fp8 && p->c_real == TR_F32;
}

void tr__cublas_say(char *dst, size_t size) {
    static const struct {
        const char *name;
        cublasLtMatmulAlgoConfigAttributes_t what;
        size_t bytes;
    } parts[] = {
        {"algorithm", CUBLASLT_ALGO_CONFIG_ID, sizeof(int32_t)},
        {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, sizeof(uint32_t)},
        {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, sizeof(uint32_t)},
        {"split", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, sizeof(int32_t)},
        {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, sizeof(uint16_t)},
    };
    size_t used = 0;
    dst[0] = '\0';
    for (size_t i = 0; last && i < sizeof parts / sizeof *parts && used < size; i++) {
        uint32_t value = 0; // smaller ones are its low bytes
        size_t written = 0;
        if (lt.config(last, parts[i].what, &value, parts[i].bytes, &written) ==
            CUBLAS_STATUS_SUCCESS) {
            used += (size_t)snprintf(dst + used, size - used, "%s%s %u",
                                     used ? ", " : "", parts[i].name, (unsigned)value);
        }
    }
    last = NULL;
}

static const char *name_of(const tr_cuda_product *p, tr_fp8 format) {
    return !p->fp8 ? tr_dtype_name(p->real) : format == TR_FP8_E4M3 ? "E4M3" : "E5M2";
}

static void note_refused(const tr_cuda_product *p, cublasStatus_t status,
                         const char *call) {
    cublasLtEpilogue_t epilogue = epilogue_of(p);
    if (!refused.told) {
        return;
    }
    refused.told = false;
    refused.status = status;
    snprintf(refused.text, sizeof refused.text,
             "%s by %s: a product of m %" PRId64 ", n %" PRId64 ", k %" PRId64
             ": a is %s%s in rows of %" PRId64 ", b is %s%s in rows of %" PRId64
             ", c is %s in rows of %" PRId64 "%s%s%s; with %" PRId64
             " bytes of scratch",
             lt.status_name(status), call, p->m, p->n, p->k, name_of(p, p->a_format),
             p->a_transposed ? ", transposed," : "", p->a_row, name_of(p, p->b_format),
             p->b_transposed ? ", transposed," : "", p->b_row, tr_dtype_name(p->c_real),
             p->c_row, p->beta != 0 ? ", added to" : "",
             epilogue == CUBLASLT_EPILOGUE_BIAS      ? ", with a bias"
             : epilogue == CUBLASLT_EPILOGUE_DEFAULT ? ""
                                                     : ", with sums of a factor",
             p->fast ? ", summed fast" : "", p->scratch_bytes);
}

int tr__cublas_multiply(const tr_cuda_product *p, void *stream) {
    described of;
    const cublasLtMatmulAlgo_t *algorithm = NULL;
    const char *call = "cublasLtMatmulAlgoGetHeuristic";
    const float one = 1;
    if (has_bias_of_its_own(p)) {
        return TR_CUDA_BARE;
    }
    cublasStatus_t status = describe_all(&of, p) ? choice_of(p, &of, &algorithm)
                                                 : CUBLAS_STATUS_NOT_INITIALIZED;
    if (status == CUBLAS_STATUS_SUCCESS) {
        call = "cublasLtMatmul";
        status = lt.matmul(lt.handle, &of.desc, &one, p->b, &of.b, p->a, &of.a,
                           &p->beta, p->c, &of.c, p->c, &of.c, algorithm, p->scratch,
                           (size_t)p->scratch_bytes, stream);
        last = algorithm;
    }
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && beside(p)) {
        return TR_CUDA_BARE;
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    note_refused(p, status, call);
    return TR_CUBLAS_ERROR + (int)status;
}
