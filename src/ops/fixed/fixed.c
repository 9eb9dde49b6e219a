#include "ops/fixed/fixed.h"

int tr__fold_cpu_generic(const float *x, int64_t count, double scale, double limit,
                         bool add, int64_t *sums);
void tr__unfold_cpu_generic(const int64_t *sums, int64_t count, double scale, float *x);
#if defined(__x86_64__)
int tr__fold_cpu_avx2(const float *x, int64_t count, double scale, double limit,
                      bool add, int64_t *sums);
void tr__unfold_cpu_avx2(const int64_t *sums, int64_t count, double scale, float *x);
int tr__fold_cpu_avx512(const float *x, int64_t count, double scale, double limit,
                        bool add, int64_t *sums);
void tr__unfold_cpu_avx512(const int64_t *sums, int64_t count, double scale, float *x);
#endif

// The best of a table that is there for this instruction set.
static int best(tr_isa isa) {
    return isa < TR_ISA_COUNT ? (int)isa : TR_ISA_COUNT - 1;
}

tr_fold_function tr__fold_choose(tr_isa isa) {
    static const tr_fold_function cpu[TR_ISA_COUNT] = TR_ISA_TABLE(tr__fold_cpu);
    for (int i = best(isa); i >= 0; i--) {
        if (cpu[i]) {
            return cpu[i];
        }
    }
    return tr__fold_reference;
}

tr_unfold_function tr__unfold_choose(tr_isa isa) {
    static const tr_unfold_function cpu[TR_ISA_COUNT] = TR_ISA_TABLE(tr__unfold_cpu);
    for (int i = best(isa); i >= 0; i--) {
        if (cpu[i]) {
            return cpu[i];
        }
    }
    return tr__unfold_reference;
}
