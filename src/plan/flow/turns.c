#include "plan/flow/turns.h"

#include "base/checked.h"

// Forwards before the first backward's own.
static int64_t ahead(const tr_mesh *mesh, int64_t waves) {
    int64_t behind = mesh->size[TR_AXIS_PIPELINE] - 1 - mesh->at[TR_AXIS_PIPELINE];
    return tr__min_i64(behind, waves);
}

tr_pipeline_turn tr__turn_of(const tr_mesh *mesh, int64_t waves, int64_t i) {
    int64_t first = ahead(mesh, waves), both = 2 * (waves - first), at = i - first;
    if (at < 0) {
        return (tr_pipeline_turn){i, false};
    }
    if (at >= both) {
        return (tr_pipeline_turn){i - waves, true};
    }
    bool backward = at % 2 == 1;
    return (tr_pipeline_turn){at / 2 + (backward ? 0 : first), backward};
}

int64_t tr__turns_under_way(const tr_mesh *mesh, int64_t waves) {
    return tr__min_i64(ahead(mesh, waves) + 1, waves);
}
