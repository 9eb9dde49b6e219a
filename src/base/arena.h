// One arena: the tensor memory of one memory space. Taken once, at the size the plan
// fixed; buffers are views at planned offsets.
#ifndef TR_BASE_ARENA_H
#define TR_BASE_ARENA_H

#include <tranche/status.h>

#include <stddef.h>

typedef struct tr_arena tr_arena;

// Zeroed memory of `bytes` bytes, aligned to 2 MiB, not touched yet. `space` ("device")
// names it in messages. TR_MEMORY when the system refuses.
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
