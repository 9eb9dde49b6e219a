#include "exec/executor.h"

#include "backend/backend.h"

static tr_status fit(const tr_plan *plan, tr_space space, tr_arena **arena,
                     tr_error *err) {
    const tr_backend *backend = tr__backend(plan->request.backend);
    size_t bytes = (size_t)plan->arena_bytes[space];
    bool device = space == TR_SPACE_DEVICE;
    if (bytes == 0) {
        return TR_OK;
    }
    if (*arena) {
        return tr__arena_grow(*arena, bytes, err);
    }
    return tr__arena_create_from(device ? tr__backend_memory(backend)
                                        : tr__backend_host_memory(backend),
                                 tr_space_name(space), bytes, arena, err);
}

tr_status tr__arenas_fit(const tr_plan *plan, tr_arena *arenas[TR_SPACES],
                         tr_error *err) {
    const tr_backend *backend = tr__backend(plan->request.backend);
    tr_status status = backend->open ? backend->open(plan->request.device, err) : TR_OK;
    for (int space = 0; space < TR_SPACE_NVME && status == TR_OK; space++) {
        status = fit(plan, (tr_space)space, &arenas[space], err);
    }
    return status;
}

void tr__arenas_destroy(tr_arena *arenas[TR_SPACES]) {
    for (int space = 0; space < TR_SPACES; space++) {
        tr__arena_destroy(arenas[space]);
        arenas[space] = NULL;
    }
}
