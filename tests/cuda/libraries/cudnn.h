// What the stand-in for cuDNN has been asked, and what tests make of it.
#ifndef TEST_CUDA_LIBRARIES_CUDNN_H
#define TEST_CUDA_LIBRARIES_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dnn_seen {
    int compiled, executed; // plans
    int alive;              // descriptors that are not destroyed
    void *stream;           // of the last execution
    char refused[256];      // the last error, in words
} dnn_seen;

const dnn_seen *dnn_look(void);
void dnn_set_version(int version); // as cudnnGetVersion gives it; 91900 at first
// Has a backward an engine whose results do not change? At first it has, behind others.
void dnn_set_deterministic(bool has);
// Bytes that engines want more than the real ones.
void dnn_set_more(int64_t bytes);

#endif
