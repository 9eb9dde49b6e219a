// ZeRO 1 to 3: each rank has a part of the weights in f32 and of the states. (As
// DeepSpeed's utils/zero_to_fp32.py puts weights together.)
#include "base/checked.h"
#include "base/memory.h"
#include "files/deepspeed/inside.h"

#include <string.h>

typedef struct reader {
    tr_ds_folder *folder;
    bool third;
    tr_ds_whole whole;
} reader;

static tr_status unknown(const reader *r, const char *why, tr_error *err) {
    return tr__ds_unknown(r->folder, why, err);
}

// ---- what is where

static const tr_torch_value *rank_state(const reader *r, size_t rank) {
    return tr__torch_get(r->folder->optimizers.file[rank].root, "optimizer_state_dict");
}

static const tr_torch_value *model_value(const reader *r, const char *name) {
    return tr__torch_get(r->folder->models.file[0].root, name);
}

// The states of a rank's flat buffer of the group.
static const tr_torch_value *group_states(const reader *r, size_t rank, size_t group) {
    const tr_torch_value *base =
        tr__torch_get(rank_state(r, rank),
                      r->third ? "optimizer_state_dict" : "base_optimizer_state");
    return tr__torch_as(tr__torch_get_at(tr__torch_get(base, "state"), (int64_t)group),
                        TR_TORCH_DICT);
}

// A rank's flat buffer of the group: of weights, or of a state.
static const tr_torch_value *group_values(const reader *r, size_t rank, size_t group,
                                          const char *state) {
    if (state) {
        return tr__torch_get(group_states(r, rank, group), state);
    }
    return tr__torch_at(tr__torch_get(rank_state(r, rank),
                                      r->third ? "fp32_flat_groups"
                                               : "single_partition_of_fp32_groups"),
                        group);
}

static tr_status add_part(const reader *r, size_t rank, size_t group, const char *state,
                          tr_ds_flat *flat, tr_error *err) {
    const tr_torch_value *values = group_values(r, rank, group, state);
    if (!state && tr__torch_as(values, TR_TORCH_TENSOR) &&
        values->tensor.dtype != TR_F32) {
        return unknown(r, "its weights are not kept in f32", err);
    }
    return tr__ds_add_part(r->folder, flat, values,
                           r->folder->optimizers.file[rank].number, err);
}

// ---- ZeRO 1 and 2: the parameters of a group lie behind one another, and each rank
// has a part of them.

// How many elements lie between a parameter and the next.
static int64_t padding(const reader *r, size_t group, size_t i) {
    const tr_torch_value *paddings =
        tr__torch_get(rank_state(r, 0), "param_alignment_paddings");
    const tr_torch_value *number =
        tr__torch_as(tr__torch_at(tr__torch_at(paddings, group), i), TR_TORCH_INTEGER);
    return number && number->integer > 0 ? number->integer : 0;
}

static tr_status read_group(reader *r, const tr_torch_value *shapes, size_t group,
                            const char *state, const tr_ds_flat *flat, tr_error *err) {
    int64_t at = 0;
    tr_status status = TR_OK;
    for (size_t i = 0; i < shapes->count && status == TR_OK; i += 2) {
        status = tr__ds_begin(r->folder, shapes->item[i + 1], &r->whole, err);
        int64_t count = r->whole.like.count;
        if (status == TR_OK) {
            status = tr__ds_take(r->folder, flat, at, count, &r->whole, err);
        }
        if (status == TR_OK) {
            status =
                tr__ds_end(r->folder, shapes->item[i]->text, state, &r->whole, err);
        }
        if (status == TR_OK && (!tr__add_i64(at, count, &at) ||
                                !tr__add_i64(at, padding(r, group, i / 2), &at))) {
            status = unknown(r, "a parameter is too large", err);
        }
    }
    return status;
}

static tr_status read_first(reader *r, const tr_torch_value *groups, const char *state,
                            tr_error *err) {
    tr_status status = TR_OK;
    for (size_t g = 0; g < groups->count && status == TR_OK; g++) {
        tr_ds_flat flat = {0};
        for (size_t k = 0; k < r->folder->optimizers.count && status == TR_OK; k++) {
            status = add_part(r, k, g, state, &flat, err);
        }
        if (status == TR_OK) {
            status = read_group(r, groups->item[g], g, state, &flat, err);
        }
        tr__ds_flat_free(&flat);
    }
    return status;
}

// ---- ZeRO 3: each parameter is cut into as many parts as there are ranks; a rank's
// parts lie behind one another, in several buffers.

