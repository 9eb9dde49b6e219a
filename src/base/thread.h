// Threads of our own, beside OpenMP's.
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <pthread.h>

// Starts a thread to which no signal goes: signals go to the threads that expect them.
// Returns 0 or an error number.
int tr__thread_start(void *(*run)(void *argument), void *argument, pthread_t *thread);

// A condition whose timed waits go by tr__clock_after.
void tr__condition_init(pthread_cond_t *condition);

#endif
