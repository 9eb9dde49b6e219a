// Opens a file or folder of safetensors and reads the first elements of each tensor.
#ifndef TEST_FUZZ_TENSORS_H
#define TEST_FUZZ_TENSORS_H

#include "fuzz.h"

#include "files/safetensors/tensor_set.h"

static inline void fuzz_tensors(const char *path) {
    enum { READ = 64 };
    float values[READ];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    tr_status status = tr__tensor_set_open(path, &set, &err);
    fuzz_check_told(status, &err);
    for (size_t i = 0; status == TR_OK && i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        tr_error why = {0};
        fuzz_check(tr__tensor_set_find(set, tensor->name) == tensor,
                   "a tensor that its own name does not find");
        fuzz_check_told(tr__tensor_read_f32(set, tensor, 0,
                                            tensor->count < READ ? tensor->count : READ,
                                            values, &why),
                        &why);
    }
    tr__tensor_set_close(set);
}

#endif
