// Opens data as a run does, and reads samples of it.
#ifndef TEST_FUZZ_SAMPLES_H
#define TEST_FUZZ_SAMPLES_H

#include "fuzz.h"

#include "data/sources/dataset.h"

#include <stdlib.h>

// Rows of more bytes than the file has are refused, so a sample is small; reads the
// first and the last one.
static inline void fuzz_samples(const tr_data_options *options) {
    tr_error err = {0};
    tr_dataset *train = NULL, *validation = NULL;
    tr_status status = tr_dataset_open(options, &train, &validation, &err);
    fuzz_check_told(status, &err);
    if (status == TR_OK) {
        const tr_batch_tensors *tensors = tr_dataset_tensors(train);
        int64_t index[2] = {0, tr_dataset_samples(train) - 1};
        void *input = malloc((size_t)tr_tensor_bytes(tensors->tensor[0].desc) * 2 + 1);
        void *target = malloc((size_t)tr_tensor_bytes(tensors->tensor[1].desc) * 2 + 1);
        tr_error why = {0};
        fuzz_check(index[1] >= 0, "data without samples");
        fuzz_check(input && target, "a sample that memory has no room for");
        fuzz_check_told(
            tr_dataset_read(train, index, 2, (void *[]){input, target}, &why), &why);
        free(input);
        free(target);
    }
    tr_dataset_destroy(validation);
    tr_dataset_destroy(train);
}

#endif
