// model.safetensors.index.json of a folder with two files of tensors.
#include "fuzz.h"
#include "tensors.h"

static const char first[] = "\x50\0\0\0\0\0\0\0"
                            "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
                            "[0,8]}}                   12345678";
static const char second[] = "\x50\0\0\0\0\0\0\0"
                             "{\"b\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":"
                             "[0,8]}}                   12345678";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool written;
    if (!written) {
        fuzz_file("model-1.safetensors", first, sizeof first - 1);
        fuzz_file("model-2.safetensors", second, sizeof second - 1);
        written = true;
    }
    fuzz_file("model.safetensors.index.json", data, size);
    fuzz_tensors(fuzz_folder());
    return 0;
}
