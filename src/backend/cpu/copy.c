#include "backend/cpu/copy.h"

#include "backend/cpu/isa.h"

#include <string.h>

extern const tr_copy_kernel tr__copy_cpu_generic;
#if defined(__x86_64__)
extern const tr_copy_kernel tr__copy_cpu_avx2, tr__copy_cpu_avx512;
#endif

static const tr_copy_kernel *const kernels[TR_ISA_COUNT] = TR_ISA_TABLE(&tr__copy_cpu);

void tr__copy_bytes(const void *from, int64_t bytes, int past, void *to) {
    if (past) {
        kernels[tr__cpu_isa()]->bytes(from, bytes, to);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}
