// Without ZeRO: the module, and the state of a PyTorch optimizer, which knows
// parameters by their number alone. They are those of the module that the run trains,
// in order.
#include "files/deepspeed/inside.h"

#include <string.h>

typedef struct reader {
    tr_ds_folder *folder;
    const tr_torch_value *module, *states, *numbers;
    size_t next; // of the numbers
} reader;

static tr_status unknown(const reader *r, const char *why, tr_error *err) {
    return tr__ds_unknown(r->folder, why, err);
}

static tr_status find(reader *r, tr_error *err) {
    const tr_torch_value *root = r->folder->models.file[0].root;
    const tr_torch_value *optimizer = tr__torch_get(root, "optimizer");
    const tr_torch_value *groups =
        tr__torch_as(tr__torch_get(optimizer, "param_groups"), TR_TORCH_LIST);
    r->module = tr__torch_as(tr__torch_get(root, "module"), TR_TORCH_DICT);
    r->states = tr__torch_as(tr__torch_get(optimizer, "state"), TR_TORCH_DICT);
    if (!r->module || !r->states || !groups || groups->count == 0) {
        return unknown(r, "it has neither an optimizer of ZeRO's nor one of PyTorch's",
                       err);
    }
    if (groups->count > 1) {
        return unknown(r,
                       "does not say which parameters are in which of its optimizer's "
                       "groups: load it in DeepSpeed with ZeRO 1 and save it again",
                       err);
    }
    r->numbers = tr__torch_as(tr__torch_get(groups->item[0], "params"), TR_TORCH_LIST);
    return r->numbers ? TR_OK : unknown(r, "its optimizer has no parameters", err);
}

static bool same_shape(const tr_stored_tensor *a, const tr_stored_tensor *b) {
    return a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static tr_status wrong(const reader *r, const char *name, const char *what,
                       tr_error *err) {
    char why[400];
    snprintf(why, sizeof why, "%.160s %.200s", name, what);
    return unknown(r, why, err);
}

static tr_status read_states(const reader *r, const char *name,
                             const tr_stored_tensor *weight,
                             const tr_torch_value *state, tr_error *err) {
    const tr_ds_file *file = &r->folder->models.file[0];
    tr_deepspeed *out = r->folder->out;
    tr_status status = TR_OK;
    for (int s = 0; s < out->states && status == TR_OK; s++) {
        const tr_torch_value *value =
            tr__torch_as(tr__torch_get(state, out->state[s]), TR_TORCH_TENSOR);
        status =
            value && same_shape(&value->tensor, weight)
                ? tr__ds_put(r->folder, name, out->state[s], value, file->number, err)
                : wrong(r, name,
                        "and the optimizer's states are of other shapes: it "
                        "trained other parameters than this run does (key "
                        "\"freeze\")",
                        err);
    }
    return status;
}

static tr_status read_trained(reader *r, const char *name, const tr_torch_value *weight,
                              tr_error *err) {
    const tr_ds_file *file = &r->folder->models.file[0];
    const tr_torch_value *number =
        tr__torch_as(tr__torch_at(r->numbers, r->next), TR_TORCH_INTEGER);
    const tr_torch_value *state =
        number
            ? tr__torch_as(tr__torch_get_at(r->states, number->integer), TR_TORCH_DICT)
            : NULL;
    if (!number) {
        return wrong(r, name,
                     "was not trained there, and is in this run (key \"freeze\")", err);
    }
    if (!tr__torch_as(weight, TR_TORCH_TENSOR) || weight->tensor.dtype != TR_F32) {
        return wrong(r, name, "is not kept in f32", err);
    }
    tr_status status = tr__ds_note_trained(r->folder, name, err);
    if (status == TR_OK && r->next == 0) {
        status = tr__ds_take_states(r->folder, state, file->path, err);
    }
    r->next++;
    status = status == TR_OK
                 ? tr__ds_put(r->folder, name, NULL, weight, file->number, err)
                 : status;
    return status == TR_OK ? read_states(r, name, &weight->tensor, state, err) : status;
}

tr_status tr__ds_read_plain(tr_ds_folder *folder, tr_error *err) {
    reader r = {.folder = folder};
    tr_status status = find(&r, err);
    for (size_t i = 0; status == TR_OK && i < r.module->count; i += 2) {
        const tr_torch_value *name = tr__torch_as(r.module->item[i], TR_TORCH_TEXT);
        const tr_torch_value *value = r.module->item[i + 1];
        if (name && folder->is_trained(folder->user, name->text)) {
            status = read_trained(&r, name->text, value, err);
        } else if (name) {
            status = tr__ds_put(folder, name->text, NULL, value,
                                folder->models.file[0].number, err);
        }
    }
    if (status == TR_OK && r.next != r.numbers->count) {
        status = unknown(&r,
                         "it trained more parameters than this run does (key "
                         "\"freeze\", or another model)",
                         err);
    }
    return status;
}
