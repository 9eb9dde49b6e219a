#include "ops/launch.h"

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "ops/guarded.h"

#include <setjmp.h>
#include <stdarg.h>

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

// The queue of a discrete device, until it fails.
static tr_device_queue *queue_now;

static tr_status put(const tr_queue_table *queues, const tr_device_work *work,
                     tr_error *err) {
    tr_status status = queue_now ? TR_OK : queues->create(1, &queue_now, err);
    if (status == TR_OK) {
        queues->launch(queue_now, work);
        status = queues->wait(queue_now, queues->mark(queue_now), err);
    }
    if (status != TR_OK) {
        queues->destroy(queue_now);
        queue_now = NULL;
    }
    return status;
}

void test_launch_prepared(const tr_kernel *kernel, const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    const tr_queue_table *queues = tr__backend(desc->target.backend)->queues;
    tr_device_work work = {kernel, desc, state, launch, "a test"};
    tr_error err = {0};
    if (kernel->bind && kernel->bind(desc, state, &err) != TR_OK) {
        fail_msg("%s: cannot be readied: %s", kernel->name, err.message);
    }
    if (!queues) {
        kernel->launch(desc, state, launch);
        return;
    }
    tr_status status = put(queues, &work, &err);
    if (launch->failed) {
        *launch->failed = status;
    } else if (status != TR_OK) {
        fail_msg("%s: %s", kernel->name, err.message);
    }
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
    test_memory workspace = test_memory_take(bytes);
    mine.workspace = workspace.data;
    test_launch_prepared(kernel, desc, state, &mine);
    assert_true(test_memory_intact(&workspace));
    test_memory_give(&workspace);
    if (kernel->release) {
        kernel->release(state);
    }
}

int test_open_backend(tr_backend_id id) {
    const tr_backend *backend = tr__backend(id);
    tr_error err = {0};
    test_memory_from(tr__backend_host_memory(backend));
    if (backend->open(0, &err) != TR_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    return 0;
}
