#include "base/arena.h"

#include "base/memory.h"

struct tr_arena {
    const tr_memory_source *source;
    void *memory; // the source's
    const char *space;
    char *base;
    size_t bytes;
    size_t high_water;
};

tr_status tr__arena_create_from(const tr_memory_source *source, const char *space,
                                size_t bytes, tr_arena **out, tr_error *err) {
    tr_arena *arena = tr__calloc(1, sizeof *arena);
    if (!arena) {
        return tr_fail(err, TR_MEMORY, "no memory for the %s arena's record", space);
    }
    *arena = (tr_arena){.source = source, .space = space, .bytes = bytes};
    tr_status status = source->take(space, bytes, &arena->memory, &arena->base, err);
    if (status != TR_OK) {
        tr__free(arena);
        return status;
    }
    *out = arena;
    return TR_OK;
}

tr_status tr__arena_create(const char *space, size_t bytes, tr_arena **out,
                           tr_error *err) {
    return tr__arena_create_from(&tr__host_memory, space, bytes, out, err);
}

tr_status tr__arena_grow(tr_arena *arena, size_t bytes, tr_error *err) {
    if (bytes <= arena->bytes) {
        return TR_OK;
    }
    tr_status status =
        arena->source->grow(arena->memory, arena->space, bytes, &arena->base, err);
    arena->bytes = status == TR_OK ? bytes : arena->bytes;
    return status;
}

void tr__arena_destroy(tr_arena *arena) {
    if (arena) {
        arena->source->give_back(arena->memory);
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
