// Vectorised access: eight elements side by side, which a thread loads and stores
// together. Memory is read at full speed only while each multiprocessor has some 30 KiB
// under way, which are 16 bytes of each of its threads; single elements of 16 bits
// would be 4 KiB.
//
// How elements are grouped follows from shapes alone, so that no sum depends on where
// its operands lie: what is not `aligned` is loaded one by one into the same places.
#ifndef TR_BACKEND_CUDA_VECTOR_H
#define TR_BACKEND_CUDA_VECTOR_H

#include "backend/cuda/real.cuh"

#ifdef __CUDACC__ // else the stand-in for CUDA has these functions

// 16 bytes, at a multiple of 16 bytes.
static __device__ inline uint4 tr_cuda_load16(const void *from) {
    return *(const uint4 *)from;
}

static __device__ inline void tr_cuda_store16(void *to, uint4 words) {
    *(uint4 *)to = words;
}

#endif

static __device__ inline bool tr_cuda_is_aligned(const void *x) {
    return (uintptr_t)x % 16 == 0;
}

// N elements as f32, in registers.
template <int N> struct tr_cuda_vector { float e[N]; };

// Elements of a vector in rows of so many.
#define TR_CUDA_BY_WIDTH(T, width, function, ...)                                      \
    do {                                                                               \
        if ((width) % TR_CUDA_VECTOR == 0) {                                           \
            function<T, TR_CUDA_VECTOR>(__VA_ARGS__);                                  \
        } else {                                                                       \
            function<T, 1>(__VA_ARGS__);                                               \
        }                                                                              \
    } while (0)

template <class T>
static __device__ inline void tr_cuda_unpack(float *e, uint32_t two, T) {
    T low = {(uint16_t)two}, high = {(uint16_t)(two >> 16)};
    e[0] = tr_cuda_get(low);
    e[1] = tr_cuda_get(high);
}

template <class T>
static __device__ inline void tr_cuda_get_eight(float *e, const T *from) {
    uint4 words = tr_cuda_load16(from);
    tr_cuda_unpack(e, words.x, T());
    tr_cuda_unpack(e + 2, words.y, T());
    tr_cuda_unpack(e + 4, words.z, T());
    tr_cuda_unpack(e + 6, words.w, T());
}

static __device__ inline void tr_cuda_get_eight(float *e, const float *from) {
    TR_CUDA_UNROLL
    for (int i = 0; i < TR_CUDA_VECTOR; i += 4) {
        uint4 words = tr_cuda_load16(from + i);
        e[i] = tr__f32_of_bits(words.x);
        e[i + 1] = tr__f32_of_bits(words.y);
        e[i + 2] = tr__f32_of_bits(words.z);
        e[i + 3] = tr__f32_of_bits(words.w);
    }
}

template <class T>
static __device__ inline void tr_cuda_set_eight(T *to, const float *e) {
    uint4 words = {tr_cuda_pack(e[0], e[1], T()), tr_cuda_pack(e[2], e[3], T()),
                   tr_cuda_pack(e[4], e[5], T()), tr_cuda_pack(e[6], e[7], T())};
    tr_cuda_store16(to, words);
}

static __device__ inline void tr_cuda_set_eight(float *to, const float *e) {
    TR_CUDA_UNROLL
    for (int i = 0; i < TR_CUDA_VECTOR; i += 4) {
        uint4 words = {tr__f32_bits(e[i]), tr__f32_bits(e[i + 1]),
                       tr__f32_bits(e[i + 2]), tr__f32_bits(e[i + 3])};
        tr_cuda_store16(to + i, words);
    }
}

template <int N, class T>
static __device__ inline tr_cuda_vector<N> tr_cuda_load(const T *from, bool aligned) {
    tr_cuda_vector<N> v;
    if constexpr (N == TR_CUDA_VECTOR) {
        if (aligned) {
            tr_cuda_get_eight(v.e, from);
            return v;
        }
    }
    TR_CUDA_UNROLL
    for (int i = 0; i < N; i++) {
        v.e[i] = tr_cuda_get(from[i]);
    }
    return v;
}

// *to = v, or +=.
template <int N, class T>
static __device__ inline void tr_cuda_store(T *to, tr_cuda_vector<N> v, bool add,
                                            bool aligned) {
    if (add) {
        tr_cuda_vector<N> before = tr_cuda_load<N>(to, aligned);
        TR_CUDA_UNROLL
        for (int i = 0; i < N; i++) {
            v.e[i] = before.e[i] + v.e[i];
        }
    }
    if constexpr (N == TR_CUDA_VECTOR) {
        if (aligned) {
            tr_cuda_set_eight(to, v.e);
            return;
        }
    }
    TR_CUDA_UNROLL
    for (int i = 0; i < N; i++) {
        tr_cuda_set(&to[i], v.e[i]);
    }
}

// f of the elements of vectors that begin at element i.
template <int N, class F, class... V>
static __device__ inline tr_cuda_vector<N> tr_cuda_apply(const F &f, int64_t i,
                                                         const V &...v) {
    tr_cuda_vector<N> y;
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        y.e[k] = f(i + k, v.e[k]...);
    }
    return y;
}

// y[i] = f(i, x[i]...), or +=, for i of `count`, by all threads of the grid together
// (tr__cuda_vectors).
template <class T, class F, class... X>
static __device__ inline void tr_cuda_map(T *y, bool add, int64_t count, const F &f,
                                          const X *...x) {
    enum { N = TR_CUDA_VECTOR };
    bool aligned = tr_cuda_is_aligned(y) && (tr_cuda_is_aligned(x) && ...);
    int64_t whole = aligned ? count / N : 0;
    TR_CUDA_LOOP(v, whole) {
        int64_t i = v * N;
        tr_cuda_store<N>(y + i, tr_cuda_apply<N>(f, i, tr_cuda_load<N>(x + i, true)...),
                         add, true);
    }
    TR_CUDA_LOOP(left, count - whole * N) {
        int64_t i = whole * N + left;
        tr_cuda_give(&y[i], f(i, tr_cuda_get(x[i])...), add);
    }
}

#endif
