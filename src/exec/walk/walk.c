// The walk through a plan's sequence: one step after the other, each by its shape.
#include "exec/walk.h"

#include "base/clock.h"

static int ring_of(tr_sequence_kind sequence) {
    return sequence == TR_SEQUENCE_TRAIN ? 0 : 1;
}

static const tr_sequence *sequence_of(const tr_work *work) {
    return &work->ex->plan->sequences[work->sequence];
}

// ---- steps of the data stream

static tr_status run_feed(tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    tr_feed *feed = ex->feed[ring_of(work->sequence)];
    tr_feed_micro slot;
    if (work->calls.own_rows) { // which the caller has put there
        return TR_OK;
    }
    if (step->payload.gives_back) {
        tr__feed_release(feed);
        return TR_OK;
    }
    tr_status status = tr__feed_acquire(feed, &slot, work->err);
    if (status == TR_OK) {
        ex->micros[step->micro] =
            (tr_micro){slot.data, (uint64_t)slot.sample, slot.rows};
    }
    return status;
}

// ---- the walk

static tr_status (*const run_shape[TR_STEP_SHAPES])(tr_work *, const tr_plan_step *) = {
    [TR_STEP_IS_LAUNCH] = tr__run_launch,
    [TR_STEP_IS_COPY] = tr__run_copy,
    [TR_STEP_IS_EXCHANGE] = tr__run_exchange,
    [TR_STEP_IS_FILE] = tr__run_file,
    [TR_STEP_IS_FEED] = run_feed,
    [TR_STEP_IS_HOST] = tr__run_host,
};

// Who watches the walk, NULL: nobody.
static tr_watch *watch_of(const tr_work *work) {
    return work->sequence == TR_SEQUENCE_TRAIN ? work->ex->watch : NULL;
}

static tr_tickets tickets(const tr_work *work) {
    tr_tickets newest;
    for (int s = 0; s < TR_STREAMS; s++) {
        newest.of[s] = tr__stream_newest(work->ex, (tr_stream)s);
    }
    return newest;
}

static void begin_watch(const tr_work *work, bool first) {
    tr_executor *ex = work->ex;
    int64_t count;
    if (!watch_of(work)) {
        return;
    }
    tr__watch_begin(ex->watch, first);
    for (int s = 0; s < TR_STREAMS; s++) {
        tr_task_span *times = tr__watch_times(ex->watch, (tr_stream)s, &count);
        tr__stream_watch(ex, (tr_stream)s, times, count);
    }
}

static void end_watch(const tr_work *work) {
    tr_executor *ex = work->ex;
    if (!watch_of(work)) {
        return;
    }
    tr__watch_end(ex->watch);
    for (int s = 0; s < TR_STREAMS; s++) {
        tr__stream_watch(ex, (tr_stream)s, NULL, 0);
    }
}

// A step that is left out waits nevertheless, because later steps count on its waits;
// and what is left out of a stream carries nothing there, because waits count steps.
static bool is_skipped(const tr_work *work, const tr_plan_step *step) {
    return step->stream == TR_STREAM_NVME || step->shape == TR_STEP_IS_EXCHANGE ||
           work->ex->queue[step->stream] || work->ex->launcher[step->stream];
}

static tr_status leave_out(tr_work *work, const tr_plan_step *step) {
    if (is_skipped(work, step)) {
        tr__stream_skip(work->ex, step->stream);
    }
    return TR_OK;
}

// Its micro-batch is not there: no other rank does the step either.
static bool is_of_none(const tr_work *work, const tr_plan_step *step) {
    return step->of_micro_batch && work->calls.micros > 0 &&
           step->micro >= work->calls.micros;
}

// Nothing comes of it: its micro-batch has no rows.
static bool is_idle(const tr_work *work, int32_t index) {
    const tr_executor *ex = work->ex;
    const tr_plan_step *step = &sequence_of(work)->steps[index];
    return work->sequence == TR_SEQUENCE_TRAIN && ex->leave_out[index] &&
           ex->micros[step->micro].rows == 0;
}

