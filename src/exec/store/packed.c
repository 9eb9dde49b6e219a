#include "exec/store/packed.h"

#include "base/checked.h"
#include "ops/flat/packed_state/packed_state.h"
#include "plan/flow/residency.h"

#include <string.h>

// Blocks of a state: what moves at once, and what of it is asked for.
typedef struct packed {
    tr_blocks blocks;
    const tr_part_row *row;
    int64_t first, count; // of the elements of `blocks`: whole blocks of the state
    unsigned char *state; // where the host sees them, all of `blocks`
    float *values;        // and where these are unpacked
} packed;

// Elements [at, at + count) of the piece, of which there may be fewer.
static packed find(const tr_executor *ex, const tr_piece *piece, int64_t at,
                   int64_t count) {
    const tr_plan *plan = ex->plan;
    const tr_plan_param *info = &plan->params[piece->param];
    tr_part part = (tr_part)(TR_PART_STATE + piece->state);
    const tr_flat *flat = &plan->flats[info->flat];
    const tr_flat_range *range = &flat->part[part];
    packed p = {.blocks = {.flat = flat, .part = part},
                .row = tr__state_of(ex, piece->param, piece->state)};
    tr_blocks *b = &p.blocks;
    int64_t within = p.row->packing.elements;
    int64_t block =
        tr__is_on_nvme(plan, range) ? tr__nvme_elements(plan, flat, part) : within;
    b->element = info->offset + piece->first + at;
    b->first = b->element - (b->element - range->first) % block;
    int64_t need = tr__round_up(b->element + count - b->first, block);
    int64_t left = range->first + range->count - b->first;
    b->count = tr__min_i64(tr__min_i64(need, left), tr__exchange_elements(plan));
    int64_t begin = b->element - b->first;
    p.first = begin - begin % within;
    p.count = tr__min_i64(tr__round_up(begin + count, within), b->count) - p.first;
    p.values = tr__memory(ex, plan->exchange);
    p.state = tr__is_away(ex, range)
                  ? (unsigned char *)(p.values + tr__exchange_elements(plan))
                  : (unsigned char *)tr__memory(ex, range->buffer) +
                        tr__packed_bytes(p.row->packing, b->first - range->first);
    return p;
}

static tr_status move(const tr_executor *ex, const packed *p, tr_direction way,
                      tr_error *err) {
    const tr_blocks *b = &p->blocks;
    const tr_flat_range *range = &b->flat->part[b->part];
    if (tr__is_on_nvme(ex->plan, range)) {
        return tr__move_blocks(ex, b, p->state, way, err);
    }
    if (!tr__is_on_device(ex, range)) {
        return TR_OK;
    }
    char *there = (char *)tr__memory(ex, range->buffer) +
                  tr__packed_bytes(p->row->packing, b->first - range->first);
    bool reads = way == TR_TO_HOST;
    return tr__device_copy(ex, reads ? there : (char *)p->state,
                           reads ? (char *)p->state : there,
                           tr__packed_bytes(p->row->packing, b->count), err);
}

static unsigned char *state_at(const packed *p, int64_t element) {
    return p->state + tr__packed_bytes(p->row->packing, element);
}

tr_status tr__packed_borrow(const tr_executor *ex, const tr_piece *piece, int64_t at,
                            tr_piece *run, tr_error *err) {
    tr_state_codes codes;
    packed p = find(ex, piece, at, piece->count - at);
    int64_t begin = p.blocks.element - p.blocks.first;
    *run = *piece;
    run->first += at;
    run->count = tr__min_i64(piece->count - at, p.first + p.count - begin);
    run->data = p.values + begin;
    tr_status status = move(ex, &p, TR_TO_HOST, err);
    if (status == TR_OK) {
        tr__state_codes(p.row->type, &codes);
        tr__state_unpack(tr__state_kernel(ex->plan->host.level), p.row->type, &codes,
                         state_at(&p, p.first), p.count, p.values + p.first);
    }
    return status;
}

tr_status tr__packed_return(const tr_executor *ex, const tr_piece *run, tr_error *err) {
    tr_state_codes codes;
    packed p = find(ex, run, 0, run->count);
    tr__state_codes(p.row->type, &codes);
    tr__state_pack(tr__state_kernel(ex->plan->host.level), p.row->type, &codes,
                   p.values + p.first, p.count, run->scaled, state_at(&p, p.first));
    return move(ex, &p, TR_FROM_HOST, err);
}

// ---- scales

int64_t tr__executor_block(const tr_executor *ex, int param, int state) {
    const tr_flat *flat = &ex->plan->flats[ex->plan->params[param].flat];
    return state >= tr__flat_states(ex->plan, flat)
               ? 1
               : tr__state_of(ex, param, state)->packing.elements;
}

static int64_t blocks_in(const packed *p) {
    return tr__ceil_div(p->count, p->row->packing.elements);
}

static packed find_scales(const tr_executor *ex, const tr_piece *piece, int64_t at) {
    int64_t before =
        at * tr__state_of(ex, piece->param, piece->state)->packing.elements;
    return find(ex, piece, before, piece->count - before);
}

tr_status tr__executor_scales(const tr_executor *ex, const tr_piece *piece, int64_t at,
                              const float **scales, int64_t *count, tr_error *err) {
    packed p = find_scales(ex, piece, at);
    tr_status status = move(ex, &p, TR_TO_HOST, err);
    *count = blocks_in(&p);
    *scales = p.values;
    for (int64_t i = 0; i < *count && status == TR_OK; i++) {
        memcpy(p.values + i, state_at(&p, p.first) + i * p.row->packing.bytes,
               sizeof *p.values);
    }
    return status;
}

tr_status tr__executor_set_scales(const tr_executor *ex, const tr_piece *piece,
                                  int64_t at, const float *scales, int64_t count,
                                  tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t done = 0; done < count && status == TR_OK;) {
        packed p = find_scales(ex, piece, at + done);
        int64_t now = tr__min_i64(blocks_in(&p), count - done);
        status = move(ex, &p, TR_TO_HOST, err);
        for (int64_t i = 0; i < now && status == TR_OK; i++) {
            memcpy(state_at(&p, p.first) + i * p.row->packing.bytes, &scales[done + i],
                   sizeof *scales);
        }
        status = status == TR_OK ? move(ex, &p, TR_FROM_HOST, err) : status;
        done += now;
    }
    return status;
}
