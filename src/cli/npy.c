// numpy's .npy, version 1.0, little endian.
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/evaluate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 128 }; // bytes, what the array begins after

static tr_status cannot_write(const cli_npy *npy, tr_error *err) {
    return tr_fail(err, TR_IO, "%.300s: cannot write: %s", npy->path, strerror(errno));
}

static tr_status write_header(cli_npy *npy, const int64_t shape[3], tr_error *err) {
    char text[HEADER + 1];
    memset(text, ' ', sizeof text);
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = HEADER - 10;
    text[9] = 0;
    int length = snprintf(text + 10, HEADER - 10,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64
                          ", %" PRId64 ", %" PRId64 "), }",
                          shape[0], shape[1], shape[2]);
    text[10 + length] = ' '; // in place of the zero byte
    text[HEADER - 1] = '\n';
    return fwrite(text, 1, HEADER, npy->file) == HEADER ? TR_OK
                                                        : cannot_write(npy, err);
}

tr_status cli_npy_open(const char *path, const int64_t shape[3], cli_npy *npy,
                       tr_error *err) {
    *npy = (cli_npy){.path = path, .beside = tr__format("%s.new", path)};
    if (!npy->beside) {
        return tr_fail(err, TR_MEMORY, "no memory for a path");
    }
    int file = -1;
    tr_status status = tr__file_check_replaceable(path, err);
    if (status == TR_OK) {
        status = tr__file_create(npy->beside, &file, err);
    }
    if (status != TR_OK) {
        return status;
    }
    npy->file = fdopen(file, "wb");
    if (!npy->file) {
        status = cannot_write(npy, err);
        close(file);
        unlink(npy->beside);
        return status;
    }
    return write_header(npy, shape, err);
}

tr_status cli_npy_write(cli_npy *npy, const float *values, int64_t count,
                        tr_error *err) {
    size_t wrote = fwrite(values, sizeof *values, (size_t)count, npy->file);
    return wrote == (size_t)count ? TR_OK : cannot_write(npy, err);
}

tr_status cli_npy_close(cli_npy *npy, tr_status status, tr_error *err) {
    if (npy->file && fclose(npy->file) != 0 && status == TR_OK) {
        status = cannot_write(npy, err);
    }
    if (status == TR_OK && rename(npy->beside, npy->path) != 0) {
        status = cannot_write(npy, err);
    }
    if (status != TR_OK && npy->file) {
        unlink(npy->beside);
    }
    tr__free(npy->beside);
    return status;
}
