// Both factors become codes of 8 bits in the workspace, with rows along the sum of the
// product, as a GPU's products of 8 bits want them (sm_89 and sm_90 have no others).
#include "ops/nn/linear_fp8/cuda.h"

#include "backend/backend.h"
#include "backend/cuda/driver.h"
#include "base/checked.h"
#include "ops/nn/linear/cuda_linear.h"
#include "ops/nn/linear_fp8/factors.h"

extern const tr_cuda_kernels tr__cuda_kernels_linear_fp8[];
extern tr_cuda_function tr__cuda_function_fp8_largest, tr__cuda_function_fp8_round;

enum {
    WHOLE = 16,           // rows of codes are multiples of that many bytes
    LARGEST_BLOCKS = 512, // of the search for the largest value
};

// What lies before the codes of a factor, TR_FP8_ALIGNMENT bytes.
typedef struct scale {
    uint32_t largest;
    float back;
} scale;

static bool is_output(const tr_op_desc *desc) {
    return desc->op == &tr__op_linear_fp8;
}

static bool is_weight(const tr_op_desc *desc) {
    return desc->op == &tr__op_linear_fp8_backward_weight;
}

static tr_linear_dims dims_of(const tr_op_desc *desc) {
    return is_output(desc)   ? tr__linear_output_dims(desc)
           : is_weight(desc) ? tr__linear_weight_dims(desc)
                             : tr__linear_input_dims(desc);
}

// A factor as codes: which side of it is the sum's, and how many bytes they take.
typedef struct codes {
    int64_t rows, width; // of the factor
    bool transposed;
    int64_t row, bytes; // of the codes
} codes;

static codes codes_of(const tr_op_desc *desc, int factor) {
    tr_linear_dims d = dims_of(desc);
    codes c = {.rows = tr__shape_rows(desc->in[factor].shape),
               .width = tr__shape_width(desc->in[factor].shape)};
    bool in_last = d.layout == TR_WEIGHT_OUT_IN; // of the weight
    c.transposed =
        is_weight(desc) || (factor == 1 && (is_output(desc) ? !in_last : in_last));
    c.row = tr__ceil_div(c.transposed ? c.rows : c.width, WHOLE) * WHOLE;
    c.bytes = (c.transposed ? c.width : c.rows) * c.row;
    return c;
}

// Bytes of a factor's codes, with its scale before them.
static size_t factor_bytes(const tr_op_desc *desc, int factor) {
    return (size_t)(TR_FP8_ALIGNMENT +
                    tr__round_up(codes_of(desc, factor).bytes, TR_FP8_ALIGNMENT));
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    size_t bytes = 0;
    (void)state;
    for (int i = 0; i < tr__fp8_factors_passing(desc); i++) {
        bytes += factor_bytes(desc, i);
    }
    return bytes;
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_factors_passing(desc) < TR_FP8_FACTORS
               ? factor_bytes(desc, TR_FP8_FACTORS - 1)
               : 0;
}

static scale *scale_at(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    char *at =
        factor < tr__fp8_factors_passing(desc) ? launch->workspace : launch->packed;
    for (int i = 0; i < factor && at != launch->packed; i++) {
        at += factor_bytes(desc, i);
    }
    return (scale *)(void *)at;
}

static uint8_t *codes_at(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    return (uint8_t *)scale_at(desc, launch, factor) + TR_FP8_ALIGNMENT;
}

static void find_largest(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    scale *s = scale_at(desc, launch, factor);
    tr_cuda_fp8_largest_args args = {.x = launch->in[factor],
                                     .count =
                                         tr__fp8_factor_there(desc, factor, launch),
                                     .largest = &s->largest,
                                     .real = (int32_t)desc->in[factor].dtype};
    int64_t blocks = tr__ceil_div(args.count, TR_CUDA_THREADS);
    tr__cuda_clear(launch, s, sizeof *s);
    tr__cuda_launch(
        launch, &tr__cuda_function_fp8_largest,
        tr__cuda_blocks(tr__min_i64(blocks, LARGEST_BLOCKS), TR_CUDA_THREADS), &args,
        sizeof args);
}

