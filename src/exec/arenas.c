#include "exec/executor.h"

tr_status tr__arenas_create(const tr_plan *plan, tr_arena *arenas[TR_SPACES],
                            tr_error *err) {
    tr_status status = TR_OK;
    for (int space = 0; space < TR_SPACE_NVME && status == TR_OK; space++) {
        size_t bytes = (size_t)plan->arena_bytes[space];
        if (bytes > 0) {
            status = tr__arena_create(tr_space_name((tr_space)space), bytes,
                                      &arenas[space], err);
        }
    }
    return status;
}

void tr__arenas_destroy(tr_arena *arenas[TR_SPACES]) {
    for (int space = 0; space < TR_SPACES; space++) {
        tr__arena_destroy(arenas[space]);
        arenas[space] = NULL;
    }
}
