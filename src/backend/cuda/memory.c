// Memory of the device, and memory of the host that the device reaches.
#include "base/memory.h"
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/checked.h"

// Where the driver can, addresses are reserved for all that the device has, and pages
// are mapped there as an arena grows: no byte is copied, and no address changes. Else
// what is there is copied to a larger place.
typedef struct chunk {
    struct chunk *before;
    char *at;
    size_t bytes;
} chunk;

typedef struct held {
    char *base;
    size_t bytes;         // that are there; of pages, whole ones
    size_t reserved;      // addresses; 0: not in pages
    size_t page;          // bytes, likewise
    struct chunk *mapped; // the last one; of pages
} held;

static tr_status no_memory(const char *space, size_t bytes, int error, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s", space,
                   bytes, tr__cuda_driver()->error_text(error));
}

// Zeroed, since arenas are.
static int clear(void *at, size_t bytes) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    int error = driver->clear(at, bytes, NULL);
    return error == 0 ? driver->stream_wait(NULL) : error;
}

// ---- in one piece

static int take_cleared(size_t bytes, void **base) {
    int error = tr__cuda_driver()->take(bytes, base);
    return error == 0 ? clear(*base, bytes) : error;
}

// Both are there until the bytes have been copied.
static int move(held *h, size_t bytes) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    void *larger = NULL;
    int error = take_cleared(bytes, &larger);
    error = error == 0 ? driver->copy(larger, h->base, h->bytes, NULL) : error;
    error = error == 0 ? driver->stream_wait(NULL) : error;
    driver->give_back(error == 0 ? h->base : larger);
    if (error == 0) {
        h->base = larger;
        h->bytes = bytes;
    }
    return error;
}

// ---- in pages

// Pages that the ledger counts (backend.h); others are not used.
static size_t page_bytes(void) {
    size_t page = 0;
    int error = tr__cuda_driver()->page(&page);
    return error == 0 && page <= TR_DEVICE_PAGE ? page : 0;
}

// An arena may grow up to what the device has.
static int reserve(held *h, size_t bytes, size_t all) {
    h->reserved =
        (size_t)tr__round_up((int64_t)(bytes > all ? bytes : all), (int64_t)h->page);
    return tr__cuda_driver()->reserve(h->reserved, (void **)&h->base);
}

// As many pages more as it takes.
static int map(held *h, size_t bytes) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    size_t whole = (size_t)tr__round_up((int64_t)bytes, (int64_t)h->page);
    if (whole <= h->bytes) {
        return 0;
    }
    chunk *c = whole <= h->reserved ? tr__calloc(1, sizeof *c) : NULL;
    if (!c) {
        return TR_CUDA_OUT_OF_MEMORY;
    }
    *c = (chunk){h->mapped, h->base + h->bytes, whole - h->bytes};
    int error = driver->map(c->at, c->bytes);
    if (error == 0) {
        error = clear(c->at, c->bytes);
        if (error != 0) {
            driver->unmap(c->at, c->bytes);
        }
    }
    if (error != 0) {
        tr__free(c);
        return error;
    }
    h->mapped = c;
    h->bytes = whole;
    return 0;
}

static void give_back_pages(held *h) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    while (h->mapped) {
        chunk *c = h->mapped;
        driver->unmap(c->at, c->bytes);
        h->mapped = c->before;
        tr__free(c);
    }
    driver->release(h->base, h->reserved);
}

// ---- either

static int begin(held *h, size_t bytes) {
    size_t all = 0;
    h->page = page_bytes();
    if (h->page == 0 || tr__cuda_driver()->memory(&all) != 0 ||
        reserve(h, bytes, all) != 0) {
        h->reserved = 0;
        h->bytes = bytes;
        return take_cleared(bytes, (void **)&h->base);
    }
    int error = map(h, bytes);
    if (error != 0) {
        give_back_pages(h);
    }
    return error;
}

static tr_status take(const char *space, size_t bytes, void **memory, char **base,
                      tr_error *err) {
    held *h = tr__calloc(1, sizeof *h);
    if (!h) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    int error = begin(h, bytes);
    if (error != 0) {
        tr__free(h);
        return no_memory(space, bytes, error, err);
    }
    *memory = h;
    *base = h->base;
    return TR_OK;
}

static tr_status grow(void *memory, const char *space, size_t bytes, char **base,
                      tr_error *err) {
    held *h = memory;
    int error = h->reserved > 0 ? map(h, bytes) : move(h, bytes);
    *base = h->base;
    return error == 0 ? TR_OK : no_memory(space, bytes, error, err);
}

static void give_back(void *memory) {
    held *h = memory;
    if (h->reserved > 0) {
        give_back_pages(h);
    } else {
        tr__cuda_driver()->give_back(h->base);
    }
    tr__free(h);
}

const tr_memory_source tr__cuda_memory = {
    .take = take, .grow = grow, .give_back = give_back};

// ---- of the host

typedef struct pinned {
    void *memory; // the host's own
    char *base;
    size_t bytes; // that are pinned
} pinned;

static tr_status pin(pinned *p, const char *space, size_t bytes, tr_error *err) {
    int error = tr__cuda_driver()->pin(p->base, bytes);
    if (error != 0) {
        return tr_fail(err, TR_MEMORY, "the %s arena of %zu bytes cannot be pinned: %s",
                       space, bytes, tr__cuda_driver()->error_text(error));
    }
    p->bytes = bytes;
    return TR_OK;
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

// Pinned pages do not move. Where growing fails, those of before are pinned again: the
// device goes on to reach them, wherever they are now.
static tr_status grow_pinned(void *memory, const char *space, size_t bytes, char **base,
                             tr_error *err) {
    pinned *p = memory;
    tr__cuda_driver()->unpin(p->base);
    tr_status status = tr__host_memory.grow(p->memory, space, bytes, &p->base, err);
    status = status == TR_OK ? pin(p, space, bytes, err) : status;
    if (status != TR_OK) {
        pin(p, space, p->bytes, NULL);
    }
    *base = p->base;
    return status;
}

static void give_back_pinned(void *memory) {
    pinned *p = memory;
    tr__cuda_driver()->unpin(p->base);
    tr__host_memory.give_back(p->memory);
    tr__free(p);
}

const tr_memory_source tr__cuda_pinned_memory = {
    .take = take_pinned, .grow = grow_pinned, .give_back = give_back_pinned};
