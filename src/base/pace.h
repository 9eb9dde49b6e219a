// When a queue's thread begins a task that waits on it.
//
// Here: at once. The tests link another pace, late or drawn at random, which shows that
// nobody counts on a task that he has not waited for.
#ifndef TR_BASE_PACE_H
#define TR_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

// May the task of this ticket begin, when somebody waits for tickets up to `awaited`?
bool tr__pace_begins(int64_t ticket, int64_t awaited);

#endif
