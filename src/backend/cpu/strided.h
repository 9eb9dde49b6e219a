// Vectors whose elements are not adjacent, and dense copies of them in a workspace.
#ifndef TR_BACKEND_CPU_STRIDED_H
#define TR_BACKEND_CPU_STRIDED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tr_strided {
    int64_t count;  // elements; 0: there is no such vector
    size_t element; // bytes of one, 2 or 4
    size_t step;    // bytes from one to the next
    size_t copy;    // where the dense copy is in the workspace
} tr_strided;

static inline void tr__strided_move(const tr_strided *strided, const char *from,
                                    size_t from_step, char *to, size_t to_step) {
    for (int64_t i = 0; i < strided->count; i++, from += from_step, to += to_step) {
        if (strided->element == 2) {
            memcpy(to, from, 2);
        } else {
            memcpy(to, from, 4);
        }
    }
}

// The dense copy, or `vector` itself where there is none.
static inline void *tr__strided_dense(const tr_strided *strided, const void *vector,
                                      void *workspace) {
    return strided->count ? (char *)workspace + strided->copy
                          : (void *)(uintptr_t)vector;
}

// Fills the dense copy.
static inline void tr__strided_close(const tr_strided *strided, const void *vector,
                                     void *workspace) {
    if (strided->count) {
        tr__strided_move(strided, vector, strided->step,
                         tr__strided_dense(strided, vector, workspace),
                         strided->element);
    }
}

// Writes what the dense copy has to the vector; what is in the gaps stays.
static inline void tr__strided_open(const tr_strided *strided, void *vector,
                                    void *workspace) {
    if (strided->count) {
        tr__strided_move(strided, tr__strided_dense(strided, vector, workspace),
                         strided->element, vector, strided->step);
    }
}

#endif
