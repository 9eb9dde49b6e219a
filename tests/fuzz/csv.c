// csv files, as data and as `inspect` looks at them.
#include "fuzz.h"
#include "samples.h"

#include <tranche/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file("data.csv", data, size);
    tr_survey survey = TR_SURVEY_INIT;
    tr_error err = {0};
    fuzz_check_told(tr_data_survey(path, &survey, &err), &err);
    fuzz_samples(&(tr_data_options){.size = sizeof(tr_data_options),
                                    .format = "csv",
                                    .paths = &path,
                                    .path_count = 1,
                                    .seed = 1});
    return 0;
}
