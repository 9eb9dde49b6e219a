// Two plans whose kept buffers lie at the same places: one may go on in the other's
// memory.
#include "plan/flow/plan.h"

static bool same_range(const tr_plan *a, const tr_flat_range *x, const tr_plan *b,
                       const tr_flat_range *y) {
    bool none = x->buffer < 0 && y->buffer < 0;
    if (none || x->buffer < 0 || y->buffer < 0) {
        return none;
    }
    const tr_buffer *p = &a->buffers[x->buffer], *q = &b->buffers[y->buffer];
    return x->first == y->first && x->count == y->count && p->space == q->space &&
           p->offset == q->offset && p->bytes == q->bytes;
}

static bool same_buffer(const tr_plan *a, int x, const tr_plan *b, int y) {
    return x < 0 ? y < 0 : y >= 0 && a->buffers[x].offset == b->buffers[y].offset;
}

bool tr__plans_same_places(const tr_plan *a, const tr_plan *b) {
    bool same = a->flat_count == b->flat_count;
    for (size_t f = 0; same && f < a->flat_count; f++) {
        const tr_flat *x = &a->flats[f], *y = &b->flats[f];
        same = x->count == y->count && same_range(a, &x->param, b, &y->param) &&
               same_range(a, &x->sums, b, &y->sums);
        for (int part = 0; same && part < TR_PARTS; part++) {
            same = same_range(a, &x->part[part], b, &y->part[part]);
        }
    }
    for (int u = 0; same && u < a->unit_count; u++) {
        const tr_plan_unit *x = &a->units[u], *y = &b->units[u];
        same = same_buffer(a, x->states, b, y->states) &&
               same_buffer(a, x->cache, b, y->cache);
    }
    return same;
}
