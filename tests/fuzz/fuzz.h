// What the fuzz targets share. A target is one function of libFuzzer: it gets bytes
// that stand for a file from elsewhere, and must neither crash, hang, leak nor
// contradict itself, whatever they are.
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Writes a file into a folder of this process, which is removed at its end, and returns
// its path, good until the next call for the same name.
const char *fuzz_file(const char *name, const void *data, size_t size);
const char *fuzz_folder(void);

// Ends the process, so that libFuzzer keeps the input, unless `holds`.
void fuzz_check(bool holds, const char *what);
// A status of failure comes with a message, and TR_OK with none.
void fuzz_check_told(tr_status status, const tr_error *err);

#endif
