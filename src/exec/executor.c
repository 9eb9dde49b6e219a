#include "exec/walk.h"

#include "backend/cpu/team.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "ops/gradient_squares/gradient_squares.h"
#include "plan/residency.h"

#include <math.h>
#include <string.h>

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

bool tr__executor_is_unread(const tr_executor *executor) {
    return executor->unread;
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

// ---- the record
// ----------------------------------------------------------------------

void tr__executor_fix(tr_executor *executor, tr_fixed fixed) {
    executor->fixed = fixed;
}

void tr__executor_ask(tr_executor *executor, bool save) {
    executor->asks_save = save;
}

static const double *record_of(const tr_executor *ex, int64_t rank) {
    const double *records = tr__memory(ex, ex->plan->record.buffer);
    return records + rank * ex->plan->record.doubles;
}

// By micro-batch: ranks take runs of them.
static void add_sums(const tr_executor *ex, tr_verdict *v) {
    for (int64_t r = 0; r < ex->plan->request.ranks; r++) {
        const double *sums = record_of(ex, r) + ex->plan->record.sums;
        for (int64_t j = 0; j < ex->plan->request.accumulation_steps; j++) {
            for (int i = 0; i < TR_SUMS; i++) {
                v->sums[i] += sums[j * TR_SUMS + i];
            }
        }
    }
}

// By flat buffer, then by block, which is by rank: parts follow each other.
static void add_squares(const tr_executor *ex, tr_verdict *v) {
    const tr_plan *plan = ex->plan;
    double sum = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        int64_t at = plan->record.partials + flat->squares;
        double before = sum;
        for (int64_t r = 0; r < plan->request.ranks; r++) {
            int64_t first = 0, part = 0;
            tr__comm_part(flat->count, flat->shard, (int)r, &first, &part);
            sum = tr__squares_sum(sum, record_of(ex, r) + at,
                                  tr__ceil_div(part, TR_NORM_BLOCK));
        }
        tr_measured *measured = flat->tied ? &v->tied : &v->untied;
        measured->squares += flat->gauged ? sum - before : 0;
    }
    v->norm_squares = sum;
}

// Of each rank's first `micros` micro-batches, by their own count of targets; ranks
// without any have no say.
static void compare_firsts(const tr_executor *ex, tr_record_flag squares,
                           int64_t micros, tr_measured *out) {
    for (int64_t r = 0; r < ex->plan->request.ranks; r++) {
        const double *record = record_of(ex, r);
        const double *sums = record + ex->plan->record.sums;
        double count = 0;
        for (int64_t j = 0; j < micros; j++) {
            count += sums[j * TR_SUMS + TR_SUM_COUNT];
        }
        if (count > 0) {
            out->firsts++;
            out->first_squares += record[squares] / (count * count);
            out->first_inverse += 1 / count;
        }
    }
    if (out->firsts > 0) {
        out->first_squares /= (double)out->firsts;
        out->first_inverse /= (double)out->firsts;
    }
}

static void compare_parts(const tr_executor *ex, tr_verdict *v) {
    const tr_plan_request *r = &ex->plan->request;
    if (r->measure == TR_MEASURE_NEVER) {
        return;
    }
    compare_firsts(ex, TR_RECORD_SQUARES, 1, &v->untied);
    if (ex->plan->gauges_tied) {
        int64_t wave = tr__min_i64(r->wave, r->accumulation_steps);
        compare_firsts(ex, TR_RECORD_TIED_SQUARES, wave, &v->tied);
    }
}

static void compare_flags(const tr_executor *ex, tr_verdict *v) {
    int64_t ranks = ex->plan->request.ranks;
    for (int64_t r = 0; r < ranks; r++) {
        double bad = record_of(ex, r)[TR_RECORD_FIRST_BAD];
        bool first = bad > 0 && (v->first_bad == 0 || bad < v->first_bad);
        v->first_bad = first ? bad : v->first_bad;
    }
    for (int i = 0; i < TR_RECORD_FLAGS; i++) {
        v->least[i] = v->most[i] = record_of(ex, 0)[i];
        for (int64_t r = 0; r < ranks; r++) {
            double value = record_of(ex, r)[i];
            v->least[i] = fmin(v->least[i], value);
            v->most[i] = fmax(v->most[i], value);
            v->mean[i] += value / (double)ranks;
        }
    }
}