static tr_status fill_rank(const reader *r, size_t rank, const char *state,
                           tr_ds_flat *flat, tr_error *err) {
    const tr_torch_value *buffers = tr__torch_as(
        tr__torch_get(rank_state(r, rank), "fp32_flat_groups"), TR_TORCH_LIST);
    tr_status status = TR_OK;
    for (size_t g = 0; buffers && g < buffers->count && status == TR_OK; g++) {
        status = add_part(r, rank, g, state, flat, err);
    }
    return status;
}

// Every rank's part of a parameter begins at `at` in its own flat.
static tr_status take_cut(reader *r, const tr_ds_flat *flats, int64_t at, int64_t size,
                          tr_error *err) {
    int64_t left = r->whole.like.count;
    tr_status status = TR_OK;
    for (size_t k = 0; k < r->folder->optimizers.count && status == TR_OK; k++) {
        int64_t now = tr__min_i64(left, size);
        status = tr__ds_take(r->folder, &flats[k], at, now, &r->whole, err);
        left -= now;
    }
    return status;
}

static tr_status read_cut(reader *r, const tr_torch_value *shapes, const char *state,
                          const tr_ds_flat *flats, int64_t *at, tr_error *err) {
    tr_status status = TR_OK;
    int64_t ranks = (int64_t)r->folder->optimizers.count;
    for (size_t i = 0; i < shapes->count && status == TR_OK; i += 2) {
        status = tr__ds_begin(r->folder, shapes->item[i + 1], &r->whole, err);
        int64_t count = r->whole.like.count;
        int64_t size = count / ranks + (count % ranks != 0);
        status = status == TR_OK ? take_cut(r, flats, *at, size, err) : status;
        if (status == TR_OK) {
            status =
                tr__ds_end(r->folder, shapes->item[i]->text, state, &r->whole, err);
        }
        if (status == TR_OK && !tr__add_i64(*at, size, at)) {
            status = unknown(r, "a parameter is too large", err);
        }
    }
    return status;
}

static tr_status read_third(reader *r, const tr_torch_value *groups, const char *state,
                            tr_error *err) {
    size_t ranks = r->folder->optimizers.count;
    tr_ds_flat *flats = tr__calloc(ranks, sizeof *flats);
    int64_t at = 0;
    tr_status status =
        flats ? TR_OK
              : tr_fail(err, TR_MEMORY, "no memory to read %s", r->folder->path);
    for (size_t k = 0; k < ranks && status == TR_OK; k++) {
        status = fill_rank(r, k, state, &flats[k], err);
    }
    for (size_t g = 0; g < groups->count && status == TR_OK; g++) {
        status = read_cut(r, groups->item[g], state, flats, &at, err);
    }
    for (size_t k = 0; flats && k < ranks; k++) {
        tr__ds_flat_free(&flats[k]);
    }
    tr__free(flats);
    return status;
}

// ---- what is not trained: frozen parameters, and buffers

// Of frozen parameters each rank has a part in its file of the model.
static tr_status read_frozen(reader *r, const char *name, const tr_torch_value *shape,
                             tr_error *err) {
    tr_ds_folder *folder = r->folder;
    tr_ds_flat flat = {0};
    tr_status status = tr__ds_begin(folder, shape, &r->whole, err);
    for (size_t k = 0; k < folder->models.count && status == TR_OK; k++) {
        const tr_torch_value *fragments =
            tr__torch_get(folder->models.file[k].root, "frozen_param_fragments");
        status = tr__ds_add_part(folder, &flat, tr__torch_get(fragments, name),
                                 folder->models.file[k].number, err);
    }
    if (status == TR_OK) {
        status = tr__ds_take(folder, &flat, 0, r->whole.like.count, &r->whole, err);
    }
    status = status == TR_OK ? tr__ds_end(folder, name, NULL, &r->whole, err) : status;
    tr__ds_flat_free(&flat);
    return status;
}

static tr_status read_fragments(reader *r, tr_error *err) {
    const tr_torch_value *shapes =
        tr__torch_as(model_value(r, "frozen_param_shapes"), TR_TORCH_DICT);
    const tr_torch_value *buffers =
        tr__torch_as(model_value(r, "buffer_names"), TR_TORCH_LIST);
    const tr_torch_value *module = model_value(r, "module");
    tr_status status = TR_OK;
    for (size_t i = 0; shapes && i < shapes->count && status == TR_OK; i += 2) {
        const tr_torch_value *name = tr__torch_as(shapes->item[i], TR_TORCH_TEXT);
        if (name && !json_object_get(r->folder->out->trained, name->text)) {
            status = read_frozen(r, name->text, shapes->item[i + 1], err);
        }
    }
    for (size_t i = 0; buffers && i < buffers->count && status == TR_OK; i++) {
        const tr_torch_value *name = tr__torch_as(buffers->item[i], TR_TORCH_TEXT);
        const tr_torch_value *value = name ? tr__torch_get(module, name->text) : NULL;
        if (value) {
            status = tr__ds_put(r->folder, name->text, NULL, value,
                                r->folder->models.file[0].number, err);
        }
    }
    return status;
}

