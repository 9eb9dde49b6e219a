// Monotonic time.
#ifndef TR_BASE_CLOCK_H
#define TR_BASE_CLOCK_H

double tr__seconds(void); // since an arbitrary start

#endif
