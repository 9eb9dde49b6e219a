// Monotonic time, in seconds.
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

#include <time.h>

double tr__seconds(void);                        // since an arbitrary start
struct timespec tr__clock_after(double seconds); // from now
void tr__sleep(double seconds);                  // or until a signal

#endif
