// What an optimizer keeps of each parameter.
#include "base/files.h"
#include "base/memory.h"
#include "files/deepspeed/inside.h"
#include "files/safetensors/convert.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define UPDATES_MOST ((int64_t)1 << 53)

// A tensor of one number.
static tr_status read_number(const tr_ds_folder *folder, const tr_stored_tensor *tensor,
                             const char *path, int64_t *out, tr_error *err) {
    int file = -1;
    int64_t whole = 0;
    _Alignas(16) unsigned char bytes[8];
    float value = -1;
    bool integer = tensor->dtype == TR_I64;
    if (tensor->count != 1 || !(integer || tr__dtype_is_float(tensor->dtype))) {
        return tr__ds_unknown(folder, "its count of updates is no number", err);
    }
    tr_status status = tr__file_open(path, O_RDONLY, &file, err);
    if (status != TR_OK) {
        return status;
    }
    status = tr__pread(file, path, bytes, tr_dtype_bytes(tensor->dtype), tensor->offset,
                       err);
    close(file);
    if (status == TR_OK && integer) {
        memcpy(&whole, bytes, sizeof whole);
    } else if (status == TR_OK) {
        bool fits = tr__convert_f32(tensor->dtype, bytes, 1, &value) < 0 &&
                    value >= 0 && value < (float)UPDATES_MOST;
        whole = fits ? (int64_t)value : -1;
    }
    *out = whole;
    return status;
}

static tr_status take_updates(const tr_ds_folder *folder, const tr_torch_value *step,
                              const char *path, tr_error *err) {
    int64_t updates = -1;
    tr_status status = TR_OK;
    if (step->kind == TR_TORCH_INTEGER) {
        updates = step->integer;
    } else if (step->kind == TR_TORCH_TENSOR && !step->why) {
        status = read_number(folder, &step->tensor, path, &updates, err);
    }
    if (status == TR_OK && (updates < 0 || updates > UPDATES_MOST)) {
        status = tr__ds_unknown(folder, "its count of updates is no number", err);
    }
    folder->out->updates = updates;
    return status;
}

static tr_status take_state(const tr_ds_folder *folder, const char *name,
                            tr_error *err) {
    tr_deepspeed *out = folder->out;
    if (out->states == TR_DEEPSPEED_STATES || strlen(name) >= TR_DEEPSPEED_STATE_NAME) {
        return tr__ds_unknown(folder, "its optimizer keeps more states than are known",
                              err);
    }
    strcpy(out->state[out->states++], name);
    return TR_OK;
}

tr_status tr__ds_take_states(const tr_ds_folder *folder, const tr_torch_value *state,
                             const char *path, tr_error *err) {
    const tr_torch_value *step = tr__torch_get(state, "step");
    tr_status status = step ? take_updates(folder, step, path, err) : TR_OK;
    for (size_t i = 0; state && i < state->count && status == TR_OK; i += 2) {
        const tr_torch_value *name = tr__torch_as(state->item[i], TR_TORCH_TEXT);
        const tr_torch_value *value = tr__torch_as(state->item[i + 1], TR_TORCH_TENSOR);
        if (name && value && value->tensor.rank > 0) {
            status = take_state(folder, name->text, err);
        }
    }
    return status;
}
