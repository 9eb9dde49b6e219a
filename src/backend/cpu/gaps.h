// Vectors whose elements are not adjacent, and dense copies of them in a workspace.
#ifndef TR_BACKEND_CPU_GAPS_H
#define TR_BACKEND_CPU_GAPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tr_gaps {
    int64_t count;  // elements; 0: there is no such vector
    size_t element; // bytes of one, 2 or 4
    size_t step;    // bytes from one to the next
    size_t copy;    // where the dense copy is in the workspace
} tr_gaps;

static inline void tr__gaps_move(const tr_gaps *gaps, const char *from,
                                 size_t from_step, char *to, size_t to_step) {
    for (int64_t i = 0; i < gaps->count; i++, from += from_step, to += to_step) {
        if (gaps->element == 2) {
            memcpy(to, from, 2);
        } else {
            memcpy(to, from, 4);
        }
    }
}

// The dense copy, or `vector` itself where there is none.
static inline void *tr__gaps_dense(const tr_gaps *gaps, const void *vector,
                                   void *workspace) {
    return gaps->count ? (char *)workspace + gaps->copy : (void *)(uintptr_t)vector;
}

// Fills the dense copy.
static inline void tr__gaps_close(const tr_gaps *gaps, const void *vector,
                                  void *workspace) {
    if (gaps->count) {
        tr__gaps_move(gaps, vector, gaps->step, tr__gaps_dense(gaps, vector, workspace),
                      gaps->element);
    }
}

// Writes what the dense copy has to the vector; what is in the gaps stays.
static inline void tr__gaps_open(const tr_gaps *gaps, void *vector, void *workspace) {
    if (gaps->count) {
        tr__gaps_move(gaps, tr__gaps_dense(gaps, vector, workspace), gaps->element,
                      vector, gaps->step);
    }
}

#endif
