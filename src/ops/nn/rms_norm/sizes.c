#include "ops/nn/rms_norm/rms_norm.h"

#include "ops/operand.h"

#include <string.h>

tr_rms_norm_sizes tr__rms_norm_sizes(tr_shape x, const void *attr) {
    tr_rms_norm_attr a;
    memcpy(&a, attr, sizeof a);
    int64_t width = tr__shape_width(x);
    bool heads = a.depth > 0;
    return (tr_rms_norm_sizes){
        .rows = tr__shape_rows(x),
        .width = width,
        .depth = heads ? a.depth : width,
        .heads = heads ? a.queries + a.keys : 1,
        .queries = heads ? a.queries : 1,
        .weights = heads ? 2 * (int64_t)a.depth : width,
        .epsilon = a.epsilon,
    };
}
