#include "backend/cpu/carrier.h"

#include "backend/cpu/carrier_work.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

tr_status tr__carrier_create(const tr_carrier_options *options, tr_carrier **out,
                             tr_error *err) {
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
    return tr__carrier_create_on(nvme, options->folder, bytes, direct, out, err);
}

static void free_carrier(tr_carrier *c) {
    tr__queue_destroy(&c->queue);
    tr__nvme_destroy(c->nvme);
    tr__free(c->folder);
    tr__free(c);
}

tr_status tr__carrier_create_on(tr_nvme *nvme, const char *folder, int64_t file_bytes,
                                bool direct, tr_carrier **out, tr_error *err) {
    tr_carrier *c = tr__calloc(1, sizeof *c);
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
    int result = tr__thread_start(tr__carrier_work, c, &c->thread);
    if (result != 0) {
        free_carrier(c);
        return tr_fail(err, TR_INTERNAL, "cannot start the copying thread: %s",
                       strerror(result));
    }
    *out = c;
    return TR_OK;
}

void tr__carrier_destroy(tr_carrier *carrier) {
    if (carrier) {
        atomic_store(&carrier->stop, true);
        tr__queue_poke(&carrier->queue);
        pthread_join(carrier->thread, NULL);
        free_carrier(carrier);
    }
}

const char *tr__carrier_method(const tr_carrier *carrier, bool *direct) {
    *direct = carrier->direct;
    return carrier->nvme ? carrier->nvme->method->name : "";
}

bool tr__carrier_pin(tr_carrier *carrier, void *memory, int64_t bytes) {
    tr_nvme *nvme = carrier->nvme;
    return nvme && nvme->method->pin && nvme->method->pin(nvme, memory, bytes);
}

int64_t tr__carrier_start(tr_carrier *carrier, const tr_carry *order) {
    double begin = tr__seconds();
    carrier->newest = tr__queue_put(&carrier->queue, order);
    carrier->waited += tr__seconds() - begin;
    return carrier->newest;
}

tr_status tr__carrier_wait(tr_carrier *carrier, int64_t ticket, tr_error *err) {
    double begin = tr__seconds();
    ticket = tr__min_i64(ticket, carrier->newest); // no later one would ever be done
    tr_status status = tr__queue_wait(&carrier->queue, ticket, err);
    carrier->waited += tr__seconds() - begin;
    return status;
}

int64_t tr__carrier_newest(const tr_carrier *carrier) {
    return carrier->newest;
}

void tr__carrier_watch(tr_carrier *carrier, tr_task_span *spans, int64_t count) {
    tr__queue_watch(&carrier->queue, spans, count);
}

tr_carrier_totals tr__carrier_totals(const tr_carrier *carrier) {
    return (tr_carrier_totals){
        .copied = atomic_load(&carrier->copied),
        .read = atomic_load(&carrier->read),
        .written = atomic_load(&carrier->written),
        .wait_seconds = carrier->waited,
    };
}
