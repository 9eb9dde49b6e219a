#include "ops/flat/update/cpu_pieces.h"

#include "base/checked.h"
#include "ops/flat/accumulate/cpu_convert.h"

void tr__update_all_pieces(const tr_update_walk *walk,
                           void (*visit)(const tr_update_piece *),
                           void (*done)(const tr_update_walk *walk, int64_t first,
                                        int64_t count)) {
    int64_t count = tr_shape_count(walk->desc->in[0].shape);
    bool whole = walk->desc->in[0].dtype == TR_F32 && !done;
    int64_t most = whole ? count : TR_CONVERT_ELEMENTS;
    for (int64_t at = 0; at < count; at += most) {
        int64_t now = tr__min_i64(count - at, most), first = walk->attr->first + at;
        tr__update_pieces(walk, first, now,
                          tr__sums_at(walk->desc, walk->launch, at, now), visit);
        if (done) {
            done(walk, first, now);
        }
    }
}
