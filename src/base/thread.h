// Threads of our own, beside OpenMP's, and which threads signals go to.
#ifndef TR_BASE_THREAD_H
#define TR_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

// Starts a thread to which no signal goes: signals go to the threads that expect them.
// Returns 0 or an error number.
int tr__thread_start(void *(*run)(void *argument), void *argument, pthread_t *thread);
// Waits for its end, for so many seconds at most. false: it goes on.
bool tr__thread_join_within(pthread_t thread, int seconds);

// From now on no signal comes to this thread, but for those of its own mistakes
// (SIGSEGV and the like). before: what came until now, for `release`; may be NULL.
void tr__signals_hold(sigset_t *before);
// Those that were asked for meanwhile come now.
void tr__signals_release(const sigset_t *before);

// A condition whose timed waits go by tr__clock_after.
void tr__condition_init(pthread_cond_t *condition);

#endif
