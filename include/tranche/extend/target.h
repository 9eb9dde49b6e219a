// What a kernel is chosen and prepared for.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_TARGET_H
#define TRANCHE_EXTEND_TARGET_H

#include <tranche/api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tr_backend_id {
    TR_BACKEND_CPU,  // the processor, its cores and its memory
    TR_BACKEND_CUDA, // an NVIDIA GPU
    TR_BACKEND_COUNT,
    TR_BACKEND_HOST = TR_BACKEND_CPU, // what computes on the host beside any device
} tr_backend_id;

typedef struct tr_target {
    tr_backend_id backend;
    // Of the architecture: the best kernels to use, as the backend counts them. Those
    // of the CPU backend are its instruction sets, those of CUDA compute capabilities.
    // -1: plain reference kernels only.
    int level;
    int workers; // that share a launch: threads of the CPU backend
    // The version of the library that attention is taken from where it can be, 919 for
    // cuDNN 9.19. 0: the backend's own kernels alone.
    int attention;
} tr_target;

// The version of the library of this machine that a GPU's attention may be taken from,
// 919 for cuDNN 9.19. 0: there is none, and *why says so, a text that stays.
TR_API int tr_attention_version(const char **why);

#ifdef __cplusplus
}
#endif
#endif
