// Work that people wait for: once it has taken a second, a note every two seconds says
// what it is, and how far it has come.
#ifndef TR_BASE_WAIT_H
#define TR_BASE_WAIT_H

#include "base/log.h"

#include <stdint.h>

typedef struct tr_wait {
    const tr_log *log; // NULL: nobody is told
    const char *what;  // "reading the weights"
    double next;       // tr__seconds() of the next note
} tr_wait;

tr_wait tr__wait_begin(const tr_log *log, const char *what);
// "reading the weights: 40%"; nothing where all is done.
void tr__wait_part(tr_wait *wait, double done, double total);
// Where nobody knows how much there is: "planning: 120 plans".
void tr__wait_count(tr_wait *wait, int64_t count, const char *of);

#endif
