// Functions of libraries that are opened at run time.
#ifndef TR_BACKEND_CUDA_SYMBOL_H
#define TR_BACKEND_CUDA_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

// function: where the library's function of that name is put, a pointer to a function.
// false: the library has none, and the pointer is NULL.
static inline bool tr__cuda_symbol(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#endif
