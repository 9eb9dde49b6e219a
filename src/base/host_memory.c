// The host's memory for arenas: pages of the system, large ones where it pays.
#include "base/arena.h"
#include "base/memory.h"
#include "base/poison.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

typedef struct mapped {
    char *mapping;
    size_t length;
    char *base; // aligned to HUGE_PAGE inside the mapping
    size_t bytes;
} mapped;

// What lies in the mapping before and behind the memory is nobody's.
static void guard(const mapped *m) {
    char *end = m->base + m->bytes;
    ASAN_POISON_MEMORY_REGION(m->mapping, (size_t)(m->base - m->mapping));
    ASAN_POISON_MEMORY_REGION(end, (size_t)(m->mapping + m->length - end));
}

// Before the addresses are given back: other memory may come to lie there.
static void unguard(const mapped *m) {
    ASAN_UNPOISON_MEMORY_REGION(m->mapping, m->length);
}

// Maps room for `bytes`; `base` is aligned in it.
static tr_status map(mapped *to, const char *space, size_t bytes, tr_error *err) {
    if (bytes > SIZE_MAX - HUGE_PAGE) {
        return tr_fail(err, TR_MEMORY, "%s arena of %zu bytes: too large", space,
                       bytes);
    }
    size_t length = bytes + HUGE_PAGE;
    void *mapping = mmap(NULL, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena of %zu bytes: %s",
                       space, bytes, strerror(errno));
    }
    uintptr_t address =
        ((uintptr_t)mapping + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    *to = (mapped){mapping, length, (char *)address, bytes};
    // Large pages make the first touch and every pass over the parameters cheaper.
    // Small arenas stay on small pages, so that rounding does not outgrow the ledger.
    if (bytes >= 8 * (size_t)HUGE_PAGE) {
        madvise(to->base, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    guard(to);
    return TR_OK;
}

static tr_status take(const char *space, size_t bytes, void **memory, char **base,
                      tr_error *err) {
    mapped *m = tr__calloc(1, sizeof *m);
    if (!m) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    tr_status status = map(m, space, bytes, err);
    if (status != TR_OK) {
        tr__free(m);
        return status;
    }
    *memory = m;
    *base = m->base;
    return TR_OK;
}

// The old pages themselves move to the new place. Not by the C library's mremap: in its
// place MPICH's library puts a function that loses the new address.
static bool move_pages(char *from, size_t bytes, char *to) {
    return bytes == 0 || syscall(SYS_mremap, from, bytes, bytes,
                                 MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

static tr_status grow(void *memory, const char *space, size_t bytes, char **base,
                      tr_error *err) {
    mapped *m = memory, old = *m;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (old.bytes + page - 1) / page * page;
    tr_status status = map(m, space, bytes, err);
    if (status != TR_OK) {
        return status;
    }
    if (!move_pages(old.base, whole, m->base)) {
        status = tr_fail(err, TR_MEMORY, "the %s arena cannot grow to %zu bytes: %s",
                         space, bytes, strerror(errno));
        unguard(m);
        munmap(m->mapping, m->length);
        *m = old;
        return status;
    }
    unguard(&old);
    char *after = old.base + whole; // what has not moved: before and after it
    if (old.base > old.mapping) {
        munmap(old.mapping, (size_t)(old.base - old.mapping));
    }
    if (after < old.mapping + old.length) {
        munmap(after, (size_t)(old.mapping + old.length - after));
    }
    *base = m->base;
    return TR_OK;
}

static void give_back(void *memory) {
    mapped *m = memory;
    unguard(m);
    munmap(m->mapping, m->length);
    tr__free(m);
}

const tr_memory_source tr__host_memory = {
    .take = take, .grow = grow, .give_back = give_back};
