// How fast this processor multiplies matrices, measured just now.
#ifndef TR_BACKEND_CPU_RATE_H
#define TR_BACKEND_CPU_RATE_H

// Flops a second of a product of 1024 x 768 x 768 in f32 with that many threads, the
// best of a few in about 50 ms. 0 where memory or the product cannot be had.
double tr__cpu_product_rate(int threads);

#endif
