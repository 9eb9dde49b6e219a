// An executor: a plan bound to its arenas, its ranks, and the threads that move bytes.
#include "exec/executor.h"

#include "base/checked.h"
#include "base/memory.h"
#include "exec/walk.h"
#include "plan/flow/residency.h"
#include "plan/flow/without_rows.h"
#include "plan/units/offsets.h"

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
    if (ex->copy_engine[TR_STREAM_NVME] && first < end) { // refused: it works without
        tr__copy_engine_pin(ex->copy_engine[TR_STREAM_NVME],
                            ex->base[TR_SPACE_HOST] + first, end - first);
    }
}

static bool has_steps(const tr_plan *plan, tr_stream stream) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            if (sequence->steps[i].stream == stream) {
                return true;
            }
        }
    }
    return false;
}

static tr_status start_copy_engines(tr_executor *ex, const char *nvme_folder,
                                    tr_error *err) {
    const tr_plan_request *r = &ex->plan->request;
    tr_copy_engine_options copies = {.folder = ""}, file = {.folder = nvme_folder};
    tr_status status = TR_OK;
    if (!r->discrete && has_steps(ex->plan, TR_STREAM_COPY)) {
        status = tr__copy_engine_create(&copies, &ex->copy_engine[TR_STREAM_COPY], err);
    }
    if (status != TR_OK || !tr__plan_uses_nvme(ex->plan)) {
        return status;
    }
    if (!nvme_folder || nvme_folder[0] == '\0') {
        return tr_fail(
            err, TR_USAGE,
            "the plan keeps data on NVMe: set memory.nvme.path to a folder there");
    }
    file.file_bytes = ex->plan->arena_bytes[TR_SPACE_NVME];
    status = tr__copy_engine_create(&file, &ex->copy_engine[TR_STREAM_NVME], err);
    if (status == TR_OK) {
        pin_staging(ex);
    }
    return status;
}

// The backend's libraries work where the plan has room for it.
static void lend_scratch(const tr_executor *ex) {
    int scratch = ex->plan->scratch;
    if (scratch >= 0) {
        ex->backend->queues->lend(ex->queue[TR_STREAM_COMPUTE], tr__memory(ex, scratch),
                                  ex->plan->buffers[scratch].bytes);
    }
}

// A discrete device computes and copies beside the walk, and the host computes beside
// it.
static tr_status start_queues(tr_executor *ex, tr_error *err) {
    bool peers = ex->comm && ex->plan->request.peers;
    tr_status status = ex->backend->queues
                           ? TR_OK
                           : tr_fail(err, TR_INTERNAL, "the %s backend has no queues",
                                     ex->backend->name);
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        tr_queue_kind queue = tr__streams[s].queue;
        if (queue == TR_QUEUE_ALWAYS || (queue == TR_QUEUE_OF_PEERS && peers)) {
            status = ex->backend->queues->create(ex->plan->request.threads,
                                                 &ex->queue[s], err);
        }
    }
    if (status == TR_OK) {
        lend_scratch(ex);
        status = tr__hand_begin(ex, err);
    }
    if (status == TR_OK && ex->comm && !peers && tr__backend_is_apart(ex->backend)) {
        status = tr__exchange_ferry(ex, err);
    }
    return status == TR_OK ? tr__stream_launches(ex, TR_STREAM_HOST, err) : status;
}

// Every buffer that has bytes is viewed once, in the whole lines that the plan gives
// it, which raises an arena's high-water mark to what the plan uses. TR_INTERNAL: one
// is not in its arena.
static tr_status view_all(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                          tr_error *err) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        tr_arena *arena = arenas[buffer->space];
        size_t room = (size_t)tr__round_up(buffer->bytes, TR_ALIGNMENT);
        if (buffer->space != TR_SPACE_NVME && room > 0 &&
            !tr__arena_view(arena, (size_t)buffer->offset, room)) {
            return tr_fail(err, TR_INTERNAL,
                           "the plan places %lld bytes at %lld, outside of the %s "
                           "arena of %zu bytes",
                           (long long)buffer->bytes, (long long)buffer->offset,
                           tr_space_name(buffer->space), tr__arena_bytes(arena));
        }
    }
    for (int space = 0; space < TR_SPACE_NVME; space++) { // the last one's end, rounded
        if (arenas[space]) {
            tr__arena_view(arenas[space], 0, (size_t)plan->persistent_bytes[space]);
        }
    }
    return TR_OK;
}

// Libraries make what its kernels want of them.
static tr_status bind_kernels(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        status = tr__unit_bind(plan->units[u].program, err);
    }
    return status;
}

// All that follows from the plan, for whose micro-batches there is room.
static void bind_plan(tr_executor *ex, const tr_plan *plan,
                      tr_arena *const arenas[TR_SPACES]) {
    ex->plan = plan;
    ex->backend = tr__backend(plan->request.backend);
    for (int space = 0; space < TR_SPACES; space++) {
        ex->base[space] = arenas[space] ? tr__arena_view(arenas[space], 0, 0) : NULL;
    }
    ex->micros[0].data = tr__memory(ex, plan->data_ring[1]); // where inference is asked
    ex->micros[0].rows = plan->request.micro_batch;
    if (ex->comm) {
        tr_comm_room room = tr__plan_room(plan);
        tr__comm_staging(ex->comm, &room, tr__memory(ex, plan->staging));
    }
    if (ex->queue[TR_STREAM_COMPUTE]) {
        lend_scratch(ex);
    }
}

