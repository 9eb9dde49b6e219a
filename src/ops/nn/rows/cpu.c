#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "backend/cpu/real.h"
#include "ops/nn/rows/rows.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__take_rows_kernel);
extern const tr_kernel TR_ISA_NAME(tr__put_rows_kernel);

static void clear(tr_real *y, int64_t count) {
    memset(y, 0, (size_t)count * sizeof *y);
}

static void launch_take(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->in[0]);
    tr__move((const tr_real *)launch->in[0] + rows.first, launch->out[0], rows.count,
             desc->target.workers, launch->accumulate & 1);
}

static void launch_put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_rows rows = tr__rows_of(desc, &desc->out[0]);
    tr_real *y = launch->out[0];
    bool add = launch->accumulate & 1;
    int64_t end = rows.first + rows.count;
    if (!add) {
        clear(y, rows.first);
        clear(y + end, rows.all - end);
    }
    tr__move(launch->in[0], y + rows.first, rows.count, desc->target.workers, add);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel TR_ISA_NAME(tr__take_rows_kernel) = {
    .name = "take_rows.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_take,
};

const tr_kernel TR_ISA_NAME(tr__put_rows_kernel) = {
    .name = "put_rows.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_put,
};
