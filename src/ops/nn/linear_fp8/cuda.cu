#include "ops/nn/linear_fp8/cuda.h"

#include "backend/cuda/vector.cuh"
#include "base/fp8.h"

enum {
    TILE = TR_CUDA_FP8_TILE,
    LINE = TILE + 4, // bytes from one line of a tile to the next, in other banks
    CHUNK = 16,      // bytes that a thread writes
};

static __device__ uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static __device__ uint32_t size_bits(float x) {
    return tr__f32_bits(x) & 0x7FFFFFFF;
}

// Integers, so the order of threads changes nothing.
template <class T> static __device__ void largest(const tr_cuda_fp8_largest_args &a) {
    enum { N = TR_CUDA_VECTOR };
    const T *x = (const T *)a.x;
    int64_t whole = tr_cuda_is_aligned(x) ? a.count / N : 0;
    uint32_t most = 0;
    TR_CUDA_LOOP(i, whole) {
        tr_cuda_vector<N> v = tr_cuda_load<N>(x + i * N, true);
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            most = larger(most, size_bits(v.e[k]));
        }
    }
    TR_CUDA_LOOP(i, a.count - whole * N) {
        most = larger(most, size_bits(tr_cuda_get(x[whole * N + i])));
    }
    for (int k = TR_CUDA_LANES / 2; k > 0; k /= 2) {
        most = larger(most, __shfl_xor_sync(TR_CUDA_WARP, most, k));
    }
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        atomicMax(a.largest, most);
    }
}

extern "C" __global__ void tr_cuda_fp8_largest(tr_cuda_fp8_largest_args a) {
    TR_CUDA_BY_REAL(a.real, largest, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_fp8_largest);

// The codes of two numbers, as tr__fp8_of_f32 makes them.
static __device__ uint32_t two_codes(tr_fp8 format, float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t both;
    if (format == TR_FP8_E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
            : "=h"(both)
            : "f"(high), "f"(low));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
            : "=h"(both)
            : "f"(high), "f"(low));
    }
    return both;
#else
    return tr__fp8_of_f32(format, low) | (uint32_t)tr__fp8_of_f32(format, high) << 8;
#endif
}

// Four codes in each word.
struct alignas(8) eight_codes {
    uint32_t words[2];
};

// Those of a row from a column on; 0 behind what x has.
template <class T>
static __device__ eight_codes codes_at(const tr_cuda_fp8_round_args &a, float by,
                                       int64_t row, int64_t column) {
    enum { N = TR_CUDA_VECTOR };
    const T *x = (const T *)a.x + row * a.width + column;
    tr_fp8 format = (tr_fp8)a.format;
    tr_cuda_vector<N> v = {};
    eight_codes codes;
    if (row < a.rows && a.width % N == 0 && column < a.width) {
        v = tr_cuda_load<N>(x, tr_cuda_is_aligned(x));
    } else {
        TR_CUDA_UNROLL
        for (int k = 0; k < N; k++) {
            v.e[k] = row < a.rows && column + k < a.width ? tr_cuda_get(x[k]) : 0;
        }
    }
    bool real = row < a.rows; // a scale that is NaN leaves zeros behind the rows
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        v.e[k] = real && column + k < a.width ? v.e[k] * by : 0;
    }
    TR_CUDA_UNROLL
    for (int k = 0; k < 2; k++) {
        codes.words[k] = two_codes(format, v.e[4 * k], v.e[4 * k + 1]) |
                         two_codes(format, v.e[4 * k + 2], v.e[4 * k + 3]) << 16;
    }
    return codes;
}

// Lines of the tile are columns of x; a line's chunk becomes part of a row of codes.
static __device__ void put_tile(const tr_cuda_fp8_round_args &a, const uint8_t *tile,
                                int64_t row, int64_t column) {
    int t = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    int line = t / (TILE / CHUNK), place = t % (TILE / CHUNK) * CHUNK;
    const uint32_t *from = (const uint32_t *)(const void *)(tile + line * LINE + place);
    if (column + line < a.width && row + place < a.across_row) {
        uint4 words = {from[0], from[1], from[2], from[3]};
        tr_cuda_store16(a.across + (column + line) * a.across_row + row + place, words);
    }
}

// blockIdx: a tile's columns and rows of x, which is read once. What is transposed
// passes through shared memory, so that both sides are read and written along their
// rows.
template <class T> static __device__ void round_tile(const tr_cuda_fp8_round_args &a) {
    enum { ACROSS = TILE / TR_CUDA_VECTOR };
    __shared__ uint32_t tile_words[TILE * LINE / 4];
    uint8_t *tile = (uint8_t *)tile_words;
    tr_fp8_scale scale = tr__fp8_scale_of((tr_fp8)a.format, *a.largest);
    int64_t row = blockIdx.y * (int64_t)TILE, column = blockIdx.x * (int64_t)TILE;
    int t = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    TR_CUDA_UNROLL
    for (int n = 0; n < TILE * ACROSS / TR_CUDA_THREADS; n++) {
        int i = n * TR_CUDA_THREADS + t, r = i / ACROSS,
            c = i % ACROSS * TR_CUDA_VECTOR;
        eight_codes codes = codes_at<T>(a, scale.by, row + r, column + c);
        if (a.across) {
            TR_CUDA_UNROLL
            for (int k = 0; k < TR_CUDA_VECTOR; k++) {
                tile[(c + k) * LINE + r] = (uint8_t)(codes.words[k / 4] >> 8 * (k % 4));
            }
        }
        if (a.to && row + r < a.rows && column + c < a.to_row) {
            uint8_t *to = a.to + (row + r) * a.to_row + column + c;
            *(eight_codes *)(void *)to = codes;
        }
    }
    __syncthreads();
    if (a.across) {
        put_tile(a, tile, row, column);
    }
    if (row + column + t == 0) {
        *a.back = scale.back;
    }
}

extern "C" __global__ void tr_cuda_fp8_round(tr_cuda_fp8_round_args a) {
    TR_CUDA_BY_REAL(a.real, round_tile, a);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_fp8_round);