static void round_factor(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    scale *s = scale_at(desc, launch, factor);
    codes c = codes_of(desc, factor);
    tr_cuda_fp8_round_args args = {.x = launch->in[factor],
                                   .rows = c.rows,
                                   .width = c.width,
                                   .largest = &s->largest,
                                   .to = codes_at(desc, launch, factor),
                                   .to_row = c.row,
                                   .back = &s->back,
                                   .real = (int32_t)desc->in[factor].dtype,
                                   .format =
                                       (int32_t)tr__fp8_factor_format(desc, factor),
                                   .transposed = c.transposed};
    int64_t rows = c.transposed ? c.row : c.rows;
    int64_t columns = c.transposed ? c.width : c.row;
    tr_cuda_grid grid = {
        .blocks = {tr__ceil_div(columns, TR_CUDA_FP8_TILE),
                   tr__ceil_div(rows, TR_CUDA_FP8_TILE), 1},
        .threads = {TR_CUDA_LANES, TR_CUDA_COLUMN_THREADS, 1},
    };
    tr__cuda_launch(launch, &tr__cuda_function_fp8_round, grid, &args, sizeof args);
}

// Of the weight's gradient as it is laid out, whose rows are x's columns or dy's.
static void multiply(const tr_op_desc *desc, const tr_launch *launch) {
    tr_linear_dims d = dims_of(desc);
    bool swapped = is_weight(desc) && d.layout == TR_WEIGHT_IN_OUT;
    int a = swapped ? 1 : 0, b = 1 - a;
    codes first = codes_of(desc, a), second = codes_of(desc, b);
    int64_t n = second.bytes / second.row;
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    tr__cuda_multiply_biased(
        launch,
        &(tr_cuda_product){.m = first.bytes / first.row,
                           .n = n,
                           .k = first.row,
                           .a = codes_at(desc, launch, a),
                           .b = codes_at(desc, launch, b),
                           .c = launch->out[0],
                           .c_real = desc->out[0].dtype,
                           .a_row = first.row,
                           .b_row = second.row,
                           .c_row = n,
                           .b_transposed = true,
                           .beta = launch->accumulate & 1,
                           .bias = is_output(desc) ? launch->in[2] : NULL,
                           .fp8 = true,
                           .a_format = tr__fp8_factor_format(desc, a),
                           .b_format = tr__fp8_factor_format(desc, b),
                           .a_scale = &scale_at(desc, launch, a)->back,
                           .b_scale = &scale_at(desc, launch, b)->back},
        is_output(desc) && relu);
}

static void launch_product(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        if (i < tr__fp8_factors_passing(desc) || !launch->is_packed) {
            find_largest(desc, launch, i);
            round_factor(desc, launch, i);
        }
    }
    multiply(desc, launch);
}

// What is not a multiple of 16 has no place in cuBLASLt's products of 8 bits: of the
// sum there can be zeros, of rows and columns of the result there cannot.
static bool is_whole(const tr_op_desc *desc) {
    tr_linear_dims d = dims_of(desc);
    return d.in % WHOLE == 0 && d.out % WHOLE == 0;
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    return is_whole(desc) && (real == TR_F32 || real == TR_BF16) &&
           tr__desc_same_real(desc, 0, is_weight(desc)) &&
           !(is_output(desc) && relu && desc->accumulate & 1);
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    *state = NULL;
    return desc->target.level >= TR_CUDA_SM_89
               ? TR_OK
               : tr_fail(
                     err, TR_USAGE,
                     "products in fp8 need a GPU of sm_89 or later, and this one is "
                     "%s: leave fp8 out",
                     tr__target_name(&desc->target));
}

// Each factor is read twice, and its codes are written, before the product begins; of
// what is kept, only once. Its scale is cleared before: three launches.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    if (is_output(desc)) {
        tr__linear_output_cost(desc, out);
    } else if (is_weight(desc)) {
        tr__linear_weight_cost(desc, out);
    } else {
        tr__linear_input_cost(desc, out);
    }
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        *(i < tr__fp8_factors_passing(desc) ? &out->prepare : &out->pack) +=
            2 * (double)tr_tensor_bytes(desc->in[i]) +
            (double)tr__fp8_factor_count(desc, i);
    }
    out->launches = 3 * tr__fp8_factors_passing(desc);
}

static const tr_kernel product = {.name = "linear_fp8.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .prepare = prepare,
                                  .workspace = workspace,
                                  .packed = packed,
                                  .launch = launch_product};

const tr_cuda_kernels tr__cuda_kernels_linear_fp8[] = {
    {&tr__op_linear_fp8, &product},
    {&tr__op_linear_fp8_backward_input, &product},
    {&tr__op_linear_fp8_backward_weight, &product},
    {NULL, NULL},
};
