// What the caller of a walk in parts hands over while the walk stands before a step.
// On a discrete device it goes through a queue of its own, because the tickets of the
// walk's queues count the steps of the plan. What the walk has done by then, it has
// waited for.
#include "exec/walk.h"
#include "ops/flat/seed/seed.h"

#include <string.h>

tr_status tr__hand_begin(tr_executor *ex, tr_error *err) {
    const tr_plan *plan = ex->plan;
    return plan->hands_out && tr__hands_on_device(plan)
               ? ex->backend->queues->create(plan->request.threads, &ex->hand, err)
               : TR_OK;
}

void *tr__executor_landing(const tr_executor *executor, const tr_plan_step *step) {
    int landing = executor->plan->landing;
    return landing >= 0 ? tr__memory(executor, landing)
                        : tr__executor_operand(executor, step, 0);
}

void tr__executor_hand(const tr_executor *executor, const void *from, void *to,
                       int64_t bytes) {
    if (bytes > 0) {
        executor->backend->queues->copy(executor->hand, from, to, bytes);
    }
}

static tr_target target_of(const tr_executor *ex) {
    tr_target target = ex->hand ? ex->plan->target : ex->plan->host;
    target.level = target.level < 0 ? 0 : target.level;
    return target;
}

void tr__executor_seed(const tr_executor *executor, const tr_seeding *s) {
    tr_run_context run = {.loss_seed = s->seed};
    tr_seed_attr attr = {s->room, (int64_t)s->type};
    tr_op_desc desc = {.op = &tr__op_seed,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{s->given_type, TR_SHAPE1(s->given)}},
                       .out = {{s->type, TR_SHAPE1(s->room)}},
                       .target = target_of(executor)};
    tr_launch launch = {.in = {s->from}, .out = {s->to}, .run = &run};
    memcpy(desc.attr, &attr, sizeof attr);
    tr_device_work work = {.kernel = tr__kernel_find(&desc),
                           .desc = &desc,
                           .launch = &launch,
                           .subject = "the gradients of the outputs"};
    tr__launch_kernel(executor, executor->hand, &work);
}

tr_status tr__executor_handed(const tr_executor *executor, tr_error *err) {
    const tr_queue_table *queues = executor->backend->queues;
    tr_device_queue *queue = executor->hand;
    return queue ? queues->wait(queue, queues->mark(queue), err) : TR_OK;
}
