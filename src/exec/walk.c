// The walk through a plan's sequence: one step after the other, each by its shape.
#include "exec/walk.h"

#include "backend/cpu/team.h"
#include "base/clock.h"

static int ring_of(tr_sequence_kind sequence) {
    return sequence == TR_SEQUENCE_TRAIN ? 0 : 1;
}

// ---- steps of the data stream
// --------------------------------------------------------

static tr_status run_feed(tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    tr_feed *feed = ex->feed[ring_of(work->sequence)];
    tr_feed_micro slot;
    if (step->kind == TR_STEP_unload) {
        tr__feed_release(feed);
        return TR_OK;
    }
    tr_status status = tr__feed_acquire(feed, &slot, work->err);
    if (status == TR_OK) {
        ex->micros[step->micro] =
            (tr_micro){slot.input, (uint64_t)slot.sample, slot.rows};
    }
    return status;
}

// ---- the walk
// ------------------------------------------------------------------------

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

// Is the step left out of this walk?
static bool is_left_out(const tr_work *work, const tr_plan_step *step, bool stopped) {
    if (step->guard == TR_GUARD_DEFERRED) {
        return !work->ex->late;
    }
    return stopped && step->guard != TR_GUARD_ALWAYS;
}

// A step that is left out waits nevertheless, because later steps count on its waits;
// and what is left out of a stream carries nothing there, because waits count steps.
static bool is_skipped(const tr_work *work, const tr_plan_step *step) {
    return step->stream == TR_STREAM_NVME ||
           (step->stream == TR_STREAM_HOST && work->ex->host);
}

static tr_status leave_out(tr_work *work, const tr_plan_step *step) {
    if (is_skipped(work, step)) {
        tr__stream_skip(work->ex, step->stream);
    }
    return TR_OK;
}

static tr_status run_step(tr_work *work, int32_t index, bool stopped) {
    const tr_plan *plan = work->ex->plan;
    const tr_plan_step *step = &plan->sequences[work->sequence].steps[index];
    bool left_out = is_left_out(work, step, stopped);
    tr_watch *watch = left_out && !is_skipped(work, step) ? NULL : watch_of(work);
    tr_status status = tr__run_wait(work, step);
    double begin = watch ? tr__seconds() : 0;
    tr_tickets before = tickets(work);
    if (status == TR_OK) {
        status = left_out ? leave_out(work, step)
                          : run_shape[tr__step_shape(step)](work, step);
    }
    if (status == TR_OK && watch) {
        tr_tickets after = tickets(work);
        tr__watch_step(watch, &plan->sequences[work->sequence], index, begin, &before,
                       &after);
    }
    return status;
}

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

// Once some of an update that was left to this walk is made, the rest must be, too: a
// walk that fails then computes nothing more, but goes on. So does one that lacks a
// sample, where others wait for it; else ranks end where one fails.
static bool must_go_on(const tr_executor *ex) {
    return ex->comm ? ex->unread : ex->late;
}

// Was it the reading of a sample that failed?
static void note_unread(tr_executor *ex, tr_sequence_kind sequence, size_t step) {
    if (sequence == TR_SEQUENCE_TRAIN &&
        ex->plan->sequences[sequence].steps[step].kind == TR_STEP_load) {
        ex->unread = true;
        tr__own_record(ex)[TR_RECORD_ASKED] = 2;
    }
}

// Steps [*first, *end) of the sequence are those of the walk.
static void find_part(const tr_sequence *sequence, tr_walk_kind which, size_t *first,
                      size_t *end) {
    size_t applied = tr__sequence_applied(sequence), at_once = sequence->count;
    while (at_once > 0 && sequence->steps[at_once - 1].guard == TR_GUARD_AT_ONCE) {
        at_once--;
    }
    *first = which == TR_WALK_WORK ? 0 : which == TR_WALK_SETTLE ? at_once : applied;
    *end = which == TR_WALK_WORK    ? applied
           : which == TR_WALK_LEAVE ? at_once
                                    : sequence->count;
}

// Is there a stream beside which the next step's work goes on, while it updates? Else
// it is as well done at once.
static bool gains_by_leaving(const tr_executor *ex) {
    return ex->host || ex->carrier[TR_STREAM_NVME];
}

static tr_status walk(tr_work *work, tr_walk_kind which, bool (*stop)(void *user),
                      void *user) {
    tr_executor *executor = work->ex;
    const tr_sequence *sequence = &executor->plan->sequences[work->sequence];
    bool updates = which != TR_WALK_WORK;
    size_t first, end;
    tr_status failed = TR_OK;
    bool stopped = false;
    work->begin = tr__seconds();
    executor->unread = false;
    executor->late = executor->late && !updates;
    find_part(sequence, which, &first, &end);
    number_tickets(work, first);
    begin_watch(work, first == 0);
    for (size_t i = first; i < end; i++) {
        if (!stopped && stop && stop(user)) {
            stopped = true;
            if (!executor->comm && !executor->late) {
                tr_status done = tr__streams_wait(work->ex, work->err);
                return done == TR_OK ? tr_fail(work->err, TR_INTERRUPTED, "interrupted")
                                     : done;
            }
            tr__own_record(executor)[TR_RECORD_ASKED] = 2;
        }
        tr_status status = run_step(work, (int32_t)i, stopped);
        if (status != TR_OK && failed == TR_OK) {
            note_unread(executor, work->sequence, i);
        }
        if (status != TR_OK && (failed != TR_OK || !must_go_on(executor))) {
            return failed != TR_OK ? failed : status;
        }
        failed = failed != TR_OK ? failed : status;
        stopped = stopped || failed != TR_OK;
    }
    tr_status status = tr__streams_wait(work->ex, work->err);
    if (status == TR_OK) {
        end_watch(work);
        executor->late = which == TR_WALK_LEAVE
                             ? end < sequence->count
                             : executor->late && work->sequence != TR_SEQUENCE_TRAIN;
    }
    if (failed != TR_OK || status != TR_OK) {
        return failed != TR_OK ? failed : status;
    }
    return stopped ? tr_fail(work->err, TR_INTERRUPTED, "interrupted") : TR_OK;
}

// Kernels that no plan has prepared (norms, updates) ask OpenMP how many threads there
// are: as many as the plan's.
tr_status tr__executor_run(tr_executor *executor, tr_sequence_kind sequence,
                           tr_walk_kind which, const tr_run_context *context,
                           bool (*stop)(void *user), void *user, tr_error *err) {
    tr_work work = {.ex = executor, .sequence = sequence, .run = *context, .err = err};
    work.run.fixed_scale = executor->fixed.scale;
    work.run.fixed_limit = executor->fixed.limit;
    work.run.update = &executor->order;
    if (which == TR_WALK_LEAVE && !gains_by_leaving(executor)) {
        which = TR_WALK_UPDATE;
    }
    int before = tr__team_begin(executor->plan->request.threads);
    tr_status status = walk(&work, which, stop, user);
    tr__team_end(before);
    return status;
}
