// What this machine has.
#ifndef TR_BASE_MACHINE_H
#define TR_BASE_MACHINE_H

#include <stdint.h>

// Bytes of memory that the process may come to hold: the machine's, or the limit of the
// control group that it is in (version 1 or 2) where that is lower. 0: not known.
int64_t tr__machine_memory(void);
// Bytes that may still be written to the disk of a folder. -1: not known.
int64_t tr__disk_free(const char *folder);
// The most memory that this process has had, bytes. 0: not known.
int64_t tr__process_peak(void);

#endif
