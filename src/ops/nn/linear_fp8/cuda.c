// Both factors become codes of 8 bits in the workspace, with rows along the sum of the
// product, as a GPU's products of 8 bits want them (sm_89 and sm_90 have no others).
#include "ops/nn/linear_fp8/cuda_search.h"

#include "backend/backend.h"
#include "backend/cuda/driver.h"
#include "base/checked.h"
#include "ops/nn/linear/cuda_linear.h"
#include "ops/nn/linear_fp8/factors.h"

extern const tr_cuda_kernels tr__cuda_kernels_linear_fp8[];
extern tr_cuda_function tr__cuda_function_fp8_largest, tr__cuda_function_fp8_round;

enum { WHOLE = 16 }; // rows of codes are multiples of that many bytes

// What lies before the codes of a factor. cuBLASLt takes no scale whose address is not
// a multiple of 16.
typedef struct scale {
    _Alignas(TR_FP8_ALIGNMENT) float back;
    _Alignas(TR_FP8_ALIGNMENT) uint32_t largest[TR_CUDA_FP8_PARTS];
} scale;
_Static_assert(TR_FP8_ALIGNMENT % TR_CUDA_SCALE_ALIGNMENT == 0, "of each scale");

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

// A factor as codes: along its rows, as it lies, and across them, transposed. Of one
// way or of both; bytes 0: not of that.
typedef struct codes {
    int64_t rows, width; // of the factor
    int64_t row, bytes;  // of the codes along its rows
    int64_t row_across, bytes_across;
    bool across; // the op's own product takes these
} codes;

// Is it a factor of which codes are left for another op, or found? Then there are both.
static bool is_shared(const tr_op_desc *desc, int factor) {
    return factor == 0 && (desc->leaves || desc->finds);
}

static codes codes_of(const tr_op_desc *desc, int factor) {
    tr_linear_dims d = dims_of(desc);
    codes c = {.rows = tr__shape_rows(desc->in[factor].shape),
               .width = tr__shape_width(desc->in[factor].shape)};
    bool in_last = d.layout == TR_WEIGHT_OUT_IN, both = is_shared(desc, factor);
    c.across =
        is_weight(desc) || (factor == 1 && (is_output(desc) ? !in_last : in_last));
    c.row = tr__round_up(c.width, WHOLE);
    c.row_across = tr__round_up(c.rows, WHOLE);
    c.bytes = both || !c.across ? c.rows * c.row : 0;
    c.bytes_across = both || c.across ? c.width * c.row_across : 0;
    return c;
}

// Bytes of a factor's codes, with its scale before them.
static size_t factor_bytes(const tr_op_desc *desc, int factor) {
    codes c = codes_of(desc, factor);
    return sizeof(scale) + (size_t)(tr__round_up(c.bytes, TR_FP8_ALIGNMENT) +
                                    tr__round_up(c.bytes_across, TR_FP8_ALIGNMENT));
}

// Those that the op itself makes into its workspace.
static bool is_made(const tr_op_desc *desc, int factor) {
    return factor < tr__fp8_factors_passing(desc) && !(factor == 0 && desc->finds);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    size_t bytes = 0;
    (void)state;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        bytes += is_made(desc, i) ? factor_bytes(desc, i) : 0;
    }
    return bytes;
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_factors_passing(desc) < TR_FP8_FACTORS
               ? factor_bytes(desc, TR_FP8_FACTORS - 1)
               : 0;
}

// What is shared lies first in the workspace of the op that leaves it.
static scale *scale_at(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    bool made = is_made(desc, factor);
    char *at = made          ? launch->workspace
               : factor == 0 ? (char *)(uintptr_t)launch->shared
                             : launch->packed;
    for (int i = 0; i < factor && made; i++) {
        at += is_made(desc, i) ? factor_bytes(desc, i) : 0;
    }
    return (scale *)(void *)at;
}

