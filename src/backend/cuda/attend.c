// In how much memory cuDNN computes an attention on sm_90, as its plans for it say
// (tests/cuda/libraries/plans.c asks every version that is listed here).
#include "backend/cuda/attend.h"

#include "backend/attention.h"
#include "base/checked.h"

bool tr__cuda_attend_knows(int64_t version) {
    return version >= TR_ATTENTION_FIRST && version <= TR_ATTENTION_LAST;
}

static bool is_known(const tr_cuda_attend_shape *s) {
    enum { SHORTEST = 64, HALF_HEAD = 64, HEAD = 128, LONGEST = 1 << 20 };
    return tr__cuda_attend_knows(s->version) &&
           (s->depth == HALF_HEAD || s->depth == HEAD) && s->context >= SHORTEST &&
           s->context <= LONGEST && s->context % SHORTEST == 0;
}

// Gradients of the scores, 2 bytes each, in tiles of keys, and, where heads share keys,
// what each of them gives the gradients of these.
static int64_t backward_room(const tr_cuda_attend_shape *s) {
    enum { TILE = 128 };
    int64_t rows = s->batch * s->heads * s->context;
    int64_t keys = tr__round_up(s->context, TILE);
    int64_t shared = s->pairs < s->heads ? 4 * s->depth : 0;
    return TR_CUDA_ATTEND_LEAST + rows * (2 * keys + shared);
}

int64_t tr__cuda_attend_room(const tr_cuda_attend_shape *s) {
    return !is_known(s) ? -1 : s->backward ? backward_room(s) : TR_CUDA_ATTEND_LEAST;
}
