// Do all ranks begin with the same weights? Folders of one name may hold others on
// another machine.
#include "base/checked.h"
#include "base/hash.h"
#include "comm/alone.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/tensor_set.h"
#include "train/engine.h"

#include <string.h>

// Of a tensor in a file: so many blocks of elements at even distances, all of it where
// it is no larger than they are.
enum { BLOCKS = 16, BLOCK = 4096, ELEMENT_MAX = 8 };

static tr_status hash_stored(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                             uint64_t *hash, tr_error *err) {
    unsigned char raw[BLOCK * ELEMENT_MAX];
    size_t element = tr_dtype_bytes(tensor->dtype);
    int64_t blocks = tr__min_i64(BLOCKS, tr__ceil_div(tensor->count, BLOCK));
    int64_t last = tr__max_i64(0, tensor->count - BLOCK);
    tr_status status = TR_OK;
    *hash = tr__hash_more(*hash, tensor->name, strlen(tensor->name));
    *hash = tr__hash_more(*hash, tensor->dim, (size_t)tensor->rank * sizeof(int64_t));
    for (int64_t b = 0; b < blocks && status == TR_OK; b++) {
        int64_t first = blocks > 1 ? (int64_t)((__int128)last * b / (blocks - 1)) : 0;
        int64_t count = tr__min_i64(BLOCK, tensor->count - first);
        status = tr__tensor_read(set, tensor, first, count, raw, err);
        *hash = tr__hash_more(*hash, raw, (size_t)count * element);
    }
    return status;
}

static tr_status hash_set(const tr_tensor_set *set, uint64_t *hash, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; status == TR_OK && i < tr__tensor_set_count(set); i++) {
        status = hash_stored(set, tr__tensor_set_at(set, i), hash, err);
    }
    return status;
}

static tr_status hash_files(const char *folder, tr_tensor_files files, uint64_t *hash,
                            tr_error *err) {
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open_files(folder, files, &set, err);
    status = status == TR_OK ? hash_set(set, hash, err) : status;
    tr__tensor_set_close(set);
    return status;
}

// Of a checkpoint with an adapter: its own tensors, and those of the run's base.
static tr_status hash_folder(const tr_engine *engine, const char *folder,
                             uint64_t *hash, tr_error *err) {
    tr_status status = TR_OK;
    if (tr__is_adapter_folder(folder)) {
        status = hash_files(folder, TR_FILES_ADAPTER, hash, err);
        folder = tr__run_weights(engine->run);
    }
    return status == TR_OK ? hash_files(folder, TR_FILES_MODEL, hash, err) : status;
}

tr_status tr__engine_hash_base(tr_engine *engine, tr_error *err) {
    uint64_t hash = 0;
    if (!engine->plan->request.model->adapter) {
        return TR_OK;
    }
    tr_status status =
        hash_files(tr__run_weights(engine->run), TR_FILES_MODEL, &hash, err);
    engine->base_hash = (double)(hash >> 11); // which a double holds exactly
    return status;
}

// Has every rank all weights, and in memory?
static bool are_whole(const tr_engine *engine) {
    bool whole = engine->plan->request.stage == 0;
    for (size_t i = 0; i < engine->plan->param_count && whole; i++) {
        tr_piece piece = tr__executor_held(engine->executor, (int)i, -1);
        whole = piece.data && piece.count == engine->plan->params[i].count;
    }
    return whole;
}

static void hash_held(const tr_engine *engine, uint64_t *hash) {
    for (size_t i = 0; i < engine->plan->param_count; i++) {
        tr_piece piece = tr__executor_held(engine->executor, (int)i, -1);
        if (engine->plan->flats[engine->plan->params[i].flat].split) {
            continue; // other ranks have other parts
        }
        *hash = tr__hash_more(*hash, piece.data, (size_t)piece.count * sizeof(float));
    }
}

// status, problem, hash: of this rank.
static tr_status agree_hash(tr_comm *comm, tr_status status, tr_error *problem,
                            uint64_t hash, const char *from, tr_error *err) {
    uint64_t first = hash;
    status = tr__agree(comm, status, problem, err);
    if (status == TR_OK) {
        status = tr__comm_broadcast(comm, 0, &first, sizeof first, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (first != hash) {
        status = tr_fail(problem, TR_COMM,
                         "the first weights (%.300s) differ between this rank and rank "
                         "0: all ranks must read the same folder",
                         from);
    }
    return tr__agree(comm, status, problem, err);
}

tr_status tr__engine_agree_set(const tr_engine *engine, const tr_tensor_set *set,
                               const char *from, tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    uint64_t hash = 0;
    if (tr__comm_count(comm) == 1) {
        return TR_OK;
    }
    tr_status status = hash_set(set, &hash, &mine);
    return agree_hash(comm, status, &mine, hash, from, err);
}

tr_status tr__engine_agree_weights(const tr_engine *engine, const char *folder,
                                   tr_error *err) {
    tr_comm *comm = tr__run_comm(engine->run);
    tr_error mine = {0};
    tr_status status = TR_OK;
    uint64_t hash = 0;
    if (tr__comm_count(comm) == 1) {
        return TR_OK;
    }
    if (are_whole(engine)) {
        hash_held(engine, &hash);
    } else if (folder) {
        status = hash_folder(engine, folder, &hash, &mine);
    }
    return agree_hash(comm, status, &mine, hash, folder ? folder : "drawn", err);
}