static tr_status run_step(tr_work *work, int32_t index) {
    const tr_sequence *sequence = sequence_of(work);
    const tr_plan_step *step = &sequence->steps[index];
    bool let = tr__guard_lets(&work->ex->flags, step->guard);
    bool left_out = !let || is_of_none(work, step) || is_idle(work, index);
    tr_watch *watch = let || is_skipped(work, step) ? watch_of(work) : NULL;
    tr_status status = tr__run_wait(work, step);
    double begin = watch ? tr__seconds() : 0;
    tr_tickets before = tickets(work);
    if (status == TR_OK) {
        status = left_out ? leave_out(work, step) : run_shape[step->shape](work, step);
    }
    if (status == TR_OK && watch) {
        tr_tickets after = tickets(work);
        tr__watch_step(watch, sequence, index, begin, &before, &after);
    }
    return status;
}

// ---- from step to step

// Steps wait for so many of their sequence, and a walk may begin in its middle.
static void number_tickets(tr_work *work, size_t first) {
    const tr_executor *ex = work->ex;
    const tr_plan_step *steps = ex->plan->sequences[work->sequence].steps;
    for (int s = 0; s < TR_STREAMS; s++) {
        work->first[s] = tr__stream_newest(ex, (tr_stream)s);
    }
    work->waited = ex->comm ? tr__comm_totals(ex->comm).wait_seconds : 0;
    for (size_t i = 0; i < first; i++) {
        work->first[steps[i].stream]--;
    }
}

static bool is_asked(const tr_work *work) {
    const tr_walk_flags *flags = &work->ex->flags;
    return work->calls.stop && !flags->stopped && !flags->reported &&
           work->calls.stop(work->calls.user);
}

static tr_walk_fault fault_of(const tr_work *work, const tr_plan_step *step) {
    bool loads = step->shape == TR_STEP_IS_FEED && !step->payload.gives_back &&
                 work->sequence == TR_SEQUENCE_TRAIN;
    return loads ? TR_FAULT_UNREAD : TR_FAULT_OTHER;
}

// Nothing more is computed. false: the walk ends here.
static bool stop(tr_work *work, tr_walk_fault fault) {
    tr_walk_flags *flags = &work->ex->flags;
    bool goes_on = tr__walk_goes_on(flags, fault, work->ex->comm != NULL);
    flags->stopped = true;
    flags->unread = flags->unread || fault == TR_FAULT_UNREAD;
    return goes_on;
}

// The first failure counts. false: the walk ends here.
static bool take_step(tr_work *work, size_t index) {
    const tr_plan_step *step = &sequence_of(work)->steps[index];
    if (is_asked(work) && !stop(work, TR_FAULT_ASKED)) {
        return false;
    }
    tr_status status = run_step(work, (int32_t)index);
    if (status == TR_OK || work->failed != TR_OK) {
        return status == TR_OK;
    }
    work->failed = status;
    return stop(work, fault_of(work, step));
}

// In parts the walk stops before what the caller has a part in: the data of a
// micro-batch, its outputs, and what other ranks are told. Nobody stops a walk that is
// to end.
static bool is_pause(const tr_work *work, const tr_plan_step *step) {
    bool takes = step->shape == TR_STEP_IS_FEED && !step->payload.gives_back;
    bool host = step->shape == TR_STEP_IS_HOST && step->payload.call != TR_HOST_DECIDE;
    return work->calls.in_parts && !work->ex->flags.stopped &&
           work->next != work->resumed && (takes || host);
}

// What the step works on is there, for the caller to read and to write. An error of the
// wait comes again with the step.
static bool pauses(tr_work *work, const tr_plan_step *step) {
    tr_error *err = work->err, again = {0};
    if (is_pause(work, step)) {
        work->err = &again;
        work->paused = tr__run_wait(work, step) == TR_OK;
        work->err = err;
    }
    return work->paused;
}

static void begin_walk(tr_work *work) {
    if (!work->begun) {
        work->begun = true;
        work->begin = tr__seconds();
        number_tickets(work, work->next);
        begin_watch(work, work->next == 0);
    }
}

