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

uint32_t tr__magnitude_plain(const tr_op_desc *desc) {
    int at = desc->in_count % 2 == 0 ? 2 : 1; // where pairs of m and n begin
    uint32_t plain = 0;
    for (int n = at + 1; n < desc->in_count; n += 2) {
        plain |= 1u << n;
    }
    return plain;
}
