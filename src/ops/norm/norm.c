#include "ops/norm/norm.h"

void tr__norm_cpu_generic(const float *x, int64_t count, double *partials);
#if defined(__x86_64__)
void tr__norm_cpu_avx2(const float *x, int64_t count, double *partials);
void tr__norm_cpu_avx512(const float *x, int64_t count, double *partials);
#endif

tr_norm_function tr__norm_choose(tr_isa isa) {
    static const tr_norm_function cpu[TR_ISA_COUNT] = TR_ISA_TABLE(tr__norm_cpu);
    for (int i = (int)isa; i >= 0; i--) {
        if (i < TR_ISA_COUNT && cpu[i]) {
            return cpu[i];
        }
    }
    return tr__norm_reference;
}

double tr__norm_sum(double so_far, const double *partials, int64_t blocks) {
    double sum = so_far;
    for (int64_t i = 0; i < blocks; i++) {
        sum += partials[i];
    }
    return sum;
}
