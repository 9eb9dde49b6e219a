// What the stand-in for NVIDIA's driver has seen.
#ifndef TEST_CUDA_LIBRARIES_CUDA_H
#define TEST_CUDA_LIBRARIES_CUDA_H

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_MEMORY_MIB = 64, CUDA_PAGE = 2 << 20, CUDA_ARGS_MOST = 64 };

typedef struct cuda_launch {
    unsigned blocks[3], threads[3], shared;
    unsigned char args[CUDA_ARGS_MOST];
    size_t bytes;
} cuda_launch;

typedef struct cuda_seen {
    const char *fault; // the first thing that the driver would not have allowed
    size_t physical;   // bytes of pages that are held or mapped
    int reserved, registered, streams, events; // that there are
    cuda_launch launch;                        // the last
} cuda_seen;

const cuda_seen *cuda_look(void);
// Events pass so much later than they are recorded, from now on.
void cuda_set_slow(double seconds);
// From then on every call fails, as after a kernel that failed.
void cuda_break(bool broken);

#endif
