#include "ops/launch.h"

#include "backend/cpu/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const tr_kernel *test_kernel(const tr_op *op, int which) {
    if (which == 0) {
        return op->reference;
    }
    const tr_cpu_kernels *row = tr__cpu_kernels_of(op);
    for (int isa = 0; row && isa <= (int)tr__cpu_isa(); isa++) {
        if (row->f32[isa] && --which == 0) {
            return row->f32[isa];
        }
    }
    return NULL;
}

void test_launch(const tr_kernel *kernel, const tr_op_desc *desc,
                 const tr_launch *launch) {
    tr_run_context run = {.rows = INT64_MAX};
    void *state = NULL;
    assert_true(kernel->supports(desc));
    if (kernel->prepare) {
        assert_int_equal(kernel->prepare(desc, &state, NULL), TR_OK);
    }
    size_t bytes = kernel->workspace ? kernel->workspace(desc, state) : 0;
    tr_launch mine = *launch;
    mine.run = mine.run ? mine.run : &run;
    if (bytes > 0) {
        mine.workspace = aligned_alloc(64, (bytes + 63) / 64 * 64);
        assert_non_null(mine.workspace);
        memset(mine.workspace, 0xFF, bytes);
    }
    kernel->launch(desc, state, &mine);
    if (bytes > 0) {
        free(mine.workspace);
    }
    if (kernel->release) {
        kernel->release(state);
    }
}
