// The processor's cores that this process may run on, and who uses them.
#ifndef TR_BASE_CORES_H
#define TR_BASE_CORES_H

#include <stdint.h>
#include <stdio.h>

// Times are in seconds. Two of these, some seconds apart, tell how much of the cores
// this process and others have used in between.
typedef struct tr_core_times {
    double clock; // tr__seconds()
    double busy;  // that the cores have worked, for whatever process
    double own;   // that they have worked for this process, all threads
    int cores;    // 0: the system does not tell
} tr_core_times;

// Opens /proc/stat.
tr_core_times tr__core_times(void);

// The part of it that reads /proc/stat. cores: those to count, of `core_count` numbers.
// Returns how many of them the file tells of, and what they have worked in `*ticks`.
int tr__core_ticks(FILE *stat, const unsigned char *counted, int core_count,
                   double *ticks);

// Bit i of the mask: the process may run on core i. bytes: of `mask`, whose words the
// caller has cleared.
void tr__cores_mask(uint64_t *mask, size_t bytes);

// Cores that other processes used between the two, on average: 1.5 is one and a half.
double tr__cores_of_others(const tr_core_times *before, const tr_core_times *after);

#endif
