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

// Eight elements as memory has them: those of 16 bits take half the registers.
template <class T> struct tr_cuda_packed { uint4 words[sizeof(T) / 2]; };

template <class T>
static __device__ inline void tr_cuda_unpack(float *e, uint32_t two, T) {
    T low = {(uint16_t)two}, high = {(uint16_t)(two >> 16)};
    e[0] = tr_cuda_get(low);
    e[1] = tr_cuda_get(high);
}

template <class T>
static __device__ inline void tr_cuda_unpack_words(float *e, const uint4 *words, T) {
    tr_cuda_unpack(e, words->x, T());
    tr_cuda_unpack(e + 2, words->y, T());
    tr_cuda_unpack(e + 4, words->z, T());
    tr_cuda_unpack(e + 6, words->w, T());
}

static __device__ inline void tr_cuda_unpack_words(float *e, const uint4 *words,
                                                   float) {
    TR_CUDA_UNROLL
    for (int i = 0; i < 2; i++) {
        e[4 * i] = tr__f32_of_bits(words[i].x);
        e[4 * i + 1] = tr__f32_of_bits(words[i].y);
        e[4 * i + 2] = tr__f32_of_bits(words[i].z);
        e[4 * i + 3] = tr__f32_of_bits(words[i].w);
    }
}

template <class T>
static __device__ inline tr_cuda_vector<TR_CUDA_VECTOR>
tr_cuda_unpacked(const tr_cuda_packed<T> &packed) {
    tr_cuda_vector<TR_CUDA_VECTOR> v;
    tr_cuda_unpack_words(v.e, packed.words, T());
    return v;
}

template <class T>
static __device__ inline void tr_cuda_pack_words(uint4 *words, const float *e, T) {
    *words = {tr_cuda_pack(e[0], e[1], T()), tr_cuda_pack(e[2], e[3], T()),
              tr_cuda_pack(e[4], e[5], T()), tr_cuda_pack(e[6], e[7], T())};
}

static __device__ inline void tr_cuda_pack_words(uint4 *words, const float *e, float) {
    TR_CUDA_UNROLL
    for (int i = 0; i < 2; i++) {
        words[i] = {tr__f32_bits(e[4 * i]), tr__f32_bits(e[4 * i + 1]),
                    tr__f32_bits(e[4 * i + 2]), tr__f32_bits(e[4 * i + 3])};
    }
}

// The vector as it is kept: rounded to T.
template <class T>
static __device__ inline tr_cuda_packed<T>
tr_cuda_pack_vector(const tr_cuda_vector<TR_CUDA_VECTOR> &v) {
    tr_cuda_packed<T> packed;
    tr_cuda_pack_words(packed.words, v.e, T());
    return packed;
}

// Eight elements at a multiple of 16 bytes.
template <class T>
static __device__ inline tr_cuda_packed<T> tr_cuda_load_eight(const T *from) {
    tr_cuda_packed<T> packed;
    TR_CUDA_UNROLL
    for (int i = 0; i < (int)sizeof(T) / 2; i++) {
        packed.words[i] = tr_cuda_load16((const char *)from + 16 * i);
    }
    return packed;
}

template <class T>
static __device__ inline void tr_cuda_store_eight(T *to,
                                                  const tr_cuda_packed<T> &packed) {
    TR_CUDA_UNROLL
    for (int i = 0; i < (int)sizeof(T) / 2; i++) {
        tr_cuda_store16((char *)to + 16 * i, packed.words[i]);
    }
}

template <int N, class T>
static __device__ inline tr_cuda_vector<N> tr_cuda_load(const T *from, bool aligned) {
    tr_cuda_vector<N> v;
    if constexpr (N == TR_CUDA_VECTOR) {
        if (aligned) {
            return tr_cuda_unpacked(tr_cuda_load_eight(from));
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
            tr_cuda_store_eight(to, tr_cuda_pack_vector<T>(v));
            return;
        }
    }
    TR_CUDA_UNROLL
    for (int i = 0; i < N; i++) {
        tr_cuda_set(&to[i], v.e[i]);
    }
}

// Eight elements as they are kept, wherever they begin.
template <class T>
static __device__ inline tr_cuda_packed<T> tr_cuda_load_packed(const T *from,
                                                               bool aligned) {
    if (aligned) {
        return tr_cuda_load_eight(from);
    }
    return tr_cuda_pack_vector<T>(tr_cuda_load<TR_CUDA_VECTOR>(from, false));
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

// Two vectors of an operand: what a thread has on its way at a time.
template <int N> struct tr_cuda_pair { tr_cuda_vector<N> first, second; };

template <int N, class T>
static __device__ inline tr_cuda_pair<N> tr_cuda_load_pair(const T *from, int64_t first,
                                                           int64_t second) {
    return {tr_cuda_load<N>(from + first, true), tr_cuda_load<N>(from + second, true)};
}

// y[i] = f(i, x[i]...) of the vectors that begin at `first` and, if it is another one,
// at `second`.
template <int N, class T, class F, class... P>
static __device__ inline void tr_cuda_map_pair(T *y, bool add, const F &f,
                                               int64_t first, int64_t second,
                                               const P &...x) {
    tr_cuda_store<N>(y + first, tr_cuda_apply<N>(f, first, x.first...), add, true);
    if (second != first) {
        tr_cuda_store<N>(y + second, tr_cuda_apply<N>(f, second, x.second...), add,
                         true);
    }
}

// y[i] = f(i, x[i]...), or +=, for i of `count`, by all threads of the grid together
// (tr__cuda_vectors). A thread loads 32 bytes of each operand before it computes: two
// vectors of 16 bits.
template <class T, class F, class... X>
static __device__ inline void tr_cuda_map(T *y, bool add, int64_t count, const F &f,
                                          const X *...x) {
    enum { N = TR_CUDA_VECTOR, TURN = sizeof(T) == 2 ? 2 : 1 };
    bool aligned = tr_cuda_is_aligned(y) && (tr_cuda_is_aligned(x) && ...);
    int64_t whole = aligned ? count / N * N : 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    int64_t begin = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * N;
    for (int64_t i = begin; i < whole; i += TURN * step) {
        int64_t second = TURN == 2 && i + step < whole ? i + step : i;
        tr_cuda_map_pair<N>(y, add, f, i, second,
                            tr_cuda_load_pair<N>(x, i, second)...);
    }
    TR_CUDA_LOOP(left, count - whole) {
        int64_t i = whole + left;
        tr_cuda_give(&y[i], f(i, tr_cuda_get(x[i])...), add);
    }
}

#endif
