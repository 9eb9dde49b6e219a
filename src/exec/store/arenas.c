#include "exec/executor.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "base/poison.h"
#include "plan/flow/residency.h"

// Bytes of the buffer that somebody touches: NVMe is read and written in whole blocks.
static int64_t touched(const tr_plan *plan, const tr_buffer *buffer) {
    bool blocks = buffer->space == TR_SPACE_HOST && tr__plan_uses_nvme(plan);
    int64_t end = tr__round_up(buffer->bytes, blocks ? TR_NVME_ALIGNMENT : 1);
    return tr__min_i64(end, plan->arena_bytes[buffer->space] - buffer->offset);
}

// Poisons what no buffer of the plan has at any step: the bytes behind a buffer up to
// the next one, and gaps. What the arena has had before it grew stays open, since
// another plan may lie in it, too (a sampler has two).
static void guard(const tr_plan *plan, tr_space space, tr_arena *arena, size_t before) {
    char *base = tr__arena_view(arena, 0, 0);
    size_t bytes = tr__arena_bytes(arena);
    ASAN_POISON_MEMORY_REGION(base + before, bytes - before);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (buffer->space == space) {
            ASAN_UNPOISON_MEMORY_REGION(base + buffer->offset,
                                        (size_t)touched(plan, buffer));
        }
    }
}

static tr_status fit_from(const tr_memory_source *source, tr_space space, size_t bytes,
                          tr_arena **arena, tr_error *err) {
    return *arena
               ? tr__arena_grow(*arena, bytes, err)
               : tr__arena_create_from(source, tr_space_name(space), bytes, arena, err);
}

static tr_status fit(const tr_plan *plan, tr_space space, tr_arena **arena,
                     tr_error *err) {
    const tr_backend *backend = tr__backend(plan->request.backend);
    size_t bytes = (size_t)plan->arena_bytes[space];
    const tr_memory_source *source = space == TR_SPACE_DEVICE
                                         ? tr__backend_memory(backend)
                                         : tr__backend_host_memory(backend);
    if (bytes == 0) {
        return TR_OK;
    }
    size_t before = *arena ? tr__arena_bytes(*arena) : 0;
    tr_status status = fit_from(source, space, bytes, arena, err);
    if (status == TR_OK && source == &tr__host_memory) {
        guard(plan, space, *arena, before);
    }
    return status;
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
