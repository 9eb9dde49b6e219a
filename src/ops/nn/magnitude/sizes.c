// What kernels ask.
#include "ops/nn/magnitude/magnitude.h"

#include "ops/operand.h"

#include <string.h>

tr_magnitude_sizes tr__magnitude_sizes(const tr_op_desc *desc) {
    tr_magnitude_sizes s = {.rows = tr__shape_rows(desc->in[0].shape),
                            .width = tr__shape_width(desc->in[0].shape)};
    memcpy(&s.attr, desc->attr, sizeof s.attr);
    return s;
}
