#include "exec/walk/own_launch.h"

#include "base/memory.h"
#include "ops/built_in.h"

#include <string.h>

#ifdef TR_POISONS

enum { AROUND = 64, COPIES = TR_OP_IN_MAX + TR_OP_OUT_MAX + 2 };

// Bytes that several operands may have: an op may write over its input.
typedef struct copy {
    const void *of;
    char *block, *data;
    size_t bytes;
} copy;

typedef struct copies {
    copy all[COPIES];
    int count;
} copies;

static copy *find(copies *c, const void *of) {
    for (int i = 0; i < c->count; i++) {
        if (c->all[i].of == of) {
            return &c->all[i];
        }
    }
    return NULL;
}

static void note(copies *c, const void *of, size_t bytes) {
    copy *known = of ? find(c, of) : NULL;
    if (known) {
        known->bytes = bytes > known->bytes ? bytes : known->bytes;
    } else if (of) {
        c->all[c->count++] = (copy){.of = of, .bytes = bytes};
    }
}

static void note_all(copies *c, const tr_device_work *work) {
    const tr_kernel *kernel = work->kernel;
    const tr_op_desc *desc = work->desc;
    const tr_launch *launch = work->launch;
    for (int i = 0; i < desc->in_count; i++) {
        note(c, launch->in[i], (size_t)tr_tensor_bytes(desc->in[i]));
    }
    for (int i = 0; i < desc->out_count; i++) {
        note(c, launch->out[i], (size_t)tr_tensor_bytes(desc->out[i]));
    }
    note(c, launch->workspace,
         kernel->workspace ? kernel->workspace(desc, work->state) : 0);
    note(c, launch->packed, kernel->packed ? kernel->packed(desc, work->state) : 0);
}

static bool make(copy *c) {
    size_t room = AROUND + c->bytes + AROUND;
    c->block = tr__calloc_besides(room);
    if (!c->block) {
        return false;
    }
    c->data = c->block + AROUND - (uintptr_t)c->block % AROUND;
    memcpy(c->data, c->of, c->bytes);
    ASAN_POISON_MEMORY_REGION(c->block, (size_t)(c->data - c->block));
    ASAN_POISON_MEMORY_REGION(c->data + c->bytes,
                              (size_t)(c->block + room - c->data) - c->bytes);
    return true;
}

static void *copy_of(copies *c, const void *of) {
    copy *known = of ? find(c, of) : NULL;
    return known ? known->data : NULL;
}

static void launch(copies *c, const tr_backend *backend, const tr_device_work *work) {
    tr_launch own = *work->launch;
    for (int i = 0; i < work->desc->in_count; i++) {
        own.in[i] = copy_of(c, own.in[i]);
    }
    for (int i = 0; i < work->desc->out_count; i++) {
        own.out[i] = copy_of(c, own.out[i]);
    }
    own.workspace = copy_of(c, own.workspace);
    own.packed = copy_of(c, own.packed);
    tr__backend_launch(backend, work->kernel, work->desc, work->state, &own);
}

static void bring_back(copies *c, void *to) {
    copy *known = to ? find(c, to) : NULL;
    if (known) {
        memcpy(to, known->data, known->bytes);
    }
}

bool tr__launch_own_apart(const tr_backend *backend, const tr_device_work *work) {
    copies c = {.count = 0};
    bool made = !tr__op_is_built_in(work->desc->op);
    if (made) {
        note_all(&c, work);
    }
    for (int i = 0; i < c.count && made; i++) {
        made = make(&c.all[i]);
    }
    if (made) {
        launch(&c, backend, work);
        for (int i = 0; i < work->desc->out_count; i++) {
            bring_back(&c, work->launch->out[i]);
        }
        bring_back(&c, work->launch->packed);
    }
    for (int i = 0; i < c.count; i++) {
        tr__free(c.all[i].block);
    }
    return made;
}

#else

bool tr__launch_own_apart(const tr_backend *backend, const tr_device_work *work) {
    (void)backend;
    (void)work;
    return false;
}

#endif