static uint8_t *codes_along(const tr_op_desc *desc, const tr_launch *launch,
                            int factor) {
    return (uint8_t *)(scale_at(desc, launch, factor) + 1);
}

static uint8_t *codes_across(const tr_op_desc *desc, const tr_launch *launch,
                             int factor) {
    codes c = codes_of(desc, factor);
    return codes_along(desc, launch, factor) + tr__round_up(c.bytes, TR_FP8_ALIGNMENT);
}

// Each reads 8 vectors a thread or more, if there are.
int64_t tr__cuda_fp8_parts(int64_t count) {
    const int64_t least = 8 * TR_CUDA_VECTOR * TR_CUDA_FP8_SEARCHING;
    return tr__min_i64(tr__ceil_div(count, least), TR_CUDA_FP8_PARTS);
}

void tr__cuda_fp8_search(const tr_launch *launch, const tr_cuda_fp8_largest_args *args,
                         int64_t blocks) {
    tr__cuda_launch(launch, &tr__cuda_function_fp8_largest,
                    tr__cuda_blocks(blocks, TR_CUDA_FP8_SEARCHING), args, sizeof *args);
}

static int64_t parts_of(const tr_op_desc *desc, int factor) {
    return tr__cuda_fp8_parts(tr__fp8_factor_count(desc, factor));
}

static void find_largest(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    const tr_cuda_fp8_largest_args args = {
        .x = launch->in[factor],
        .count = tr__fp8_factor_there(desc, factor, launch),
        .parts = scale_at(desc, launch, factor)->largest,
        .real = (int32_t)desc->in[factor].dtype};
    tr__cuda_fp8_search(launch, &args, parts_of(desc, factor));
}

// The values of which the largest is the factor's: what blocks have found, or what
// ranks have told.
typedef struct largest_values {
    const uint32_t *parts;
    int32_t count, step;
} largest_values;

static largest_values largest_of(const tr_op_desc *desc, const tr_launch *launch,
                                 int factor) {
    int i = tr__fp8_factor_tells(desc->op, factor);
    if (!tr__fp8_factor_is_told(desc, factor)) {
        return (largest_values){scale_at(desc, launch, factor)->largest,
                                (int32_t)parts_of(desc, factor), 1};
    }
    const uint32_t *told = launch->in[i];
    return (largest_values){told + tr__fp8_attr(desc).column[factor],
                            (int32_t)desc->in[i].shape.dim[0],
                            (int32_t)desc->in[i].shape.dim[1]};
}

static void round_factor(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    scale *s = scale_at(desc, launch, factor);
    codes c = codes_of(desc, factor);
    largest_values found = largest_of(desc, launch, factor);
    tr_cuda_fp8_round_args args = {
        .x = launch->in[factor],
        .rows = c.rows,
        .width = c.width,
        .parts = found.parts,
        .part_count = found.count,
        .part_step = found.step,
        .to = c.bytes ? codes_along(desc, launch, factor) : NULL,
        .across = c.bytes_across ? codes_across(desc, launch, factor) : NULL,
        .to_row = c.row,
        .across_row = c.row_across,
        .back = &s->back,
        .real = (int32_t)desc->in[factor].dtype,
        .format = (int32_t)tr__fp8_factor_format(desc, factor)};
    int64_t rows = args.across ? c.row_across : c.rows;
    int64_t columns = args.to ? c.row : c.width;
    tr_cuda_grid grid = {
        .blocks = {tr__ceil_div(columns, TR_CUDA_FP8_COLUMNS),
                   tr__ceil_div(rows, TR_CUDA_FP8_ROWS), 1},
        .threads = {TR_CUDA_THREADS, 1, 1},
    };
    tr__cuda_launch(launch, &tr__cuda_function_fp8_round, grid, &args, sizeof args);
}

// A factor as its product takes it: rows along the sum, and how many.
typedef struct operand {
    const uint8_t *codes;
    int64_t rows, row;
} operand;

