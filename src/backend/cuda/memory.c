// Memory of the device, and memory of the host that the device reaches.
#include "base/memory.h"
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"

typedef struct held {
    void *base;
    size_t bytes;
} held;

static tr_status no_memory(const char *space, size_t bytes, int error, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s", space,
                   bytes, tr__cuda_driver()->error_text(error));
}

// Zeroed, since arenas are.
static int take_cleared(size_t bytes, void **base) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    int error = driver->take(bytes, base);
    error = error == 0 ? driver->clear(*base, bytes, NULL) : error;
    return error == 0 ? driver->stream_wait(NULL) : error;
}

static tr_status take(const char *space, size_t bytes, void **memory, char **base,
                      tr_error *err) {
    held *h = tr__calloc(1, sizeof *h);
    if (!h) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    int error = take_cleared(bytes, &h->base);
    if (error != 0) {
        tr__free(h);
        return no_memory(space, bytes, error, err);
    }
    h->bytes = bytes;
    *memory = h;
    *base = h->base;
    return TR_OK;
}

// Both are there until the bytes have been copied.
static tr_status grow(void *memory, const char *space, size_t bytes, char **base,
                      tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    held *h = memory;
    void *larger = NULL;
    int error = take_cleared(bytes, &larger);
    error = error == 0 ? driver->copy(larger, h->base, h->bytes, NULL) : error;
    error = error == 0 ? driver->stream_wait(NULL) : error;
    if (error != 0) {
        driver->give_back(larger);
        return no_memory(space, bytes, error, err);
    }
    driver->give_back(h->base);
    *h = (held){larger, bytes};
    *base = h->base;
    return TR_OK;
}

static void give_back(void *memory) {
    held *h = memory;
    tr__cuda_driver()->give_back(h->base);
    tr__free(h);
}

const tr_memory_source tr__cuda_memory = {
    .take = take, .grow = grow, .give_back = give_back};

// ---- of the host

typedef struct pinned {
    void *memory; // the host's own
    char *base;
} pinned;

static tr_status pin(pinned *p, const char *space, size_t bytes, tr_error *err) {
    int error = tr__cuda_driver()->pin(p->base, bytes);
    return error == 0 ? TR_OK
                      : tr_fail(err, TR_MEMORY,
                                "the %s arena of %zu bytes cannot be pinned: %s", space,
                                bytes, tr__cuda_driver()->error_text(error));
}

static tr_status take_pinned(const char *space, size_t bytes, void **memory,
                             char **base, tr_error *err) {
    pinned *p = tr__calloc(1, sizeof *p);
    if (!p) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    tr_status status = tr__host_memory.take(space, bytes, &p->memory, &p->base, err);
    if (status == TR_OK) {
        status = pin(p, space, bytes, err);
        if (status != TR_OK) {
            tr__host_memory.give_back(p->memory);
        }
    }
    if (status != TR_OK) {
        tr__free(p);
        return status;
    }
    *memory = p;
    *base = p->base;
    return TR_OK;
}

// Pinned pages do not move. (Where growing fails, the old ones are pinned again.)
static tr_status grow_pinned(void *memory, const char *space, size_t bytes, char **base,
                             tr_error *err) {
    pinned *p = memory;
    tr_error ignored = {0};
    tr__cuda_driver()->unpin(p->base);
    tr_status status = tr__host_memory.grow(p->memory, space, bytes, &p->base, err);
    *base = p->base;
    return status == TR_OK ? pin(p, space, bytes, err)
                           : (pin(p, space, 1, &ignored), status);
}

static void give_back_pinned(void *memory) {
    pinned *p = memory;
    tr__cuda_driver()->unpin(p->base);
    tr__host_memory.give_back(p->memory);
    tr__free(p);
}

const tr_memory_source tr__cuda_pinned_memory = {
    .take = take_pinned, .grow = grow_pinned, .give_back = give_back_pinned};
