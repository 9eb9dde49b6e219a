#include "backend/host/copy_engine.h"

#include "backend/host/copy_engine_work.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

tr_status tr__copy_engine_create(const tr_copy_engine_options *options,
                                 tr_copy_engine **out, tr_error *err) {
    tr_nvme *nvme = NULL;
    bool direct = false;
    int64_t bytes = tr__max_i64(options->file_bytes, 0);
    *out = NULL;
    if (options->folder[0] != '\0') {
        bytes = tr__round_up(bytes, TR_CARRY_ALIGN);
        tr_status status = tr__nvme_create(options->folder, bytes, options->plain,
                                           &nvme, &direct, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return tr__copy_engine_create_on(nvme, options->folder, bytes, direct, out, err);
}

static void free_copy_engine(tr_copy_engine *c) {
    tr__queue_destroy(&c->queue);
    tr__nvme_destroy(c->nvme);
    tr__free(c->folder);
    tr__free(c);
}

tr_status tr__copy_engine_create_on(tr_nvme *nvme, const char *folder,
                                    int64_t file_bytes, bool direct,
                                    tr_copy_engine **out, tr_error *err) {
    tr_copy_engine *c = tr__calloc(1, sizeof *c);
    char *name = tr__strdup(folder);
    *out = NULL;
    if (!c || !name) {
        tr__nvme_destroy(nvme);
        tr__free(name);
        tr__free(c);
        return tr_fail(err, TR_MEMORY, "no memory for a stream of copies");
    }
    c->folder = name;
    c->nvme = nvme;
    c->file_bytes = file_bytes;
    c->direct = direct;
    for (int i = 0; i < TR_NVME_SLOTS; i++) {
        c->slots[i].number = -1;
    }
    tr__queue_init(&c->queue, &(tr_queue_options){.ring = c->ring,
                                                  .size = sizeof *c->ring,
                                                  .capacity = TR_CARRY_QUEUE});
    int result = tr__thread_start(tr__copy_engine_work, c, &c->thread);
    if (result != 0) {
        free_copy_engine(c);
        return tr_fail(err, TR_INTERNAL, "cannot start the copying thread: %s",
                       strerror(result));
    }
    *out = c;
    return TR_OK;
}

void tr__copy_engine_destroy(tr_copy_engine *copy_engine) {
    if (copy_engine) {
        atomic_store(&copy_engine->stop, true);
        tr__queue_poke(&copy_engine->queue);
        pthread_join(copy_engine->thread, NULL);
        free_copy_engine(copy_engine);
    }
}

const char *tr__copy_engine_method(const tr_copy_engine *copy_engine, bool *direct) {
    *direct = copy_engine->direct;
    return copy_engine->nvme ? copy_engine->nvme->method->name : "";
}

bool tr__copy_engine_pin(tr_copy_engine *copy_engine, void *memory, int64_t bytes) {
    tr_nvme *nvme = copy_engine->nvme;
    return nvme && nvme->method->pin && nvme->method->pin(nvme, memory, bytes);
}

int64_t tr__copy_engine_start(tr_copy_engine *copy_engine, const tr_carry *order) {
    double begin = tr__seconds();
    copy_engine->newest = tr__queue_put(&copy_engine->queue, order);
    copy_engine->waited += tr__seconds() - begin;
    return copy_engine->newest;
}

tr_status tr__copy_engine_wait(tr_copy_engine *copy_engine, int64_t ticket,
                               tr_error *err) {
    double begin = tr__seconds();
    ticket =
        tr__min_i64(ticket, copy_engine->newest); // no later one would ever be done
    tr_status status = tr__queue_wait(&copy_engine->queue, ticket, err);
    copy_engine->waited += tr__seconds() - begin;
    return status;
}

int64_t tr__copy_engine_newest(const tr_copy_engine *copy_engine) {
    return copy_engine->newest;
}

void tr__copy_engine_watch(tr_copy_engine *copy_engine, tr_task_span *spans,
                           int64_t count) {
    tr__queue_watch(&copy_engine->queue, spans, count);
}

tr_copy_engine_totals tr__copy_engine_totals(const tr_copy_engine *copy_engine) {
    return (tr_copy_engine_totals){
        .copied = atomic_load(&copy_engine->copied),
        .read = atomic_load(&copy_engine->read),
        .written = atomic_load(&copy_engine->written),
        .wait_seconds = copy_engine->waited,
    };
}
