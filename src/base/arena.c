#include "base/arena.h"

#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

struct tr_arena {
    const char *space;
    char *mapping;
    size_t mapped;
    char *base; // aligned to HUGE_PAGE inside the mapping
    size_t bytes;
    size_t high_water;
};

// Maps room for `bytes`; `base` is aligned in it.
static tr_status map(tr_arena *arena, size_t bytes, tr_error *err) {
    if (bytes > SIZE_MAX - HUGE_PAGE) {
        return tr_fail(err, TR_MEMORY, "%s arena of %zu bytes: too large", arena->space,
                       bytes);
    }
    size_t mapped = bytes + HUGE_PAGE;
    void *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s",
                       arena->space, bytes, strerror(errno));
    }
    uintptr_t address =
        ((uintptr_t)mapping + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    arena->mapping = mapping;
    arena->mapped = mapped;
    arena->base = (char *)address;
    arena->bytes = bytes;
    // Large pages make the first touch and every pass over the parameters cheaper.
    // Small arenas stay on small pages, so that rounding does not outgrow the ledger.
    if (bytes >= 8 * (size_t)HUGE_PAGE) {
        madvise(arena->base, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return TR_OK;
}

tr_status tr__arena_create(const char *space, size_t bytes, tr_arena **out,
                           tr_error *err) {
    tr_arena *arena = tr__calloc(1, sizeof *arena);
    if (!arena) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    arena->space = space;
    tr_status status = map(arena, bytes, err);
    if (status != TR_OK) {
        tr__free(arena);
        return status;
    }
    *out = arena;
    return TR_OK;
}

// The old pages themselves move to the new place. Not by the C library's mremap: in its
// place MPICH's library puts a function that loses the new address.
static bool move_pages(char *from, size_t bytes, char *to) {
    return bytes == 0 || syscall(SYS_mremap, from, bytes, bytes,
                                 MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

tr_status tr__arena_grow(tr_arena *arena, size_t bytes, tr_error *err) {
    tr_arena old = *arena;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (old.bytes + page - 1) / page * page;
    if (bytes <= old.bytes) {
        return TR_OK;
    }
    tr_status status = map(arena, bytes, err);
    if (status != TR_OK) {
        return status;
    }
    if (!move_pages(old.base, whole, arena->base)) {
        status = tr_fail(err, TR_MEMORY, "the %s arena cannot grow to %zu bytes: %s",
                         old.space, bytes, strerror(errno));
        munmap(arena->mapping, arena->mapped);
        *arena = old;
        return status;
    }
    char *after = old.base + whole; // what has not moved: before and after it
    if (old.base > old.mapping) {
        munmap(old.mapping, (size_t)(old.base - old.mapping));
    }
    if (after < old.mapping + old.mapped) {
        munmap(after, (size_t)(old.mapping + old.mapped - after));
    }
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
        return NULL;
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
