#include "ops/flat/copy/cuda_copy.h"
#include "ops/nn/rows/rows.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_rows[];

// Where element `element` of a tensor lies.
static char *at(const tr_op_desc *desc, const void *x, int64_t element) {
    return (char *)x + element * (int64_t)tr_dtype_bytes(desc->in[0].dtype);
}

// Integers are moved as f32 are, which is exact: nothing is added.
static void move(const tr_op_desc *desc, const tr_launch *launch, const void *x,
                 void *y, int64_t count) {
    bool integers = desc->in[0].dtype == TR_I32;
    tr_dtype real = integers ? TR_F32 : desc->in[0].dtype;
    tr__cuda_copy(launch, (tr_cuda_copy_args){.x = x,
                                              .y = y,
                                              .count = count,
                                              .real = (int32_t)real,
                                              .add = launch->accumulate & 1});
}

static void launch_take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->in[0]);
    move(desc, launch, at(desc, launch->in[0], rows.first), launch->out[0], rows.count);
}

static void launch_put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->out[0]);
    void *y = launch->out[0];
    if (!(launch->accumulate & 1)) {
        tr__cuda_clear(launch, y, tr_tensor_bytes(desc->out[0]));
    }
    move(desc, launch, launch->in[0], at(desc, y, rows.first), rows.count);
}

static bool take_supports(const tr_op_desc *desc) {
    bool integers = desc->in[0].dtype == TR_I32 && !(desc->accumulate & 1);
    return integers || tr__desc_same_real(desc, 0, 0);
}

static bool put_supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel take = {.name = "take_rows.cuda",
                               .supports = take_supports,
                               .cost = cost,
                               .launch = launch_take};
static const tr_kernel put = {.name = "put_rows.cuda",
                              .supports = put_supports,
                              .cost = cost,
                              .launch = launch_put};

const tr_cuda_kernels tr__cuda_kernels_rows[] = {
    {&tr__op_take_rows, &take},
    {&tr__op_put_rows, &put},
    {NULL, NULL},
};
