#include "ops/flat/update/pieces.h"

#include "base/checked.h"
#include "ops/optimizers/state_types.h"

// The first range that ends behind element `first` of the flat buffer.
static const tr_update_range *first_range(const tr_update_order *order, int64_t flat,
                                          int64_t first) {
    size_t low = 0, high = order->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const tr_update_range *at = &order->ranges[middle];
        bool before =
            at->flat < flat || (at->flat == flat && at->offset + at->count <= first);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return order->ranges + low;
}

static tr_state_type type_of(const tr_update_walk *walk, const tr_optimizer *optimizer,
                             int s) {
    int i = TR_UPDATE_STATE + s;
    tr_dtype dtype = i < walk->desc->out_count ? walk->desc->out[i].dtype : TR_NONE;
    return dtype == TR_BF16                ? TR_STATE_BF16
           : dtype != TR_U8                ? TR_STATE_F32
           : optimizer->states[s].positive ? TR_STATE_U8
                                           : TR_STATE_I8;
}

static tr_update_piece make_piece(const tr_update_walk *walk,
                                  const tr_update_range *range, int64_t first,
                                  int64_t count, const float *grads) {
    const tr_update_order *order = walk->order;
    tr_update_piece piece = {.walk = walk,
                             .range = range,
                             .optimizer = range->apart && order->optimizer->apart
                                              ? order->optimizer->apart
                                              : order->optimizer,
                             .hyper = order->hyper[range->group],
                             .first = first};
    int64_t at = first - walk->attr->first;
    piece.hyper.weight_decay = range->undecayed ? 0 : piece.hyper.weight_decay;
    piece.update = (tr_update){
        .param = walk->param + at,
        .grad = grads,
        .count = count,
        .grad_scale = order->grad_scale,
        .number = order->number,
        .beta1_power = order->power[range->group][0],
        .beta2_power = order->power[range->group][1],
    };
    for (int s = 0; s < TR_OPTIMIZER_STATES; s++) {
        char *state = walk->launch->out[TR_UPDATE_STATE + s];
        tr_state_type type = type_of(walk, piece.optimizer, s);
        int64_t before = tr__packed_bytes(tr__state_format(type)->packing, at);
        piece.update.state[s] = state ? (float *)(void *)(state + before) : NULL;
        piece.update.type[s] = type;
    }
    return piece;
}

void tr__update_pieces(const tr_update_walk *walk, int64_t first, int64_t count,
                       const float *grads, void (*visit)(const tr_update_piece *)) {
    const tr_update_order *order = walk->order;
    const tr_update_range *range = first_range(order, walk->attr->flat, first);
    const tr_update_range *end = order->ranges + order->range_count;
    for (; range < end && range->flat == walk->attr->flat &&
           range->offset < first + count;
         range++) {
        int64_t begin = tr__max_i64(range->offset, first);
        int64_t stop = tr__min_i64(range->offset + range->count, first + count);
        tr_update_piece piece = make_piece(walk, range, begin, stop - begin,
                                           grads ? grads + (begin - first) : NULL);
        visit(&piece);
    }
}
