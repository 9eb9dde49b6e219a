// The backends of this build. (Tests link others in place of this file.)
#include "backend/backend.h"

#include "backend/cpu/backend.h"
#include "backend/cuda/backend.h"

static const tr_backend *const backends[TR_BACKEND_COUNT] = {
    [TR_BACKEND_CPU] = &tr__cpu_backend,
    [TR_BACKEND_CUDA] = &tr__cuda_backend,
};

const tr_backend *tr__backend(tr_backend_id id) {
    return backends[id];
}
