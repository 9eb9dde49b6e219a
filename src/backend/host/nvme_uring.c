#include "backend/host/nvme.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <liburing.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PIN_BITS = 30, // io_uring pins memory in parts of up to 1 GiB
    PINS_MAX = 64,
    SUBMIT_TRIES = 1000,
};

static const double nap = 1e-3; // seconds between two tries

typedef struct uring {
    tr_nvme base;
    struct io_uring ring;
    int file;
    const char *pinned; // [pinned_bytes]
    int64_t pinned_bytes;
} uring;

// The pinned part that the transfer lies in; -1: none.
static int pin_of(const uring *u, const tr_nvme_transfer *t) {
    int64_t first = (int64_t)((uintptr_t)t->memory - (uintptr_t)u->pinned);
    int64_t last = first + t->bytes - 1;
    bool inside = first >= 0 && last < u->pinned_bytes;
    return inside && first >> PIN_BITS == last >> PIN_BITS ? (int)(first >> PIN_BITS)
                                                           : -1;
}

static void prepare(const uring *u, const tr_nvme_transfer *t,
                    struct io_uring_sqe *entry) {
    unsigned bytes = (unsigned)t->bytes;
    uint64_t offset = (uint64_t)t->offset;
    int pin = pin_of(u, t);
    if (pin >= 0 && t->write) {
        io_uring_prep_write_fixed(entry, u->file, t->memory, bytes, offset, pin);
    } else if (pin >= 0) {
        io_uring_prep_read_fixed(entry, u->file, t->memory, bytes, offset, pin);
    } else if (t->write) {
        io_uring_prep_write(entry, u->file, t->memory, bytes, offset);
    } else {
        io_uring_prep_read(entry, u->file, t->memory, bytes, offset);
    }
}

static int begin(tr_nvme *nvme, int slot) {
    uring *u = (uring *)nvme;
    struct io_uring_sqe *entry = io_uring_get_sqe(&u->ring);
    if (!entry) {
        return EBUSY;
    }
    prepare(u, &nvme->slots[slot], entry);
    io_uring_sqe_set_data64(entry, (uint64_t)slot);
    int result = io_uring_submit(&u->ring);
    for (int i = 0; i < SUBMIT_TRIES && (result == -EAGAIN || result == -EINTR); i++) {
        tr__sleep(nap); // the kernel is short of memory
        result = io_uring_submit(&u->ring);
    }
    return result < 0 ? -result : 0;
}

static int wait_for(struct io_uring *ring, double seconds, struct io_uring_cqe **done) {
    if (seconds == 0) {
        return io_uring_peek_cqe(ring, done);
    }
    if (seconds < 0) {
        return io_uring_wait_cqe(ring, done);
    }
    struct __kernel_timespec time = {.tv_sec = (long long)seconds};
    time.tv_nsec = (long long)((seconds - (double)time.tv_sec) * 1e9);
    return io_uring_wait_cqe_timeout(ring, done, &time);
}

static int end(tr_nvme *nvme, double seconds) {
    uring *u = (uring *)nvme;
    struct io_uring_cqe *done = NULL;
    int result = wait_for(&u->ring, seconds, &done);
    while (seconds < 0 && result != 0) {
        if (result != -EINTR) {
            tr__sleep(nap);
        }
        result = wait_for(&u->ring, seconds, &done);
    }
    if (result != 0 || !done) {
        return -1;
    }
    int slot = (int)io_uring_cqe_get_data64(done);
    nvme->slots[slot].result = done->res;
    io_uring_cqe_seen(&u->ring, done);
    return slot;
}

static bool pin(tr_nvme *nvme, void *memory, int64_t bytes) {
    uring *u = (uring *)nvme;
    struct iovec parts[PINS_MAX];
    const int64_t most = INT64_C(1) << PIN_BITS;
    unsigned count = 0;
    if (u->pinned) {
        io_uring_unregister_buffers(&u->ring);
        u->pinned = NULL;
        u->pinned_bytes = 0;
    }
    if (bytes <= 0 || bytes > PINS_MAX * most) {
        return false;
    }
    for (int64_t at = 0; at < bytes; at += most) {
        int64_t left = bytes - at;
        parts[count++] = (struct iovec){.iov_base = (char *)memory + at,
                                        .iov_len = (size_t)(left < most ? left : most)};
    }
    if (io_uring_register_buffers(&u->ring, parts, count) != 0) {
        return false;
    }
    u->pinned = memory;
    u->pinned_bytes = bytes;
    return true;
}

static void destroy(tr_nvme *nvme) {
    uring *u = (uring *)nvme;
    io_uring_queue_exit(&u->ring);
    close(u->file);
    tr__free(u);
}

static const tr_nvme_method method = {"io_uring", begin, end, pin, destroy};

tr_status tr__nvme_uring_create(int file, tr_nvme **out, tr_error *err) {
    uring *u = tr__calloc(1, sizeof *u);
    *out = NULL;
    if (!u) {
        close(file);
        return tr_fail(err, TR_MEMORY, "no memory for io_uring's record");
    }
    u->base.method = &method;
    u->file = file;
    if (io_uring_queue_init(2 * TR_NVME_SLOTS, &u->ring, 0) != 0) {
        tr__free(u); // not permitted here, or not in this kernel
        return TR_OK;
    }
    *out = &u->base;
    return TR_OK;
}
