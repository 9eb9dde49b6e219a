// Functions that kernels of a GPU call, too: TR_DEVICE static inline ...
#ifndef TR_BASE_DEVICE_H
#define TR_BASE_DEVICE_H

#ifdef __CUDACC__
#define TR_DEVICE __host__ __device__
#else
#define TR_DEVICE
#endif

// a * b, rounded before a sum takes it. Compilers join both where there is an
// instruction for it, as on GPUs: so a formula would have other bits there.
TR_DEVICE static inline double tr__product(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    double product = a * b;
    __asm__("" : "+m"(product)); // may be any number, to who compiles the sum
    return product;
#endif
}

#endif
