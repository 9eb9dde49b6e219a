// The kernels of the CPU backend.
#include "backend/cpu/kernels.h"
#include "ops/nn/shortcut/shortcut.h"

extern const tr_kernel tr__shortcut_reference, tr__shortcut_backward_reference;

// Rows of floats are moved as they are: plain C is as fast as anything.
const tr_cpu_kernels tr__cpu_kernels_shortcut[] = {
    {.op = &tr__op_shortcut, .f32 = {&tr__shortcut_reference}},
    {.op = &tr__op_shortcut_backward, .f32 = {&tr__shortcut_backward_reference}},
    {.op = NULL},
};
