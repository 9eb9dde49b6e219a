// The threads of OpenMP that compute for a calling thread: how many, and that they get
// no signals.
#ifndef TR_BACKEND_CPU_TEAM_H
#define TR_BACKEND_CPU_TEAM_H

// Until the end the calling thread's parallel regions have `threads` threads. The
// others get no more signals, whatever they compute later: a product by oneDNN, while
// it runs, has its stack pointer in a heap buffer, and what the kernel stores there for
// a handler would overwrite the heap before the buffer. (The calling thread holds
// signals while a product runs, and no longer.) Returns what the end is to be given.
int tr__team_begin(int threads);
void tr__team_end(int before);

#endif
