// What a kernel is chosen and prepared for.
#ifndef TRANCHE_TARGET_H
#define TRANCHE_TARGET_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tr_backend_id {
    TR_BACKEND_CPU, // the processor, its cores and its memory
    TR_BACKEND_COUNT
} tr_backend_id;

typedef struct tr_target {
    tr_backend_id backend;
    // Of the architecture: the best kernels to use, as the backend counts them. Those
    // of the CPU backend are its instruction sets. -1: plain reference kernels only.
    int level;
    int workers; // that share a launch: threads of the CPU backend
} tr_target;

#ifdef __cplusplus
}
#endif
#endif
