// Functions that kernels of a GPU call, too: TR_DEVICE static inline ...
#ifndef TR_BASE_DEVICE_H
#define TR_BASE_DEVICE_H

#ifdef __CUDACC__
#define TR_DEVICE __host__ __device__
#else
#define TR_DEVICE
#endif

#endif
