// Token files, with labels or without: the first bytes say which, the width, the window
// and the vocabulary; the rest is the file.
#include "fuzz.h"
#include "samples.h"

#include <tranche/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { PREFIX = 3 };
    static const char labels[64];
    if (size < PREFIX) {
        return 0;
    }
    const char *path = fuzz_file("ids.bin", data + PREFIX, size - PREFIX);
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = data[0] & 8 ? "bytes" : "tokens",
                               .paths = &path,
                               .path_count = 1,
                               .validation_fraction = data[0] & 4 ? 0.25 : 0,
                               .sequence_length = data[1],
                               .vocabulary = data[2] * 64,
                               .seed = 1};
    if (!(data[0] & 8)) {
        options.dtype = data[0] & 1 ? "u32" : "u16";
    }
    if (data[0] & 2) {
        options.labels = fuzz_file("labels.bin", labels, data[0] & 0x38);
    }
    tr_survey survey = TR_SURVEY_INIT;
    tr_error err = {0};
    fuzz_check_told(tr_data_survey(path, &survey, &err), &err);
    fuzz_samples(&options);
    return 0;
}
