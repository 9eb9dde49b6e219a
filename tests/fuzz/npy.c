// npy files: the first byte says whether the rest is features, images or labels.
#include "fuzz.h"
#include "samples.h"

#include <tranche/data.h>

#include <stdio.h>
#include <string.h>

// An array of `count` rows of version 1.0, in `dst`: [bytes returned].
static size_t array(char *dst, const char *descr, const char *shape, size_t bytes) {
    enum { HEADER = 128, PREFIX = 10 };
    memset(dst, ' ', HEADER);
    memcpy(dst, "\x93NUMPY\x01\x00\x76\x00", PREFIX);
    int n = snprintf(dst + PREFIX, HEADER - PREFIX,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr,
                     shape);
    dst[PREFIX + n] = ' ';
    dst[HEADER - 1] = '\n';
    memset(dst + HEADER, 1, bytes);
    return HEADER + bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    char own[256];
    const char *fuzzed = fuzz_file("fuzzed.npy", data + 1, size - 1);
    bool labels = data[0] & 1, images = data[0] & 2;
    size_t bytes = labels ? array(own, "|u1", "3, 4", 12) : array(own, "<i4", "3,", 12);
    const char *other = fuzz_file("other.npy", own, bytes);
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "npy",
                               .paths = labels ? &other : &fuzzed,
                               .path_count = 1,
                               .labels = labels ? fuzzed : other,
                               .seed = 1};
    if (images) {
        options.image_height = options.image_width = 2;
        options.image_channels = 1;
    }
    tr_survey survey = TR_SURVEY_INIT;
    tr_error err = {0};
    fuzz_check_told(tr_data_survey(fuzzed, &survey, &err), &err);
    fuzz_samples(&options);
    return 0;
}
