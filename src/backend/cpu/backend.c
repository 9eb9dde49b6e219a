#include "backend/cpu/backend.h"

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"

#include <omp.h>

static tr_target here(void) {
    return (tr_target){.backend = TR_BACKEND_CPU,
                       .level = (int)tr__cpu_isa(),
                       .workers = omp_get_max_threads()};
}

static const char *level_name(int level) {
    return level >= 0 && level < TR_ISA_COUNT ? tr__isa_name((tr_isa)level) : NULL;
}

const tr_backend tr__cpu_backend = {
    .name = "cpu",
    .kernel = tr__cpu_kernel,
    .here = here,
    .level_name = level_name,
};
