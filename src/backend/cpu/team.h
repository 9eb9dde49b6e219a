// The threads of OpenMP that compute for a calling thread: how many, and that they get
// no signals.
#ifndef TR_BACKEND_CPU_TEAM_H
#define TR_BACKEND_CPU_TEAM_H

#include <signal.h>
#include <stdbool.h>

// Does this version of oneDNN keep the stack pointer in a heap buffer while a product
// of f32 runs, those of its convolutions included?  All before 3.11.2 do.
bool tr__dnnl_moves_stack(int major, int minor, int patch);

// Until the end the calling thread's parallel regions have `threads` threads. The
// others get no more signals, whatever they compute later: while a product by oneDNN
// before 3.11.2 runs, its stack pointer is in a heap buffer, and what the kernel stores
// there for a handler would overwrite the heap before the buffer. Returns what the end
// is to be given.
int tr__team_begin(int threads);
void tr__team_end(int before);

// What the calling thread had before a product.
typedef struct tr_held {
    int threads;
    sigset_t signals;
    bool holds; // signals
} tr_held;

// While oneDNN computes, with so many threads, and no longer, the calling thread gets
// no signals either, where this oneDNN moves the stack pointer.
void tr__team_hold(int threads, tr_held *before);
void tr__team_release(int threads, const tr_held *before);

#endif
