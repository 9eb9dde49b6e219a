#include "backend/cpu/half.h"

#include "backend/cpu/parallel.h"

extern const tr_half_kernel tr__half_cpu_generic;
#if defined(__x86_64__)
extern const tr_half_kernel tr__half_cpu_avx2, tr__half_cpu_avx512;
#endif

enum { LINE = 64 }; // elements: threads share no cache line

const tr_half_kernel *tr__half_kernel(tr_isa isa) {
    static const tr_half_kernel *const kernels[TR_ISA_COUNT] =
        TR_ISA_TABLE(&tr__half_cpu);
    return kernels[isa];
}

void tr__half_widen(tr_dtype dtype, const void *from, int64_t count, int threads,
                    float *to) {
    const tr_half_kernel *kernel = tr__half_kernel(tr__cpu_isa());
    const uint16_t *source = from;
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, LINE, t, threads);
        (dtype == TR_BF16 ? kernel->widen_bf16 : kernel->widen_f16)(
            source + r.begin, r.end - r.begin, to + r.begin);
    }
}

// What a kernel makes of f32, by up to `threads` threads.
static void into_half(void (*kernel)(const float *, int64_t, uint16_t *),
                      const float *from, int64_t count, int threads, uint16_t *to) {
    threads = tr__threads_for(count, 1, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, LINE, t, threads);
        kernel(from + r.begin, r.end - r.begin, to + r.begin);
    }
}

void tr__half_narrow(tr_dtype dtype, const float *from, int64_t count, int threads,
                     void *to) {
    const tr_half_kernel *kernel = tr__half_kernel(tr__cpu_isa());
    into_half(dtype == TR_BF16 ? kernel->narrow_bf16 : kernel->narrow_f16, from, count,
              threads, to);
}

void tr__half_add(tr_dtype dtype, const float *x, int64_t count, int threads,
                  void *to) {
    const tr_half_kernel *kernel = tr__half_kernel(tr__cpu_isa());
    into_half(dtype == TR_BF16 ? kernel->add_bf16 : kernel->add_f16, x, count, threads,
              to);
}