static operand operand_of(const tr_op_desc *desc, const tr_launch *launch, int factor) {
    codes c = codes_of(desc, factor);
    return c.across
               ? (operand){codes_across(desc, launch, factor), c.width, c.row_across}
               : (operand){codes_along(desc, launch, factor), c.rows, c.row};
}

// Of the weight's gradient as it is laid out, whose rows are x's columns or dy's.
static void multiply(const tr_op_desc *desc, const tr_launch *launch) {
    tr_linear_dims d = dims_of(desc);
    bool swapped = is_weight(desc) && d.layout == TR_WEIGHT_IN_OUT;
    int a = swapped ? 1 : 0, b = 1 - a;
    operand first = operand_of(desc, launch, a), second = operand_of(desc, launch, b);
    int64_t n = second.rows;
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    tr__cuda_multiply_biased(
        launch,
        &(tr_cuda_product){.m = first.rows,
                           .n = n,
                           .k = first.row,
                           .a = first.codes,
                           .b = second.codes,
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
                           .b_scale = &scale_at(desc, launch, b)->back,
                           .fast = is_output(desc) && desc->fp8_fast},
        is_output(desc) && relu);
}

static void launch_product(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    (void)state;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        bool found = i == 0 && desc->finds;
        bool kept = i >= tr__fp8_factors_passing(desc) && launch->is_packed;
        if (!found && !kept && !tr__fp8_factor_is_told(desc, i)) {
            find_largest(desc, launch, i);
        }
        if (!found && !kept) {
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

// Each of a block's threads looks at one of the values that are told.
static bool ranks_fit(const tr_op_desc *desc) {
    bool fit = true;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        fit = fit && (!tr__fp8_factor_is_told(desc, i) ||
                      desc->in[tr__fp8_factor_tells(desc->op, i)].shape.dim[0] <=
                          TR_CUDA_THREADS);
    }
    return fit;
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    bool relu = tr__linear_attr(desc).activation == TR_ACTIVATION_RELU;
    return is_whole(desc) && (real == TR_F32 || real == TR_BF16) && ranks_fit(desc) &&
           tr__desc_same_real(desc, tr__fp8_telling(desc), is_weight(desc)) &&
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

// Each factor is read twice, or once where its largest value is told, and its codes are
// written, before the product begins; of what is kept, only once, and of what another
// op has left, not at all: two launches, or one.
static void cost(const tr_op_desc *desc, tr_cost *out) {
    if (is_output(desc)) {
        tr__linear_output_cost(desc, out);
    } else if (is_weight(desc)) {
        tr__linear_weight_cost(desc, out);
    } else {
        tr__linear_input_cost(desc, out);
    }
    out->launches = 0;
    for (int i = desc->finds; i < TR_FP8_FACTORS; i++) {
        codes c = codes_of(desc, i);
        bool passes = i < tr__fp8_factors_passing(desc);
        int reads = tr__fp8_factor_is_told(desc, i) ? 1 : 2;
        *(passes ? &out->prepare : &out->pack) +=
            reads * (double)tr_tensor_bytes(desc->in[i]) +
            (double)(c.bytes + c.bytes_across);
        out->launches += passes ? reads : 0;
    }
}

// Codes of dy are the same for the gradients of x and of the weight.
static bool shares(const tr_op_desc *desc, const tr_op_desc *next) {
    return !is_output(desc) && !is_output(next) && is_weight(desc) != is_weight(next);
}

static const tr_kernel product = {.name = "linear_fp8.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .prepare = prepare,
                                  .workspace = workspace,
                                  .packed = packed,
                                  .launch = launch_product,
                                  .shares = shares};

const tr_cuda_kernels tr__cuda_kernels_linear_fp8[] = {
    {&tr__op_linear_fp8, &product},
    {&tr__op_linear_fp8_backward_input, &product},
    {&tr__op_linear_fp8_backward_weight, &product},
    {NULL, NULL},
};
