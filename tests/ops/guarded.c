#include "ops/guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { GUARD = 256, FILL = 0xFF };

static size_t block_bytes(size_t bytes) {
    return (GUARD + bytes + GUARD + 63) / 64 * 64;
}

test_memory test_memory_take(size_t bytes) {
    test_memory memory = {.bytes = bytes};
    if (bytes == 0) {
        return memory;
    }
    size_t all = block_bytes(bytes);
    memory.block = aligned_alloc(64, all);
    assert_non_null(memory.block);
    memset(memory.block, FILL, all);
    memory.data = memory.block + GUARD;
    ASAN_POISON_MEMORY_REGION(memory.block, GUARD);
    ASAN_POISON_MEMORY_REGION(memory.block + GUARD + bytes, all - GUARD - bytes);
    return memory;
}

static bool is_filled(const unsigned char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (from[i] != FILL) {
            return false;
        }
    }
    return true;
}

bool test_memory_intact(const test_memory *memory) {
    if (memory->bytes == 0) {
        return true;
    }
    size_t all = block_bytes(memory->bytes), end = GUARD + memory->bytes;
    ASAN_UNPOISON_MEMORY_REGION(memory->block, all);
    bool intact =
        is_filled(memory->block, GUARD) && is_filled(memory->block + end, all - end);
    ASAN_POISON_MEMORY_REGION(memory->block, GUARD);
    ASAN_POISON_MEMORY_REGION(memory->block + end, all - end);
    return intact;
}

void test_memory_give(test_memory *memory) {
    if (memory->block) {
        ASAN_UNPOISON_MEMORY_REGION(memory->block, block_bytes(memory->bytes));
        free(memory->block);
    }
    *memory = (test_memory){0};
}