void tr__executor_verdict(const tr_executor *executor, tr_verdict *verdict) {
    memset(verdict, 0, sizeof *verdict);
    add_sums(executor, verdict);
    add_squares(executor, verdict);
    compare_flags(executor, verdict);
    compare_parts(executor, verdict);
    verdict->save_asked = verdict->most[TR_RECORD_ASKED] > 0;
    verdict->stopped = verdict->most[TR_RECORD_ASKED] > 1;
    verdict->too_large = verdict->most[TR_RECORD_TOO_LARGE] > 0;
    verdict->not_finite = verdict->most[TR_RECORD_NOT_FINITE] > 0;
}

// ---- set-up
// --------------------------------------------------------------------------

// The span of host memory that the file is read into and written from: pinned, so that
// the kernel need not look its pages up for every transfer.
static void pin_staging(tr_executor *ex) {
    int64_t first = INT64_MAX, end = 0;
    for (size_t i = 0; i < ex->plan->buffer_count; i++) {
        const tr_buffer *b = &ex->plan->buffers[i];
        if (b->space == TR_SPACE_HOST && b->category == TR_LEDGER_staging) {
            first = tr__min_i64(first, b->offset);
            end = tr__max_i64(end, b->offset + b->bytes);
        }
    }
    if (ex->carrier[TR_STREAM_NVME] && first < end) { // refused: it works without
        tr__carrier_pin(ex->carrier[TR_STREAM_NVME], ex->base[TR_SPACE_HOST] + first,
                        end - first);
    }
}

static tr_status start_carriers(tr_executor *ex, const char *nvme_folder,
                                tr_error *err) {
    const tr_plan_request *r = &ex->plan->request;
    tr_carrier_options copies = {.folder = ""}, file = {.folder = nvme_folder};
    bool away = r->optimizer_home != TR_SPACE_DEVICE ||
                r->param_home != TR_SPACE_DEVICE || r->boundary_home != TR_SPACE_DEVICE;
    tr_status status = TR_OK;
    if (away && !r->inference) {
        status = tr__carrier_create(&copies, &ex->carrier[TR_STREAM_COPY], err);
    }
    if (status != TR_OK || !tr__plan_uses_nvme(ex->plan)) {
        return status;
    }
    if (!nvme_folder || nvme_folder[0] == '\0') {
        return tr_fail(err, TR_USAGE,
                       "the plan keeps something on NVMe: set "
                       "memory.nvme.path to a folder there");
    }
    file.file_bytes = ex->plan->arena_bytes[TR_SPACE_NVME];
    status = tr__carrier_create(&file, &ex->carrier[TR_STREAM_NVME], err);
    if (status == TR_OK) {
        pin_staging(ex);
    }
    return status;
}

// Every buffer is viewed once, which raises an arena's high-water mark to what the plan
// uses. TR_INTERNAL: a buffer is not in its arena.
static tr_status view_all(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                          tr_error *err) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        tr_arena *arena = arenas[buffer->space];
        if (buffer->space != TR_SPACE_NVME &&
            !tr__arena_view(arena, (size_t)buffer->offset, (size_t)buffer->bytes)) {
            return tr_fail(err, TR_INTERNAL,
                           "the plan places %lld bytes at %lld, outside of the %s "
                           "arena of %zu bytes",
                           (long long)buffer->bytes, (long long)buffer->offset,
                           tr_space_name(buffer->space), tr__arena_bytes(arena));
        }
    }
    return TR_OK;
}

