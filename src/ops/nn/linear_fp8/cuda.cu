#include "ops/nn/linear_fp8/cuda.h"

#include "backend/cuda/vector.cuh"
#include "base/fp8.h"

enum {
    N = TR_CUDA_VECTOR,
    ROWS = TR_CUDA_FP8_ROWS,
    COLUMNS = TR_CUDA_FP8_COLUMNS,
    DEEP = 4,               // rows of x that a thread has
    WIDE = COLUMNS / N,     // threads beside each other
    LINE = ROWS / DEEP + 1, // words from a column of a tile to the next
    CHUNK = 16 / DEEP,      // words that a thread writes at once
    CHUNKS = ROWS / DEEP / CHUNK,
};
static_assert(ROWS / DEEP * WIDE == TR_CUDA_THREADS, "a block has a tile");

static __device__ uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static __device__ uint32_t largest_of(const tr_cuda_vector<N> &v, uint32_t most) {
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        most = larger(most, tr__f32_bits(v.e[k]) & 0x7FFFFFFF);
    }
    return most;
}

// Of what all threads of a block have, in all of them. Integers, so no order of them
// changes anything.
template <int THREADS> static __device__ uint32_t block_largest(uint32_t most) {
    enum { WARPS = THREADS / TR_CUDA_LANES };
    __shared__ uint32_t all[WARPS];
    for (int k = TR_CUDA_LANES / 2; k > 0; k /= 2) {
        most = larger(most, __shfl_xor_sync(TR_CUDA_WARP, most, k));
    }
    if (threadIdx.x % TR_CUDA_LANES == 0) {
        all[threadIdx.x / TR_CUDA_LANES] = most;
    }
    __syncthreads();
    TR_CUDA_UNROLL
    for (int warp = 0; warp < WARPS; warp++) {
        most = larger(most, all[warp]);
    }
    return most;
}

