#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tr__backend_names[TR_BACKEND_COUNT + 1] = {
    [TR_BACKEND_CPU] = "cpu",
    [TR_BACKEND_CUDA] = "cuda",
};

#define DIGITS "0123456789"

enum { NUMBER_MOST = 1023 }; // of a device

tr_backend_id tr__backend_find(const char *name) {
    int id = 0;
    while (id + 1 < TR_BACKEND_COUNT && strcmp(tr__backend_names[id], name) != 0) {
        id++;
    }
    return (tr_backend_id)id;
}

// "cuda", or "cuda:" and a number: is the text one of these?
static bool names_backend(const char *text, tr_backend_id id) {
    size_t length = strlen(tr__backend_names[id]);
    const char *rest = text + length;
    return strncmp(text, tr__backend_names[id], length) == 0 &&
           (rest[0] == '\0' || (rest[0] == ':' && rest[1] != '\0' &&
                                strspn(rest + 1, DIGITS) == strlen(rest + 1)));
}

tr_status tr__device_parse(const char *key, const char *text, tr_backend_id *id,
                           int *number, tr_error *err) {
    int found = 0;
    while (found < TR_BACKEND_COUNT && !names_backend(text, (tr_backend_id)found)) {
        found++;
    }
    if (found == TR_BACKEND_COUNT) {
        return tr_fail(err, TR_USAGE,
                       "%s is \"%s\": expected \"cpu\", \"cuda\" or \"cuda:1\"", key,
                       text);
    }
    const char *rest = strchr(text, ':');
    long counted = rest ? strtol(rest + 1, NULL, 10) : 0;
    if (rest && !tr__backend((tr_backend_id)found)->device) {
        return tr_fail(err, TR_USAGE,
                       "%s is \"%s\": the processor has no number; set %s to \"%s\"",
                       key, text, key, tr__backend_names[found]);
    }
    if (counted > NUMBER_MOST) {
        return tr_fail(err, TR_USAGE, "%s is \"%s\": numbers go up to %d", key, text,
                       NUMBER_MOST);
    }
    *id = (tr_backend_id)found;
    *number = (int)counted;
    return TR_OK;
}

void tr__device_print(tr_backend_id id, int number, char *dst, size_t size) {
    const tr_backend *backend = tr__backend(id);
    if (backend->device) {
        snprintf(dst, size, "%s:%d", backend->name, number);
    } else {
        snprintf(dst, size, "%s", backend->name);
    }
}

const tr_memory_source *tr__backend_memory(const tr_backend *backend) {
    return backend->memory ? backend->memory : &tr__host_memory;
}

const tr_memory_source *tr__backend_host_memory(const tr_backend *backend) {
    return backend->host_memory ? backend->host_memory : &tr__host_memory;
}

bool tr__backend_has(const tr_backend *backend, int number, tr_device *out) {
    return backend->device && backend->device(number, out, NULL) == TR_OK;
}

int tr__backend_devices(const tr_backend *backend) {
    tr_device ignored;
    int count = 0;
    while (tr__backend_has(backend, count, &ignored)) {
        count++;
    }
    return count;
}

void tr__backend_launch(const tr_backend *backend, const tr_kernel *kernel,
                        const tr_op_desc *desc, void *state, const tr_launch *launch) {
    if (backend->launch) {
        backend->launch(kernel, desc, state, launch);
    } else {
        kernel->launch(desc, state, launch);
    }
}

void *tr__backend_reach(const tr_backend *backend, void *address) {
    return backend->reach ? backend->reach(address) : address;
}

bool tr__backend_is_apart(const tr_backend *backend) {
    return backend->discrete && !backend->reach;
}

const tr_kernel *tr__kernel_find(const tr_op_desc *desc) {
    return tr__backend(desc->target.backend)->kernel(desc);
}

int tr_attention_version(const char **why) {
    const tr_backend *backend = tr__backend(TR_BACKEND_CUDA);
    return backend->attention(why);
}

const char *tr__target_name(const tr_target *target) {
    const char *name = tr__backend(target->backend)->level_name(target->level);
    return target->level < 0 ? "reference" : name ? name : "unknown";
}
