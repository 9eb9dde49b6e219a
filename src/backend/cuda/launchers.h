// What the header of an op's launchers (cuda.h) begins with. They are C functions that
// C++ files define; a build without TRANCHE_CUDA has none of them, and no device to
// call them for (driver_none.c).
#ifndef TR_BACKEND_CUDA_LAUNCHERS_H
#define TR_BACKEND_CUDA_LAUNCHERS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
#define TR_CUDA_LAUNCHER extern "C"
#elif defined(TR_HAS_CUDA)
#define TR_CUDA_LAUNCHER
#else
#define TR_CUDA_LAUNCHER __attribute__((weak))
#endif

#endif
