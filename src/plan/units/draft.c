// A program while it is put together.
#include "plan/units/compiler.h"

int64_t tr__draft_workspace(tr_draft *d, size_t bytes) {
    int32_t now = (int32_t)d->program->count;
    d->temps[d->temp_count] = (tr_interval){(int64_t)bytes, now, now, 0};
    return (int64_t)d->temp_count++;
}

void tr__draft_take(tr_draft *d) {
    d->program->count++;
}
