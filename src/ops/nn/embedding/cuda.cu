#include "ops/nn/embedding/cuda_rows.cuh"

template <int N, class T>
static __device__ void add_to(tr_cuda_vector<N> *sum, const T *x, bool aligned) {
    tr_cuda_vector<N> v = tr_cuda_load<N>(x, aligned);
    TR_CUDA_UNROLL
    for (int k = 0; k < N; k++) {
        sum->e[k] += v.e[k];
    }
}

template <class T, int N> static __device__ void embed(const tr_cuda_embed_args &a) {
    const tr_cuda_embedding &e = a.of;
    const T *wte = (const T *)a.wte, *wpe = (const T *)a.wpe;
    const T *before = (const T *)a.before;
    T *y = (T *)a.y;
    bool aligned = tr_cuda_is_aligned(wte) && tr_cuda_is_aligned(wpe) &&
                   tr_cuda_is_aligned(before) && tr_cuda_is_aligned(y);
    TR_CUDA_LOOP(v, e.rows * e.width / N) {
        int64_t i = v * N, row = i / e.width, c = i % e.width;
        int64_t token = row_of(e, e.ids[row]);
        tr_cuda_vector<N> sum = {};
        if (before) {
            add_to(&sum, before + i, aligned);
        }
        if (token >= 0) {
            add_to(&sum, wte + token * e.width + c, aligned);
        }
        if (wpe) {
            add_to(&sum, wpe + place_of(e, row) * e.width + c, aligned);
        }
        tr_cuda_store<N>(y + i, sum, a.add, aligned);
    }
}

template <class T> static __device__ void embed_rows(const tr_cuda_embed_args &a) {
    TR_CUDA_BY_WIDTH(T, a.of.width, embed, a);
}

extern "C" __global__ void tr_cuda_embed(tr_cuda_embed_args a) {
    TR_CUDA_BY_REAL(a.real, embed_rows, a);
}
TR_CUDA_KERNEL(tr_cuda_embed);
