#include "train/state/read_tensors.h"

#include "base/checked.h"
#include "base/wait.h"
#include "graph/adapter.h"
#include "models/folder.h"
#include "models/models.h"
#include "ops/operand.h"
#include "train/state/read_quantized.h"

#include <stdio.h>
#include <string.h>

void tr__tensor_name(const tr_plan *plan, int param, const char *state, char *dst) {
    snprintf(dst, TR_TENSOR_NAME_MAX, "%s%s%s", plan->params[param].stored,
             state ? "." : "", state ? state : "");
}

void tr__scales_name(const tr_plan *plan, int param, const char *state, char *dst) {
    snprintf(dst, TR_TENSOR_NAME_MAX, "%s.%s_absmax", plan->params[param].stored,
             state);
}

static bool same_shape(const tr_stored_tensor *stored, const tr_shape *shape) {
    bool same = stored->rank == shape->rank;
    for (int d = 0; same && d < stored->rank; d++) {
        same = stored->dim[d] == shape->dim[d];
    }
    return same;
}

// dst: [TR_SHAPE_TEXT]; returned.
static const char *stored_text(const tr_stored_tensor *stored, char *dst) {
    tr_shape shape = {.rank = stored->rank};
    if (stored->rank > TR_RANK_MAX) {
        snprintf(dst, TR_SHAPE_TEXT, "of %d dimensions", stored->rank);
        return dst;
    }
    memcpy(shape.dim, stored->dim, sizeof shape.dim);
    return tr__shape_text(shape, dst);
}

// A parameter's tensor as the files have it, and how many elements of it are read.
typedef struct wanted {
    tr_shape shape;
    int64_t count;
} wanted;

static wanted wanted_of(const tr_weights_source *from, const tr_model *model,
                        const tr_plan_param *param) {
    tr_shape shape = param->stored_shape;
    int64_t used = shape.rank > 0 ? shape.dim[0] : 1;
    if (tr__is_token_tensor(model, param->stored)) {
        int64_t padded = model->padded_classes ? model->padded_classes : shape.dim[0];
        used = from->used > 0 ? from->used : used;
        shape.dim[0] = from->rows > 0 ? from->rows : padded;
    }
    int64_t row = tr_shape_count(shape) / (shape.rank > 0 ? shape.dim[0] : 1);
    return (wanted){shape, used * row};
}

// Of the first `count` elements of a tensor those that are in the run, which lie where
// `lies` says.
static tr_status read_run(const tr_tensor_set *set, const tr_stored_tensor *stored,
                          int64_t count, const tr_stride *lies, const tr_piece *run,
                          tr_error *err) {
    tr_status status = TR_OK;
    int64_t now = 0;
    for (int64_t done = 0; done < run->count && status == TR_OK; done += now) {
        now = run->count - done;
        int64_t at = tr__stride_at(lies, run->first + done, &now);
        int64_t there = tr__min_i64(now, count - at);
        if (there > 0) {
            status = tr__tensor_read_f32(set, stored, at, there, run->data + done, err);
        }
    }
    return status;
}

static tr_status read_piece(const tr_tensor_set *set, const tr_stored_tensor *stored,
                            int64_t count, const tr_plan *plan, tr_executor *executor,
                            const tr_piece *piece, tr_error *err) {
    const tr_stride *lies = &plan->params[piece->param].lies;
    tr_piece run;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece->count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(executor, piece, at, &run, err);
        status =
            status == TR_OK ? read_run(set, stored, count, lies, &run, err) : status;
        if (status == TR_OK) {
            status = tr__executor_return(executor, &run, err);
        }
    }
    return status;
}

