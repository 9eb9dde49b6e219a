#include "ops/flat/update/update.h"

extern const tr_kernel tr__update_kernel, tr__direction_squares_kernel;

// The optimizer's own function is the one for the target.
const tr_op tr__op_update = {
    .name = "update",
    .attr_bytes = sizeof(tr_update_attr),
    .reference = &tr__update_kernel,
};

const tr_op tr__op_direction_squares = {
    .name = "direction_squares",
    .attr_bytes = sizeof(tr_update_attr),
    .reference = &tr__direction_squares_kernel,
};
