#include "base/memory.h"

#include "base/checked.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

// The only state outside objects: counters that tests read and set.
static _Atomic int64_t calls;
static _Atomic int64_t fail_at; // absolute call number, 0: never

void tr__memory_fail_at(int64_t nth) {
    atomic_store(&fail_at, nth > 0 ? atomic_load(&calls) + nth : 0);
}

int64_t tr__memory_calls(void) {
    return atomic_load(&calls);
}

static int refused(void) {
    int64_t call = atomic_fetch_add(&calls, 1) + 1;
    return call == atomic_load(&fail_at);
}

void *tr__calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (refused() || !tr__mul_size(count ? count : 1, size ? size : 1, &bytes)) {
        return NULL;
    }
    return calloc(bytes, 1);
}

void *tr__calloc_besides(size_t bytes) {
    return calloc(bytes, 1);
}

void *tr__realloc(void *memory, size_t count, size_t size) {
    size_t bytes = 0;
    if (refused() || !tr__mul_size(count ? count : 1, size ? size : 1, &bytes)) {
        return NULL;
    }
    return realloc(memory, bytes);
}

char *tr__strdup(const char *text) {
    return refused() ? NULL : strdup(text);
}

char *tr__format(const char *format, ...) {
    char *text = NULL;
    va_list args;
    if (refused()) {
        return NULL;
    }
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? NULL : text;
}

void tr__memory_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void tr__free(void *memory) {
    free(memory);
}

int tr__grow(void **array, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) {
        return 1;
    }
    size_t larger = *capacity ? *capacity * 2 : 8;
    if (larger < need) {
        larger = need;
    }
    void *grown = tr__realloc(*array, larger, size);
    if (!grown) {
        return 0;
    }
    *array = grown;
    *capacity = larger;
    return 1;
}
