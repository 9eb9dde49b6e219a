// Time, in seconds: monotonic but for tr__wall_seconds.
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

#include <time.h>

double tr__seconds(void);                        // since an arbitrary start
double tr__wall_seconds(void);                   // since 1970-01-01 00:00 UTC
struct timespec tr__clock_after(double seconds); // from now
void tr__sleep(double seconds);                  // or until a signal

#endif
