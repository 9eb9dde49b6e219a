#include "backend/host/copy_engine_work.h"

#include "backend/cpu/copy.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

enum {
    PIECE = 1 << 20,      // bytes of a copy between two looks at the rest
    PAST_LEAST = 4 << 20, // copies from this size on leave the caches alone
    TRIES = 16,           // of a transfer that the kernel was interrupted in
};

// Seconds: between two looks for new orders while transfers are under way, and while
// there is nothing at all to do (new orders end that rest).
static const double look_rest = 1e-3, idle_rest = 10;

static bool is_transfer(tr_carry_kind kind) {
    return kind == TR_CARRY_READ || kind == TR_CARRY_WRITE;
}

// ---- what is wrong with an order; NULL: nothing

static bool meet(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return first < second + (uintptr_t)b_bytes && second < first + (uintptr_t)a_bytes;
}

static bool is_aligned(const void *memory, int64_t bytes, int64_t unit) {
    return (uintptr_t)memory % (uintptr_t)unit == 0 && bytes % unit == 0;
}

static const char *transfer_fault(const tr_copy_engine *c, const tr_carry *o) {
    const void *memory = o->kind == TR_CARRY_READ ? o->to : o->from;
    if (!c->nvme) {
        return "has no file";
    }
    if (!memory || !is_aligned(memory, o->bytes, TR_CARRY_ALIGN) ||
        o->offset % TR_CARRY_ALIGN != 0) {
        return "is not aligned";
    }
    if (o->offset < 0 || o->bytes > c->file_bytes ||
        o->offset > c->file_bytes - o->bytes) {
        return "is outside of the file";
    }
    return NULL;
}

static const char *copy_fault(const tr_carry *o) {
    if (!o->from || !o->to) {
        return "has no memory";
    }
    return meet(o->from, o->bytes, o->to, o->bytes) ? "overlaps itself" : NULL;
}

static const char *order_fault(const tr_copy_engine *c, const tr_carry *o) {
    if (o->bytes <= 0) {
        return o->bytes < 0 ? "is negative" : NULL;
    }
    if (is_transfer(o->kind)) {
        return transfer_fault(c, o);
    }
    return o->kind == TR_CARRY_COPY ? copy_fault(o) : "is of no kind";
}

// ---- transfers under way

static void release(tr_copy_engine *c, int slot) {
    c->parts[c->slots[slot].number % TR_CARRY_QUEUE]--;
    c->slots[slot].number = -1;
    c->under_way--;
}

static void fail(tr_copy_engine *c, const tr_nvme_transfer *t, const char *reason) {
    tr_fail(&c->error, TR_IO, "%s: cannot %s %lld bytes at %lld of the NVMe file: %s",
            c->folder, t->write ? "write" : "read", (long long)t->bytes,
            (long long)t->offset, reason);
}

static void begin(tr_copy_engine *c, int slot) {
    int result = c->nvme->method->begin(c->nvme, slot);
    if (result != 0) {
        fail(c, &c->nvme->slots[slot], strerror(result));
        release(c, slot);
    }
}

// A transfer that was done in part goes on; the disk wants whole blocks.
static void settle(tr_copy_engine *c, int slot) {
    tr_nvme_transfer *t = &c->nvme->slots[slot];
    int64_t done = t->result > 0 ? t->result / TR_CARRY_ALIGN * TR_CARRY_ALIGN : 0;
    bool again = done > 0;
    atomic_fetch_add_explicit(t->write ? &c->written : &c->read, done,
                              memory_order_relaxed);
    t->memory += done;
    t->offset += done;
    t->bytes -= done;
    if (t->result == -EINTR || t->result == -EAGAIN) {
        again = c->slots[slot].tries++ < TRIES;
    }
    if (t->bytes > 0 && again && c->error.status == TR_OK) {
        begin(c, slot);
        return;
    }
    if (t->bytes > 0) {
        fail(c, t, t->result < 0 ? strerror((int)-t->result) : "it came short");
    }
    release(c, slot);
}

// What has ended, waiting up to `seconds` for the first (negative: as long as it
// takes).
static void collect(tr_copy_engine *c, double seconds) {
    while (c->under_way > 0) {
        int slot = c->nvme->method->end(c->nvme, seconds);
        if (slot < 0) {
            return;
        }
        settle(c, slot);
        seconds = 0;
    }
}

// ---- orders, a piece at a time

