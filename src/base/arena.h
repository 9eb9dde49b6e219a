// One arena: the tensor memory of one memory space. Taken once, at the size the plan
// fixed; buffers are views at planned offsets. Its memory may be a device's, which only
// the device reaches: nobody here looks into it.
#ifndef TR_BASE_ARENA_H
#define TR_BASE_ARENA_H

#include <tranche/status.h>

#include <stddef.h>

typedef struct tr_arena tr_arena;

// Where the memory of arenas comes from. `space` names it in messages. TR_MEMORY when
// the system refuses.
typedef struct tr_memory_source {
    // Zeroed memory, aligned to 64 bytes at least: *base is where it begins, *memory
    // the source's own.
    tr_status (*take)(const char *space, size_t bytes, void **memory, char **base,
                      tr_error *err);
    // Larger, with the same contents; *base may be another. An error: it is as it was.
    tr_status (*grow)(void *memory, const char *space, size_t bytes, char **base,
                      tr_error *err);
    void (*give_back)(void *memory);
} tr_memory_source;

// The host's memory, aligned to 2 MiB, not touched yet.
extern const tr_memory_source tr__host_memory;

tr_status tr__arena_create_from(const tr_memory_source *source, const char *space,
                                size_t bytes, tr_arena **out, tr_error *err);
// Of the host's memory. `space` ("device") names it in messages.
tr_status tr__arena_create(const char *space, size_t bytes, tr_arena **out,
                           tr_error *err);
void tr__arena_destroy(tr_arena *arena); // NULL-safe
// Makes it larger: what is in it stays, at the same offsets, and no byte of it is
// copied or there twice; but it moves, so views are to be taken anew. TR_MEMORY: it is
// as it was.
tr_status tr__arena_grow(tr_arena *arena, size_t bytes, tr_error *err);

// The memory at [offset, offset + bytes), and the high-water mark rises to its end.
// NULL: it is not inside of the arena. Who has not made the arena as large as its views
// has to ask.
void *tr__arena_view(tr_arena *arena, size_t offset, size_t bytes);

size_t tr__arena_bytes(const tr_arena *arena);
size_t tr__arena_high_water(const tr_arena *arena); // bytes, the largest end of a view

#endif
