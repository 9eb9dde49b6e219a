// One kernel, launched where its operands lie.
#include "exec/walk.h"
#include "exec/walk/own_launch.h"

void tr__launch_kernel(const tr_executor *ex, tr_device_queue *queue,
                       const tr_device_work *work) {
    if (queue) {
        ex->backend->queues->launch(queue, work);
    } else if (!tr__launch_own_apart(ex->backend, work)) {
        tr__backend_launch(ex->backend, work->kernel, work->desc, work->state,
                           work->launch);
    }
}
