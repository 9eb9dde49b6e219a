#ifndef TR_BACKEND_CUDA_BACKEND_H
#define TR_BACKEND_CUDA_BACKEND_H

#include "backend/backend.h"

extern const tr_backend tr__cuda_backend;

// ---- memory.c
extern const tr_memory_source tr__cuda_memory;        // of the device
extern const tr_memory_source tr__cuda_pinned_memory; // of the host, for the device
// ---- queue.c
extern const tr_queue_table tr__cuda_queues;
// CUDA's stream; NULL, CUDA's usual one, for NULL.
void *tr__cuda_stream(const tr_device_queue *queue);
// Of what a plan has for libraries, so many bytes go to where it begins for them: plans
// know no alignment but their own, and cuBLASLt wants its workspace at a multiple of
// 256 bytes (its documentation, cublasLtMatmul).
enum { TR_CUDA_SCRATCH_ALIGNMENT = 256 };
// The memory that libraries may work in (tr_queue_table.lend), as aligned. NULL-safe.
void *tr__cuda_scratch(const tr_device_queue *queue, int64_t *bytes);
// What was put into the queue, a kernel's name that stays, and CUDA's error, or 0.
// NULL-safe.
void tr__cuda_queue_note(tr_device_queue *queue, const char *what, int error);
// ---- peers.c
extern const tr_peer_table tr__cuda_peers;

#endif