static bool transfer_conflicts(const tr_copy_engine *c, const tr_nvme_transfer *t) {
    for (int i = 0; i < TR_NVME_SLOTS; i++) {
        const tr_nvme_transfer *other = &c->nvme->slots[i];
        if (c->slots[i].number < 0) {
            continue;
        }
        bool memory = meet(t->memory, t->bytes, other->memory, other->bytes);
        bool file = t->offset < other->offset + other->bytes &&
                    other->offset < t->offset + t->bytes;
        if ((memory && !(t->write && other->write)) ||
            (file && (t->write || other->write))) {
            return true;
        }
    }
    return false;
}

static int free_slot(const tr_copy_engine *c) {
    int slot = 0;
    while (slot < TR_NVME_SLOTS && c->slots[slot].number >= 0) {
        slot++;
    }
    return slot < TR_NVME_SLOTS ? slot : -1;
}

// Bytes begun; 0: it cannot begin before others have ended.
static int64_t begin_transfer(tr_copy_engine *c) {
    const tr_carry *o = &c->order;
    bool write = o->kind == TR_CARRY_WRITE;
    const char *memory = write ? o->from : o->to;
    tr_nvme_transfer t = {.write = write,
                          .memory = (char *)(uintptr_t)memory + c->at,
                          .bytes = tr__min_i64(o->bytes - c->at, TR_NVME_CHUNK),
                          .offset = o->offset + c->at};
    int slot = free_slot(c);
    if (slot < 0 || transfer_conflicts(c, &t)) {
        return 0;
    }
    c->nvme->slots[slot] = t;
    c->slots[slot].number = c->begun;
    c->slots[slot].tries = 0;
    c->parts[c->begun % TR_CARRY_QUEUE]++;
    c->under_way++;
    begin(c, slot);
    return t.bytes;
}

static bool copy_conflicts(const tr_copy_engine *c, const char *from, const char *to,
                           int64_t bytes) {
    for (int i = 0; i < TR_NVME_SLOTS && c->under_way > 0; i++) {
        const tr_nvme_transfer *other = &c->nvme->slots[i];
        if (c->slots[i].number < 0) {
            continue;
        }
        if (meet(to, bytes, other->memory, other->bytes) ||
            (!other->write && meet(from, bytes, other->memory, other->bytes))) {
            return true;
        }
    }
    return false;
}

static int64_t copy_piece(tr_copy_engine *c) {
    const tr_carry *o = &c->order;
    int64_t bytes = tr__min_i64(o->bytes - c->at, PIECE);
    const char *from = (const char *)o->from + c->at;
    char *to = (char *)o->to + c->at;
    if (copy_conflicts(c, from, to, bytes)) {
        return 0;
    }
    tr__copy_bytes(from, bytes, o->bytes >= PAST_LEAST, to);
    atomic_fetch_add_explicit(&c->copied, bytes, memory_order_relaxed);
    return bytes;
}

static bool take(tr_copy_engine *c) {
    if (!tr__queue_next(&c->queue, c->begun - c->finished, &c->order)) {
        return false;
    }
    const char *fault = order_fault(c, &c->order);
    if (fault) {
        tr_fail(&c->error, TR_INTERNAL, "the copy of %lld bytes %s",
                (long long)c->order.bytes, fault);
    }
    c->at = 0;
    c->busy = !fault;
    return c->busy;
}

static void advance(tr_copy_engine *c) {
    const tr_carry *o = &c->order;
    if (c->at < o->bytes) {
        int64_t moved = is_transfer(o->kind) ? begin_transfer(c) : copy_piece(c);
        if (moved == 0) {
            collect(c, -1);
        }
        c->at += moved;
    }
    if (c->at == o->bytes) {
        c->busy = false;
        c->begun++;
    }
}

static void finish(tr_copy_engine *c) {
    while (c->error.status == TR_OK && c->finished < c->begun &&
           c->parts[c->finished % TR_CARRY_QUEUE] == 0) {
        c->finished++;
        tr__queue_finish(&c->queue);
    }
}

void *tr__copy_engine_work(void *copy_engine) {
    tr_copy_engine *c = copy_engine;
    while (!atomic_load(&c->stop) && c->error.status == TR_OK) {
        collect(c, 0);
        finish(c);
        if (c->busy || take(c)) {
            advance(c);
        } else if (c->under_way > 0) {
            collect(c, look_rest);
        } else {
            tr__queue_rest(&c->queue, idle_rest);
        }
    }
    while (c->under_way > 0) { // the disk still writes to the caller's memory
        collect(c, -1);
    }
    if (c->error.status != TR_OK) {
        tr__queue_break(&c->queue, &c->error);
    }
    return NULL;
}
