// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/gradient_squares/gradient_squares.h"

extern const tr_kernel tr__gradient_squares_kernel;
extern const tr_kernel tr__sum_of_squares_kernel;

const tr_cpu_kernels tr__cpu_kernels_gradient_squares[] = {
    {.op = &tr__op_gradient_squares,
     .f32 = {&tr__gradient_squares_kernel},
     .half = {{0}, {&tr__gradient_squares_kernel}, {0}}},
    {.op = &tr__op_sum_of_squares, .f32 = {&tr__sum_of_squares_kernel}},
    {.op = NULL},
};
