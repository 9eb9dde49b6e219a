// Copies from end to end, by one thread: what a stream of copies does.
#ifndef TR_BACKEND_CPU_COPY_H
#define TR_BACKEND_CPU_COPY_H

#include <stdint.h>

// `to` and `from` do not overlap.
//
// to = from. `past`: past the caches, for what is too large to be found there again; it
// takes a third of the memory's traffic off, which is reading `to`.
void tr__copy_bytes(const void *from, int64_t bytes, int past, void *to);

// Past the caches; one for each instruction set.
typedef struct tr_copy_kernel {
    void (*bytes)(const void *from, int64_t bytes, void *to);
} tr_copy_kernel;

#endif
