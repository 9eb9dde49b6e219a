// A file of torch.save: zip archive and pickle are checked, and values are walked.
#include "fuzz.h"

#include "files/torch/torch.h"

static void look(const tr_torch_value *value) {
    for (size_t i = 0; i < value->count; i++) {
        fuzz_check(value->item[i] != NULL, "a list with nothing in it");
        fuzz_check(value->kind != TR_TORCH_LIST ||
                       tr__torch_at(value, i) == value->item[i],
                   "an element that is not at its place");
    }
    if (value->kind == TR_TORCH_TENSOR && !value->why) {
        const tr_stored_tensor *tensor = &value->tensor;
        fuzz_check(tensor->bytes >= 0 && tensor->offset >= 0,
                   "a tensor that begins before its file");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tr_error err = {0};
    tr_torch_file *file = NULL;
    tr_status status =
        tr__torch_open(fuzz_file("one.pt", data, size), false, &file, &err);
    fuzz_check_told(status, &err);
    fuzz_check(status == TR_OK || status == TR_IO || status == TR_MEMORY,
               "a damaged file that is none");
    if (status == TR_OK) {
        const tr_torch_value *root = tr__torch_root(file);
        look(root);
        for (size_t i = 0; i < root->count; i++) {
            look(root->item[i]);
        }
    }
    tr__torch_close(file);
    return 0;
}
