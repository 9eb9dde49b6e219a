// Numbers of one type become those of another, on the host.
#include "exec/store/pieces.h"
#include "ops/flat/cast/cast.h"

#include <string.h>

// Casts to and from 16 bits are launches as all others, by the kernels of units (not
// the plain ones, which need working memory for it).
void tr__convert(const tr_executor *ex, tr_dtype type, const void *from, int64_t count,
                 tr_dtype as, void *to) {
    tr_run_context run = {0};
    tr_shape shape = {.rank = 1, .dim = {count}};
    tr_cast_attr attr = {(int32_t)as};
    tr_op_desc desc = {.op = &tr__op_cast,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{type, shape}},
                       .out = {{as, shape}},
                       .target = ex->plan->host};
    tr_launch launch = {.in = {from}, .out = {to}, .run = &run};
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    memcpy(desc.attr, &attr, sizeof attr);
    tr__backend_launch(ex->backend, tr__kernel_find(&desc), &desc, NULL, &launch);
}
