// numpy's .npy, version 1.0, little endian.
#include "cli/evaluate.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER = 128 }; // bytes, what the array begins after

tr_status cli_npy_begin(const cli_output *out, const int64_t *shape, int rank,
                        tr_error *err) {
    char text[HEADER + 1], sizes[80] = "";
    memset(text, ' ', sizeof text);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = HEADER - 10;
    text[9] = 0;
    for (int i = 0; i < rank; i++) {
        size_t used = strlen(sizes);
        snprintf(sizes + used, sizeof sizes - used, "%s%" PRId64, i ? ", " : "",
                 shape[i]);
    }
    int length =
        snprintf(text + 10, HEADER - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", sizes);
    text[10 + length] = ' '; // in place of the zero byte
    text[HEADER - 1] = '\n';
    return fwrite(text, 1, HEADER, out->to) == HEADER ? TR_OK
                                                      : cli_output_fail(out, err);
}

tr_status cli_npy_write(const cli_output *out, const float *values, int64_t count,
                        tr_error *err) {
    size_t wrote = fwrite(values, sizeof *values, (size_t)count, out->to);
    return wrote == (size_t)count ? TR_OK : cli_output_fail(out, err);
}

tr_status cli_npy_write_at(const cli_output *out, int64_t first, const float *values,
                           int64_t count, tr_error *err) {
    if (fseeko(out->to, (off_t)(HEADER + first * (int64_t)sizeof *values), SEEK_SET)) {
        return cli_output_fail(out, err);
    }
    return cli_npy_write(out, values, count, err);
}