// A thread asks for several vectors before it looks at the first. From the end on: the
// cache has what was written last, and then, for who rounds, what is read last here.
template <class T> static __device__ void largest(const tr_cuda_fp8_largest_args &a) {
    enum { AT_ONCE = 4 };
    const T *x = (const T *)a.x;
    int64_t whole = tr_cuda_is_aligned(x) ? a.count / N : 0;
    const T *last = x + (whole - 1) * N;
    int64_t threads = (int64_t)gridDim.x * blockDim.x;
    int64_t first = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, i = first;
    uint32_t most = 0;
    for (; i + (AT_ONCE - 1) * threads < whole; i += AT_ONCE * threads) {
        tr_cuda_vector<N> v[AT_ONCE];
        TR_CUDA_UNROLL
        for (int n = 0; n < AT_ONCE; n++) {
            v[n] = tr_cuda_load<N>(last - (i + n * threads) * N, true);
        }
        TR_CUDA_UNROLL
        for (int n = 0; n < AT_ONCE; n++) {
            most = largest_of(v[n], most);
        }
    }
    for (; i < whole; i += threads) {
        most = largest_of(tr_cuda_load<N>(last - i * N, true), most);
    }
    for (i = whole * N + first; i < a.count; i += threads) {
        most = larger(most, tr__f32_bits(tr_cuda_get(x[i])) & 0x7FFFFFFF);
    }
    most = block_largest<TR_CUDA_FP8_SEARCHING>(most);
    if (threadIdx.x == 0) {
        a.parts[blockIdx.x] = most;
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

// Elements of a row from a column on; 0 behind what x has.
template <class T>
static __device__ tr_cuda_vector<N> elements_at(const tr_cuda_fp8_round_args &a,
                                                int64_t row, int64_t column) {
    const T *x = (const T *)a.x + row * a.width + column;
    tr_cuda_vector<N> v = {};
    if (row < a.rows && column < a.width) {
        v = tr_cuda_load<N>(x, tr_cuda_is_aligned(a.x));
    }
    return v;
}

// A scale that is NaN leaves zeros behind what x has.
static __device__ eight_codes codes_of(const tr_cuda_fp8_round_args &a, float by,
                                       tr_cuda_vector<N> v, int64_t row,
                                       int64_t column) {
    tr_fp8 format = (tr_fp8)a.format;
    eight_codes codes;
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        v.e[k] = row < a.rows && column < a.width ? v.e[k] * by : 0;
    }
    TR_CUDA_UNROLL
    for (int k = 0; k < 2; k++) {
        codes.words[k] = two_codes(format, v.e[4 * k], v.e[4 * k + 1]) |
                         two_codes(format, v.e[4 * k + 2], v.e[4 * k + 3]) << 16;
    }
    return codes;
}

// Where a tile has four rows' codes of a column. Half of the columns have their chunks
// swapped in pairs: with columns of 8 apart, a warp would meet itself in half of the
// banks.
static __device__ int place_in_tile(int column, int fours) {
    return column * LINE + (fours ^ column / (COLUMNS / 2) * CHUNK);
}

// Words of four columns, each of a row, become words of four rows, each of a column.
static __device__ void put_turned(uint32_t *tile, int column, int fours, uint32_t a,
                                  uint32_t b, uint32_t c, uint32_t d) {
    uint32_t ab = __byte_perm(a, b, 0x5140), cd = __byte_perm(c, d, 0x5140);
    uint32_t ab_high = __byte_perm(a, b, 0x7362), cd_high = __byte_perm(c, d, 0x7362);
    tile[place_in_tile(column, fours)] = __byte_perm(ab, cd, 0x5410);
    tile[place_in_tile(column + 1, fours)] = __byte_perm(ab, cd, 0x7632);
    tile[place_in_tile(column + 2, fours)] = __byte_perm(ab_high, cd_high, 0x5410);
    tile[place_in_tile(column + 3, fours)] = __byte_perm(ab_high, cd_high, 0x7632);
}

// A chunk of a tile's column becomes part of a row of codes.
static __device__ void put_tile(const tr_cuda_fp8_round_args &a, const uint32_t *tile,
                                int64_t row, int64_t column) {
    TR_CUDA_UNROLL
    for (int n = 0; n < COLUMNS * CHUNKS / TR_CUDA_THREADS; n++) {
        int i = n * TR_CUDA_THREADS + (int)threadIdx.x;
        int line = i / CHUNKS, fours = i % CHUNKS * CHUNK;
        const uint32_t *from = tile + place_in_tile(line, fours);
        int64_t to = row + fours * DEEP;
        if (column + line < a.width && to < a.across_row) {
            uint4 words = {from[0], from[1], from[2], from[3]};
            tr_cuda_store16(a.across + (column + line) * a.across_row + to, words);
        }
    }
}

// blockIdx: a tile's columns and rows of x, which is read once. What is transposed
// passes through shared memory, so that both sides are read and written along their
// rows.
template <class T>
static __device__ void round_tile(const tr_cuda_fp8_round_args &a, uint32_t *tile) {
    int t = (int)threadIdx.x, c = t % WIDE * N, r = t / WIDE * DEEP;
    int64_t first_row = blockIdx.y * (int64_t)ROWS, row = first_row + r;
    int64_t first_column = blockIdx.x * (int64_t)COLUMNS, column = first_column + c;
    tr_cuda_vector<N> x[DEEP];
    TR_CUDA_UNROLL
    for (int q = 0; q < DEEP; q++) {
        x[q] = elements_at<T>(a, row + q, column);
    }
    __syncthreads(); // else the compiler has x asked for when the scale is known
    uint32_t most =
        block_largest<TR_CUDA_THREADS>(t < a.part_count ? a.parts[t * a.part_step] : 0);
    tr_fp8_scale scale = tr__fp8_scale_of((tr_fp8)a.format, most);
    eight_codes codes[DEEP];
    TR_CUDA_UNROLL
    for (int q = 0; q < DEEP; q++) {
        codes[q] = codes_of(a, scale.by, x[q], row + q, column);
        if (a.to && row + q < a.rows && column < a.to_row) {
            uint8_t *to = a.to + (row + q) * a.to_row + column;
            *(eight_codes *)(void *)to = codes[q];
        }
    }
    if (first_row + first_column + t == 0) {
        *a.back = scale.back;
    }
    if (a.across) {
        TR_CUDA_UNROLL
        for (int k = 0; k < 2; k++) {
            put_turned(tile, c + 4 * k, r / DEEP, codes[0].words[k], codes[1].words[k],
                       codes[2].words[k], codes[3].words[k]);
        }
        __syncthreads();
        put_tile(a, tile, first_row, first_column);
    }
}

extern "C" __global__ void tr_cuda_fp8_round(tr_cuda_fp8_round_args a) {
    __shared__ uint32_t tile[COLUMNS * LINE]; // one for all types
    TR_CUDA_BY_REAL(a.real, round_tile, a, tile);
}
TR_CUDA_KERNEL_MEETS(tr_cuda_fp8_round);
