#ifndef TR_BACKEND_CUDA_DRIVER_NCCL_H
#define TR_BACKEND_CUDA_DRIVER_NCCL_H

#include "backend/cuda/driver.h"

enum { TR_NCCL_ERROR = 300000 }; // above CUDA's own errors: NCCL's result is added

// What tr_cuda_driver's functions of these names do, in the device's context.
const char *tr__nccl_missing(void);
const char *tr__nccl_error_text(int error);
int tr__nccl_invite(void *invitation);
int tr__nccl_join(const void *invitation, int members, int member, void **peers);
int tr__nccl_state(void *peers, bool *busy);
int tr__nccl_exchange(const tr_cuda_exchange *parts, int count, void *peers,
                      void *stream);
int tr__nccl_leave(void *peers, bool broken);

#endif