// A checkpoint of states in 8 bits has the scales by which they were rounded: with
// those the same values become the same codes. *piece: of a state; it is then `scaled`.
static tr_status read_scales(const tr_weights_source *from, const tr_plan *plan,
                             tr_executor *executor, const char *state_name,
                             tr_piece *piece, tr_error *err) {
    enum { MANY = 1024 };
    float scales[MANY];
    char name[TR_TENSOR_NAME_MAX];
    int64_t block = tr__executor_block(executor, piece->param, piece->state);
    tr__scales_name(plan, piece->param, state_name, name);
    const tr_stored_tensor *stored = tr__tensor_set_find(from->set, name);
    tr_shape shape = TR_SHAPE1(
        tr__ceil_div(tr_shape_count(plan->params[piece->param].stored_shape), block));
    if (block == 1 || !stored || !same_shape(stored, &shape)) {
        return TR_OK; // they are found anew
    }
    const tr_stride lies =
        tr__stride_of_blocks(&plan->params[piece->param].lies, block);
    int64_t first = piece->first / block, count = tr__ceil_div(piece->count, block),
            now = 0;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < count && status == TR_OK; at += now) {
        now = tr__min_i64(MANY, count - at);
        int64_t place = tr__stride_at(&lies, first + at, &now);
        status = tr__tensor_read_f32(from->set, stored, place, now, scales, err);
        if (status == TR_OK) {
            status = tr__executor_set_scales(executor, piece, at, scales, now, err);
        }
    }
    piece->scaled = true;
    return status;
}

tr_status tr__read_parameters(const tr_weights_source *from, const tr_plan *plan,
                              tr_executor *executor, int state, const char *state_name,
                              tr_error *err) {
    tr_wait wait = tr__wait_begin(from->log, state < 0 ? "reading the weights"
                                                       : "reading the optimizer");
    double done = 0, total = (double)tr_plan_parameters(plan);
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        tr__wait_part(&wait, done, total);
        done += (double)tr_shape_count(param->stored_shape);
        char name[TR_TENSOR_NAME_MAX];
        const tr_flat *flat = &plan->flats[param->flat];
        bool frozen = flat->frozen;
        if (state >= tr__flat_states(plan, flat) ||
            (frozen && from->reads == TR_READS_TRAINED) ||
            (!frozen && from->reads == TR_READS_FROZEN)) {
            continue; // it has none, or is read from another place
        }
        const char *of_state =
            state < 0 ? state_name : tr__state_name(plan, flat, state);
        tr__tensor_name(plan, (int)i, of_state, name);
        const tr_stored_tensor *stored = tr__tensor_set_find_prefixed(from->set, name);
        bool missing_may_be =
            (from->drawn && tr__is_adapter_tensor(name)) ||
            (from->may_lack && tr__model_may_lack(from->may_lack, name));
        if (!stored && missing_may_be) {
            continue;
        }
        if (!stored) {
            return tr_fail(err, TR_IO,
                           "%s: has no tensor %s, which this run needs: it belongs to "
                           "another model or optimizer",
                           from->path, name);
        }
        char stored_shape[TR_SHAPE_TEXT], model_shape[TR_SHAPE_TEXT];
        wanted w = wanted_of(from, plan->request.model, param);
        if (!same_shape(stored, &w.shape)) {
            return tr_fail(err, TR_IO,
                           "%s: tensor %s %s has another shape than in this run's "
                           "model, %s: it belongs to another model",
                           from->path, name, stored_text(stored, stored_shape),
                           tr__shape_text(w.shape, model_shape));
        }
        tr_piece piece = tr__executor_held(executor, (int)i, state);
        tr_status status = TR_OK;
        if (state >= 0 && piece.count > 0) {
            status = read_scales(from, plan, executor, of_state, &piece, err);
        }
        if (status == TR_OK) {
            status = param->quantized ? tr__read_quantized(from->set, stored, plan,
                                                           (int)i, executor, err)
                                      : read_piece(from->set, stored, w.count, plan,
                                                   executor, &piece, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

tr_status tr__read_states(const tr_tensor_set *set, const char *path,
                          const tr_plan *plan, tr_executor *executor, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->state_count && status == TR_OK; i++) {
        const tr_plan_state *state = &plan->states[i];
        const tr_stored_tensor *stored = tr__tensor_set_find(set, state->name);
        void *data = tr__executor_state(executor, (int)i);
        int64_t count = tr_shape_count(state->desc.shape);
        bool exact = state->desc.dtype != TR_F32;
        if (!stored || !same_shape(stored, &state->desc.shape) ||
            (exact && stored->dtype != state->desc.dtype)) {
            return tr_fail(err, TR_IO,
                           "%s: has no tensor %s of the shape and type that this "
                           "run's model keeps: it belongs to another model",
                           path, state->name);
        }
        status = exact ? tr__tensor_read(set, stored, 0, count, data, err)
                       : tr__tensor_read_f32(set, stored, 0, count, data, err);
    }
    return status;
}
