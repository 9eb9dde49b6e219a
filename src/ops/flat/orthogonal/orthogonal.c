#include "ops/flat/orthogonal/orthogonal.h"

extern const tr_kernel tr__direction_kernel, tr__orthogonal_kernel;

const tr_op tr__op_direction = {
    .name = "direction",
    .attr_bytes = sizeof(tr_update_attr),
    .reference = &tr__direction_kernel,
};

const tr_op tr__op_orthogonal = {
    .name = "orthogonal",
    .attr_bytes = sizeof(tr_orthogonal_attr),
    .reference = &tr__orthogonal_kernel,
};
