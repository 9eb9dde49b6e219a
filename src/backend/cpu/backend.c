#include "backend/cpu/backend.h"

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/rate.h"
#include "backend/cpu/team.h"

#include <omp.h>

static tr_target here(int number) {
    (void)number;
    return (tr_target){.backend = TR_BACKEND_CPU,
                       .level = (int)tr__cpu_isa(),
                       .workers = omp_get_max_threads()};
}

static const char *level_name(int level) {
    return level >= 0 && level < TR_ISA_COUNT ? tr__isa_name((tr_isa)level) : NULL;
}

// Of one thread: products as vectors are wide.
static double usual_rate(int level, int workers) {
    static const double products[TR_ISA_COUNT] = {
        [TR_ISA_GENERIC] = 8e9, [TR_ISA_AVX2] = 60e9, [TR_ISA_AVX512] = 120e9};
    return products[level] * workers;
}

const tr_backend tr__cpu_backend = {
    .name = "cpu",
    .kernel = tr__cpu_kernel,
    .here = here,
    .level_name = level_name,
    .begin = tr__team_begin,
    .end = tr__team_end,
    .measure_rate = tr__cpu_product_rate,
    .usual_rate = usual_rate,
};
