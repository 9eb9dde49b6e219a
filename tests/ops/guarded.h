// Memory of exactly the size asked for, between zones that nothing may touch.
#ifndef TESTS_OPS_GUARDED_H
#define TESTS_OPS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

struct tr_arena;
struct tr_memory_source;

typedef struct test_memory {
    void *data; // [bytes], 64-byte aligned; NULL when bytes is 0
    size_t bytes;
    unsigned char *block;   // the guard before, data, the guard after
    struct tr_arena *arena; // which has that; NULL: malloc's
} test_memory;

// From then on memory is of this source, which both the host and a device reach; NULL:
// malloc's, as at first.
void test_memory_from(const struct tr_memory_source *source);
// Starts as 0xFF bytes: NaN as f32 and f64, -1 as i32. Under ASan the guards are
// poisoned too.
test_memory test_memory_take(size_t bytes);
bool test_memory_intact(const test_memory *memory); // are the guards untouched?
void test_memory_give(test_memory *memory);         // back; takes zeroed ones too

#endif