static tr_status read_module(reader *r, tr_error *err) {
    const tr_torch_value *module =
        tr__torch_as(model_value(r, "module"), TR_TORCH_DICT);
    tr_status status = module ? TR_OK : unknown(r, "it has no module", err);
    for (size_t i = 0; module && i < module->count && status == TR_OK; i += 2) {
        const tr_torch_value *name = tr__torch_as(module->item[i], TR_TORCH_TEXT);
        if (name && !json_object_get(r->folder->out->trained, name->text)) {
            status = tr__ds_put(r->folder, name->text, NULL, module->item[i + 1],
                                r->folder->models.file[0].number, err);
        }
    }
    return status;
}

// ---- all

// Are these groups of parameters: names, and shapes?
static tr_status note_groups(reader *r, const tr_torch_value *groups, tr_error *err) {
    tr_status status = groups ? TR_OK : unknown(r, "it names no parameters", err);
    for (size_t g = 0; groups && g < groups->count && status == TR_OK; g++) {
        const tr_torch_value *shapes = tr__torch_as(groups->item[g], TR_TORCH_DICT);
        status = shapes ? TR_OK : unknown(r, "it names no parameters", err);
        for (size_t i = 0; shapes && i < shapes->count && status == TR_OK; i += 2) {
            status = tr__torch_as(shapes->item[i], TR_TORCH_TEXT)
                         ? tr__ds_note_trained(r->folder, shapes->item[i]->text, err)
                         : unknown(r, "it names no parameters", err);
        }
    }
    return status;
}

static int64_t stage_of(const reader *r) {
    const tr_torch_value *stage = tr__torch_get(rank_state(r, 0), "zero_stage");
    bool object = tr__torch_as(stage, TR_TORCH_OBJECT) && stage->count > 0;
    stage = tr__torch_as(object ? stage->item[0] : stage, TR_TORCH_INTEGER);
    return stage ? stage->integer : -1;
}

// How many ranks saved it.
static int64_t ranks_of(const reader *r) {
    const tr_torch_value *count = tr__torch_get(rank_state(r, 0), "partition_count");
    int64_t most = -1;
    for (size_t i = 0; count && i < (count->kind == TR_TORCH_LIST ? count->count : 1);
         i++) {
        const tr_torch_value *number = tr__torch_as(
            count->kind == TR_TORCH_LIST ? count->item[i] : count, TR_TORCH_INTEGER);
        most = number ? tr__max_i64(most, number->integer) : most;
    }
    return most;
}

static tr_status check(reader *r, tr_error *err) {
    int64_t stage = stage_of(r), ranks = ranks_of(r);
    int64_t files = (int64_t)r->folder->optimizers.count;
    int64_t models = (int64_t)r->folder->models.count;
    char why[160] = "";
    r->third = stage == 3;
    r->folder->out->stage = (int)stage;
    if (stage < 1 || stage > 3) {
        snprintf(why, sizeof why, "its optimizer is none of ZeRO's");
    } else if (ranks != files) {
        snprintf(why, sizeof why, "has %lld of %lld files of ranks", (long long)files,
                 (long long)ranks);
    } else if (models != (r->third ? files : 1)) {
        snprintf(why, sizeof why, "has %lld files of the model for %lld ranks",
                 (long long)models, (long long)ranks);
    }
    return *why ? unknown(r, why, err) : TR_OK;
}

static tr_status read_all(reader *r, tr_error *err) {
    const tr_torch_value *groups =
        tr__torch_as(model_value(r, "param_shapes"), TR_TORCH_LIST);
    tr_deepspeed *out = r->folder->out;
    tr_status (*read)(reader *, const tr_torch_value *, const char *, tr_error *) =
        r->third ? read_third : read_first;
    tr_status status = note_groups(r, groups, err);
    if (status == TR_OK) {
        status = tr__ds_take_states(r->folder, group_states(r, 0, 0),
                                    r->folder->optimizers.file[0].path, err);
    }
    status = status == TR_OK ? read(r, groups, NULL, err) : status;
    for (int s = 0; s < out->states && status == TR_OK; s++) {
        status = read(r, groups, out->state[s], err);
    }
    if (status == TR_OK) {
        status = r->third ? read_fragments(r, err) : read_module(r, err);
    }
    return status;
}

tr_status tr__ds_read_zero(tr_ds_folder *folder, tr_error *err) {
    reader r = {.folder = folder};
    tr_status status = check(&r, err);
    status = status == TR_OK ? read_all(&r, err) : status;
    tr__free(r.whole.piece);
    return status;
}