static tr_status make_room(tr_executor *ex, const tr_plan *plan, tr_error *err) {
    int64_t count = tr__max_i64(plan->request.accumulation_steps, plan->evaluated);
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

// What each plan leaves out where a micro-batch has no rows. After an error it is what
// the plan before leaves out, which goes on.
static tr_status find_left_out(tr_executor *ex, const tr_plan *plan, tr_error *err) {
    size_t steps = plan->sequences[TR_SEQUENCE_TRAIN].count;
    bool *leave_out = tr__calloc(steps + 1, sizeof *leave_out);
    tr_status status = leave_out
                           ? tr__without_rows_find(plan, leave_out, err)
                           : tr_fail(err, TR_MEMORY, "no memory for the executor");
    if (status != TR_OK) {
        tr__free(leave_out);
        return status;
    }
    tr__free(ex->leave_out);
    ex->leave_out = leave_out;
    return TR_OK;
}

tr_status tr__executor_create(const tr_plan *plan, tr_arena *const arenas[TR_SPACES],
                              tr_comm *comm, const char *nvme_folder, tr_executor **out,
                              tr_error *err) {
    tr_executor *ex = tr__calloc(1, sizeof *ex);
    if (!ex) {
        return tr_fail(err, TR_MEMORY, "no memory for the executor");
    }
    tr_status status = tr__plan_check_reach(plan, err);
    status = status == TR_OK ? view_all(plan, arenas, err) : status;
    status = status == TR_OK ? make_room(ex, plan, err) : status;
    status = status == TR_OK ? bind_kernels(plan, err) : status;
    status = status == TR_OK ? find_left_out(ex, plan, err) : status;
    if (status == TR_OK) {
        ex->comm = tr_mesh_ranks(&plan->request.mesh) > 1 ? comm : NULL;
        bind_plan(ex, plan, arenas);
        status = start_copy_engines(ex, nvme_folder, err);
    }
    if (status == TR_OK && plan->request.discrete) {
        status = start_queues(ex, err);
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
    status = status == TR_OK ? bind_kernels(plan, err) : status;
    status = status == TR_OK ? find_left_out(executor, plan, err) : status;
    if (status == TR_OK) {
        bind_plan(executor, plan, arenas);
        pin_staging(executor);
        executor->feed[0] = executor->feed[1] = NULL;
    }
    return status;
}

static void rest_queue(const tr_executor *ex, tr_device_queue *queue) {
    tr_error error = {0};
    if (queue) {
        const tr_queue_table *queues = ex->backend->queues;
        (void)queues->wait(queue, queues->newest(queue), &error);
    }
}

// Queues follow each other: none is destroyed while another may.
static void rest_queues(const tr_executor *ex) {
    for (int s = 0; s < TR_STREAMS; s++) {
        rest_queue(ex, ex->queue[s]);
    }
}

// No exchange is under way, or none will ever be.
static void leave_ranks(tr_executor *ex) {
    rest_queue(ex, ex->ferry);
    tr__comm_staging(ex->comm, &(tr_comm_room){0}, NULL);
    tr__comm_ferry(ex->comm, NULL);
    if (ex->ferry) {
        ex->backend->queues->destroy(ex->ferry);
    }
}

void tr__executor_destroy(tr_executor *executor) {
    if (executor) {
        tr__peers_leave(executor);
        rest_queues(executor);
        for (int s = 0; s < TR_STREAMS; s++) {
            if (executor->queue[s]) {
                executor->backend->queues->destroy(executor->queue[s]);
            }
            tr__launcher_destroy(executor->launcher[s]);
            tr__copy_engine_destroy(executor->copy_engine[s]);
        }
        if (executor->hand) {
            executor->backend->queues->destroy(executor->hand);
        }
        if (executor->comm) {
            leave_ranks(executor);
        }
        tr__free(executor->micros);
        tr__free(executor->leave_out);
        tr__free(executor);
    }
}

// ---- asking and telling

bool tr__executor_is_unread(const tr_executor *executor) {
    return executor->flags.unread;
}

bool tr__executor_is_deferred(const tr_executor *executor) {
    return executor->flags.deferred;
}

const char *tr__executor_nvme_method(const tr_executor *executor, bool *direct) {
    const tr_copy_engine *copy_engine = executor->copy_engine[TR_STREAM_NVME];
    *direct = false;
    return copy_engine ? tr__copy_engine_method(copy_engine, direct) : "";
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

void tr__executor_fix(tr_executor *executor, tr_fixed fixed) {
    executor->fixed = fixed;
}

void tr__executor_ask(tr_executor *executor, bool save) {
    executor->asks_save = save;
}

void tr__executor_order(tr_executor *executor, const tr_update_order *order) {
    executor->order = *order;
}

void *tr__executor_state(tr_executor *executor, int state) {
    const tr_plan_state *info = &executor->plan->states[state];
    char *states = tr__memory(executor, executor->plan->units[info->unit].states);
    return states + info->offset;
}

const float *tr__executor_logits(tr_executor *executor) {
    return tr__memory(executor, executor->plan->logits);
}