// What has been left to the next step is known when all is done.
static tr_status end_walk(tr_work *work) {
    tr_walk_flags *flags = &work->ex->flags;
    tr_status status = tr__streams_wait(work->ex, work->err);
    if (status == TR_OK) {
        end_watch(work);
        flags->deferred = work->sequence == TR_SEQUENCE_TRAIN
                              ? flags->decision == TR_DECIDE_DEFER &&
                                    work->next < sequence_of(work)->count
                              : flags->deferred;
    }
    if (work->failed != TR_OK || status != TR_OK) {
        return work->failed != TR_OK ? work->failed : status;
    }
    return flags->stopped ? tr_fail(work->err, TR_INTERRUPTED, "interrupted") : TR_OK;
}

// All of the sequence from a step on, as far as the flags let it, or to the next pause.
static tr_status walk(tr_work *work) {
    const tr_sequence *sequence = sequence_of(work);
    const tr_walk_flags *flags = &work->ex->flags;
    bool goes_on = true;
    begin_walk(work);
    while (work->next < sequence->count && goes_on &&
           !tr__walk_is_over(flags, sequence->steps[work->next].guard)) {
        if (pauses(work, &sequence->steps[work->next])) {
            return TR_OK;
        }
        goes_on = take_step(work, work->next++);
    }
    return !goes_on && work->failed != TR_OK ? work->failed : end_walk(work);
}

// Kernels that no plan has prepared (norms, updates) ask OpenMP how many threads there
// are: as many as the plan's.
static tr_status walk_as_planned(tr_work *work) {
    const tr_backend *backend = work->ex->backend;
    int before = backend->begin(work->ex->plan->target.workers);
    tr_status status = walk(work);
    backend->end(before);
    return status;
}

static tr_work work_of(tr_executor *ex, tr_sequence_kind sequence,
                       const tr_run_context *context, tr_error *err) {
    tr_work work = {.ex = ex,
                    .sequence = sequence,
                    .run = *context,
                    .resumed = SIZE_MAX,
                    .err = err};
    work.run.fixed_scale = ex->fixed.scale;
    work.run.fixed_limit = ex->fixed.limit;
    work.run.update = &ex->order;
    return work;
}

tr_status tr__executor_run(tr_executor *executor, tr_sequence_kind sequence,
                           const tr_run_context *context, const tr_walk_calls *calls,
                           tr_error *err) {
    tr_work *work = &executor->part;
    *work = work_of(executor, sequence, context, err);
    if (calls) {
        work->calls = *calls;
    }
    executor->flags = (tr_walk_flags){.deferred = executor->flags.deferred};
    return walk_as_planned(work);
}

// What could be left to the next step ends the sequence.
tr_status tr__executor_settle(tr_executor *executor, const tr_run_context *context,
                              tr_error *err) {
    tr_work work = work_of(executor, TR_SEQUENCE_TRAIN, context, err);
    const tr_sequence *sequence = sequence_of(&work);
    work.next = sequence->count;
    while (work.next > 0 && sequence->steps[work.next - 1].guard == TR_GUARD_AT_ONCE) {
        work.next--;
    }
    executor->flags = (tr_walk_flags){.decision = TR_DECIDE_APPLY};
    return walk_as_planned(&work);
}

// ---- in parts

const tr_plan_step *tr__executor_pause(const tr_executor *executor) {
    const tr_work *work = &executor->part;
    return work->paused ? &sequence_of(work)->steps[work->next] : NULL;
}

void *tr__executor_operand(const tr_executor *executor, const tr_plan_step *step,
                           size_t i) {
    return tr__operand_address(executor, tr__step_operand(executor->plan, step, i));
}

int64_t tr__executor_rows(const tr_executor *executor, const tr_plan_step *step) {
    return executor->micros[step->micro].rows;
}

void tr__executor_loaded(tr_executor *executor, const tr_plan_step *step,
                         uint64_t sample, int64_t rows) {
    executor->micros[step->micro] =
        (tr_micro){tr__executor_operand(executor, step, 0), sample, rows};
}

static tr_work *go_on(tr_executor *ex, tr_error *err) {
    tr_work *work = &ex->part;
    work->resumed = work->next;
    work->paused = false;
    work->err = err;
    return work;
}

tr_status tr__executor_resume(tr_executor *executor, tr_error *err) {
    return walk_as_planned(go_on(executor, err));
}

tr_status tr__executor_drop(tr_executor *executor, tr_error *err) {
    tr_work *work = go_on(executor, err);
    return stop(work, TR_FAULT_ASKED) ? walk_as_planned(work) : end_walk(work);
}
