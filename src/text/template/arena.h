// Memory of one template, or of one rendering: given out in pieces, freed as a whole.
#ifndef TR_TEXT_TEMPLATE_ARENA_H
#define TR_TEXT_TEMPLATE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tr_jinja_arena { // zero-initialized but for `limit`: empty
    struct tr_jinja_chunk *chunk;
    size_t used, limit; // bytes
    bool failed;        // the system has no memory (else: over the limit)
} tr_jinja_arena;

// Zeroed, aligned for any type; NULL: no memory, or over the limit.
void *tr__jinja_arena_take(tr_jinja_arena *arena, size_t count, size_t size);
void tr__jinja_arena_release(tr_jinja_arena *arena);

#endif
