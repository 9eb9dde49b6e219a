#include "backend/fake_nvme.h"

#include "backend/copy_engine_model.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void move_bytes(fake_nvme *f, int slot, int64_t bytes) {
    const tr_nvme_transfer *t = &f->base.slots[slot];
    char *at = f->bytes + t->offset;
    memcpy(t->write ? at : t->memory, t->write ? t->memory : at, (size_t)bytes);
    f->moved[slot] = true;
}

static int begin(tr_nvme *nvme, int slot) {
    fake_nvme *f = (fake_nvme *)nvme;
    if (++f->begun == f->refuse_at) {
        return EIO;
    }
    f->under_way[slot] = true;
    f->moved[slot] = false;
    f->count++;
    f->most = f->count > f->most ? f->count : f->most;
    if (draw_below(&f->random, 2)) {
        move_bytes(f, slot, f->base.slots[slot].bytes);
    }
    return 0;
}

static int pick(fake_nvme *f) {
    int skip = (int)draw_below(&f->random, (uint32_t)f->count);
    int slot = 0;
    while (!f->under_way[slot] || skip-- > 0) {
        slot++;
    }
    return slot;
}

static int64_t result_of(fake_nvme *f, int slot) {
    const tr_nvme_transfer *t = &f->base.slots[slot];
    f->ended++;
    if (f->ended == f->fail_at) {
        return f->fail_result;
    }
    if (f->interrupt_every > 0 && f->ended % f->interrupt_every == 0) {
        return -EINTR;
    }
    int64_t bytes = t->bytes;
    if (f->in_parts && bytes > TR_CARRY_ALIGN && draw_below(&f->random, 2)) {
        bytes = TR_CARRY_ALIGN + (int64_t)draw_below(&f->random, (uint32_t)bytes);
        bytes = bytes < t->bytes ? bytes : t->bytes;
    }
    if (!f->moved[slot]) {
        move_bytes(f, slot, bytes);
    }
    return bytes;
}

static int end(tr_nvme *nvme, double seconds) {
    fake_nvme *f = (fake_nvme *)nvme;
    bool none = draw_below(&f->random, 2);
    while (atomic_load(&f->hold) && seconds < 0) {
        tr__sleep(1e-4);
    }
    if (atomic_load(&f->hold) || (none && seconds >= 0)) {
        return -1;
    }
    int slot = pick(f);
    f->base.slots[slot].result = result_of(f, slot);
    f->under_way[slot] = false;
    f->count--;
    return slot;
}

static void destroy(tr_nvme *nvme) {
    fake_nvme *f = (fake_nvme *)nvme;
    if (f->left_behind) {
        *f->left_behind = f->count;
    }
    free(f->bytes);
    free(f);
}

static const tr_nvme_method method = {"fake", begin, end, NULL, destroy};

fake_nvme *fake_nvme_make(int64_t bytes, uint64_t seed) {
    fake_nvme *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->bytes = calloc(1, (size_t)bytes);
    assert_non_null(f->bytes);
    f->base.method = &method;
    f->random = seed;
    return f;
}
