#include "files/deepspeed/deepspeed.h"

#include "files/deepspeed/inside.h"

#include <string.h>

static int64_t number_of(const tr_torch_value *root, const char *key, int64_t missing) {
    const tr_torch_value *value =
        tr__torch_as(tr__torch_get(root, key), TR_TORCH_INTEGER);
    return value ? value->integer : missing;
}

static tr_status take_steps(const tr_ds_folder *folder, tr_error *err) {
    const tr_torch_value *root = folder->models.file[0].root;
    int64_t skipped = number_of(root, "skipped_steps", 0);
    int64_t steps = number_of(root, "global_steps", 0);
    if (number_of(root, "mp_world_size", 1) != 1) {
        return tr__ds_unknown(folder, "its model is split over ranks", err);
    }
    if (skipped < 0 || steps < skipped || steps > (int64_t)1 << 53) {
        return tr__ds_unknown(folder, "its count of steps is no number", err);
    }
    folder->out->skipped = skipped;
    folder->out->updates = steps - skipped; // unless the optimizer says it
    int64_t samples = number_of(root, "global_samples", 0);
    if (steps > 0 && samples > 0) {
        folder->out->samples =
            (int64_t)((double)samples / (double)steps * (double)(steps - skipped));
    }
    return TR_OK;
}

tr_status tr__deepspeed_open(const char *folder, bool verify,
                             tr_deepspeed_is_trained is_trained, const void *user,
                             tr_deepspeed *out, tr_error *err) {
    tr_ds_folder from = {
        .path = folder, .out = out, .is_trained = is_trained, .user = user};
    *out = (tr_deepspeed){.tensors = tr__tensor_set_make(), .trained = json_object()};
    tr_status status = out->tensors && out->trained
                           ? TR_OK
                           : tr_fail(err, TR_MEMORY, "no memory to read %s", folder);
    status = status == TR_OK ? tr__ds_open_files(&from, verify, err) : status;
    status = status == TR_OK ? take_steps(&from, err) : status;
    if (status == TR_OK) {
        status = from.optimizers.count > 0 ? tr__ds_read_zero(&from, err)
                                           : tr__ds_read_plain(&from, err);
    }
    status = status == TR_OK ? tr__tensor_set_sort(out->tensors, err) : status;
    tr__ds_close_files(&from.models);
    tr__ds_close_files(&from.optimizers);
    return status;
}

void tr__deepspeed_close(tr_deepspeed *saved) {
    tr__tensor_set_close(saved->tensors);
    json_decref(saved->trained);
    *saved = (tr_deepspeed){0};
}
