#include "text/template/arena.h"

#include "base/memory.h"

#include <stdint.h>

enum { ALIGN = 16, CHUNK = 1 << 15 };

struct tr_jinja_chunk {
    struct tr_jinja_chunk *next;
    size_t used, bytes;
    _Alignas(ALIGN) unsigned char memory[];
};

static struct tr_jinja_chunk *add_chunk(tr_jinja_arena *arena, size_t bytes) {
    size_t room = bytes > CHUNK ? bytes : CHUNK;
    struct tr_jinja_chunk *chunk = tr__calloc(1, sizeof *chunk + room);
    if (chunk) {
        chunk->bytes = room;
        chunk->next = arena->chunk;
        arena->chunk = chunk;
    }
    return chunk;
}

void *tr__jinja_arena_take(tr_jinja_arena *arena, size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > arena->limit) {
        return NULL;
    }
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > arena->limit - arena->used) {
        return NULL;
    }
    struct tr_jinja_chunk *chunk = arena->chunk;
    if (!chunk || chunk->bytes - chunk->used < bytes) {
        chunk = add_chunk(arena, bytes);
    }
    arena->failed = !chunk;
    if (!chunk) {
        return NULL;
    }
    void *memory = chunk->memory + chunk->used;
    chunk->used += bytes;
    arena->used += bytes;
    return memory;
}

void tr__jinja_arena_release(tr_jinja_arena *arena) {
    while (arena->chunk) {
        struct tr_jinja_chunk *next = arena->chunk->next;
        tr__free(arena->chunk);
        arena->chunk = next;
    }
    arena->used = 0;
}
