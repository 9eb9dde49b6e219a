// A safetensors file: its header is checked, and every tensor read.
#include "fuzz.h"
#include "tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_tensors(fuzz_file("one.safetensors", data, size));
    return 0;
}
