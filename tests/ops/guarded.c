#include "ops/guarded.h"

#include "base/arena.h"
#include "base/poison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 256, FILL = 0xFF, NUMBER = 0x3F };

// What a guard holds at `distance` bytes from the data: by turns an f32 of 0.75, which
// any addition changes, and a NaN, which shows in whatever is made of it.
static unsigned char guard_byte(size_t distance) {
    return distance / 4 % 2 ? FILL : NUMBER;
}

static size_t block_bytes(size_t bytes) {
    return (GUARD + bytes + GUARD + 63) / 64 * 64;
}

static void fill_guards(unsigned char *block, size_t end, size_t all) {
    for (size_t i = 0; i < GUARD; i++) {
        block[GUARD - 1 - i] = guard_byte(i);
    }
    for (size_t i = end; i < all; i++) {
        block[i] = guard_byte(i - end);
    }
}

static const tr_memory_source *source_now;

void test_memory_from(const tr_memory_source *source) {
    source_now = source;
}

static void take_block(test_memory *memory, size_t bytes) {
    tr_error err = {0};
    if (!source_now) {
        memory->block = aligned_alloc(64, bytes);
    } else if (tr__arena_create_from(source_now, "tests", bytes, &memory->arena,
                                     &err) == TR_OK) {
        memory->block = tr__arena_view(memory->arena, 0, bytes);
    }
    if (!memory->block) {
        fail_msg("no memory for a test: %s", err.message);
    }
}

test_memory test_memory_take(size_t bytes) {
    test_memory memory = {.bytes = bytes};
    if (bytes == 0) {
        return memory;
    }
    size_t all = block_bytes(bytes);
    take_block(&memory, all);
    memory.data = memory.block + GUARD;
    memset(memory.data, FILL, bytes);
    fill_guards(memory.block, GUARD + bytes, all);
    ASAN_POISON_MEMORY_REGION(memory.block, GUARD);
    ASAN_POISON_MEMORY_REGION(memory.block + GUARD + bytes, all - GUARD - bytes);
    return memory;
}

static bool guards_are_filled(const unsigned char *block, size_t end, size_t all) {
    bool same = true;
    for (size_t i = 0; i < GUARD; i++) {
        same = same && block[GUARD - 1 - i] == guard_byte(i);
    }
    for (size_t i = end; i < all; i++) {
        same = same && block[i] == guard_byte(i - end);
    }
    return same;
}

bool test_memory_intact(const test_memory *memory) {
    if (memory->bytes == 0) {
        return true;
    }
    size_t all = block_bytes(memory->bytes), end = GUARD + memory->bytes;
    ASAN_UNPOISON_MEMORY_REGION(memory->block, all);
    bool intact = guards_are_filled(memory->block, end, all);
    ASAN_POISON_MEMORY_REGION(memory->block, GUARD);
    ASAN_POISON_MEMORY_REGION(memory->block + end, all - end);
    return intact;
}

void test_memory_give(test_memory *memory) {
    if (memory->block) {
        ASAN_UNPOISON_MEMORY_REGION(memory->block, block_bytes(memory->bytes));
    }
    if (memory->arena) {
        tr__arena_destroy(memory->arena);
    } else {
        free(memory->block);
    }
    *memory = (test_memory){0};
}