// All that follows from the plan, for whose micro-batches there is room.
static void bind_plan(tr_executor *ex, const tr_plan *plan,
                      tr_arena *const arenas[TR_SPACES]) {
    ex->plan = plan;
    for (int space = 0; space < TR_SPACES; space++) {
        ex->base[space] = arenas[space] ? tr__arena_view(arenas[space], 0, 0) : NULL;
    }
    ex->micros[0].data = tr__memory(ex, plan->data_ring[1]); // where inference is asked
    ex->micros[0].rows = plan->request.micro_batch;
    if (ex->comm) {
        tr__comm_staging(ex->comm, tr__memory(ex, plan->staging));
    }
}

static tr_status make_room(tr_executor *ex, const tr_plan *plan, tr_error *err) {
    int64_t count = plan->request.accumulation_steps;
    if (count <= ex->micro_room) {
        return TR_OK;
    }
    tr_micro *micros = tr__calloc((size_t)count, sizeof *micros);
    if (!micros) {
        return tr_fail(err, TR_MEMORY, "no memory for the executor");
    }
    tr__free(ex->micros);
    ex->micros = micros;
    ex->micro_room = count;
    return TR_OK;
}

tr_status tr__executor_create(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                              tr_comm *comm, const char *nvme_folder, tr_executor **out,
                              tr_error *err) {
    tr_executor *ex = tr__calloc(1, sizeof *ex);
    if (!ex) {
        return tr_fail(err, TR_MEMORY, "no memory for the executor");
    }
    tr_status status = view_all(plan, arenas, err);
    status = status == TR_OK ? make_room(ex, plan, err) : status;
    if (status == TR_OK) {
        ex->comm = plan->request.ranks > 1 ? comm : NULL;
        bind_plan(ex, plan, arenas);
        status = start_carriers(ex, nvme_folder, err);
    }
    if (status != TR_OK) {
        tr__executor_destroy(ex);
        return status;
    }
    *out = ex;
    return TR_OK;
}

tr_status tr__executor_replan(tr_executor *executor, const tr_plan *plan,
                              tr_arena *const arenas[TR_SPACES], tr_error *err) {
    tr_status status = view_all(plan, arenas, err);
    status = status == TR_OK ? make_room(executor, plan, err) : status;
    if (status == TR_OK) {
        bind_plan(executor, plan, arenas);
        pin_staging(executor);
        executor->feed[0] = executor->feed[1] = NULL;
    }
    return status;
}

void tr__executor_destroy(tr_executor *executor) {
    if (executor) {
        tr__launcher_destroy(executor->host);
        for (int s = 0; s < TR_STREAMS; s++) {
            tr__carrier_destroy(executor->carrier[s]);
        }
        if (executor->comm) {
            tr__comm_staging(executor->comm, NULL);
        }
        tr__free(executor->micros);
        tr__free(executor);
    }
}

bool tr__executor_is_late(const tr_executor *executor) {
    return executor->late;
}

const char *tr__executor_nvme_method(const tr_executor *executor, bool *direct) {
    const tr_carrier *carrier = executor->carrier[TR_STREAM_NVME];
    *direct = false;
    return carrier ? tr__carrier_method(carrier, direct) : "";
}

void tr__executor_watch(tr_executor *executor, tr_watch *watch) {
    executor->watch = watch;
}

void tr__executor_feed(tr_executor *executor, int ring, tr_feed *feed) {
    executor->feed[ring] = feed;
}

void *tr__executor_ring(tr_executor *executor, int ring) {
    return tr__memory(executor, executor->plan->data_ring[ring]);
}

double *tr__executor_sums(tr_executor *executor) {
    return tr__memory(executor, executor->plan->sums);
}

void tr__executor_order(tr_executor *executor, const tr_update_order *order) {
    executor->order = *order;
}

void *tr__executor_state(tr_executor *executor, int state) {
    const tr_plan_state *info = &executor->plan->states[state];
    char *states = tr__memory(executor, executor->plan->units[info->unit].states);
    return states + info->offset;
}

const float *tr__executor_answer(tr_executor *executor) {
    return tr__memory(executor, executor->plan->answer);
}
