#include "base/arena.h"

#include "base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

struct tr_arena {
    char *mapping;
    size_t mapped;
    char *base; // aligned to HUGE_PAGE inside the mapping
    size_t bytes;
    size_t high_water;
};

tr_status tr__arena_create(const char *space, size_t bytes, tr_arena **out,
                           tr_error *err) {
    tr_arena *arena = tr__calloc(1, sizeof *arena);
    if (!arena) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    if (bytes > SIZE_MAX - HUGE_PAGE) {
        tr__free(arena);
        return tr_fail(err, TR_MEMORY, "%s arena of %zu bytes: too large", space,
                       bytes);
    }
    arena->bytes = bytes;
    arena->mapped = bytes + HUGE_PAGE;
    void *mapping = mmap(NULL, arena->mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        tr__free(arena);
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s",
                       space, bytes, strerror(errno));
    }
    arena->mapping = mapping;
    uintptr_t address =
        ((uintptr_t)mapping + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    arena->base = (char *)address;
    // Large pages make the first touch and every pass over the parameters cheaper.
    // Small arenas stay on small pages, so that rounding does not outgrow the ledger.
    if (bytes >= 8 * (size_t)HUGE_PAGE) {
        madvise(arena->base, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    *out = arena;
    return TR_OK;
}

void tr__arena_destroy(tr_arena *arena) {
    if (arena) {
        munmap(arena->mapping, arena->mapped);
        tr__free(arena);
    }
}

void *tr__arena_view(tr_arena *arena, size_t offset, size_t bytes) {
    if (offset > arena->bytes || bytes > arena->bytes - offset) {
        fprintf(stderr, "tranche: view [%zu, +%zu) outside an arena of %zu bytes\n",
                offset, bytes, arena->bytes);
        abort();
    }
    if (offset + bytes > arena->high_water) {
        arena->high_water = offset + bytes;
    }
    return arena->base + offset;
}

size_t tr__arena_bytes(const tr_arena *arena) {
    return arena->bytes;
}

size_t tr__arena_high_water(const tr_arena *arena) {
    return arena->high_water;
}
