// What the stand-in for cuBLASLt has been asked.
#ifndef TEST_CUDA_LIBRARIES_CUBLAS_LT_H
#define TEST_CUDA_LIBRARIES_CUBLAS_LT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lt_seen {
    int asked, products; // how to compute one; to do so
    uint32_t schemes;    // of sums in parts, that it was last allowed
    const void *stream;  // of the last product
    bool fast;           // it was last asked for sums that keep fewer bits
    bool lacks_sums;     // it has no products that sum a factor
} lt_seen;

const lt_seen *lt_look(void);
void lt_lack_sums(bool lacks); // at first it does not

#endif
