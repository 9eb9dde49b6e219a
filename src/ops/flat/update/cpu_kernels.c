// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/flat/update/update.h"

extern const tr_kernel tr__update_kernel;
extern const tr_kernel tr__direction_squares_kernel;

const tr_cpu_kernels tr__cpu_kernels_update[] = {
    {.op = &tr__op_update,
     .f32 = {&tr__update_kernel},
     .half = {{0}, {&tr__update_kernel}, {0}}},
    {.op = &tr__op_direction_squares,
     .f32 = {&tr__direction_squares_kernel},
     .half = {{0}, {&tr__direction_squares_kernel}, {0}}},
    {.op = NULL},
};
