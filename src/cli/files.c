#include "cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tr_status cannot(const char *path, const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%.300s: cannot %s: %s", path, what, strerror(errno));
}

// ---- reading

static tr_status read_all(FILE *from, const char *path, size_t size, char **data,
                          size_t *bytes, tr_error *err) {
    *data = malloc(size + 1);
    if (!*data) {
        return tr_fail(err, TR_MEMORY, "%.300s: no memory for %zu bytes", path, size);
    }
    *bytes = fread(*data, 1, size, from);
    return ferror(from) ? cannot(path, "read", err) : TR_OK;
}

tr_status cli_file_read(const char *path, size_t limit, char **data, size_t *bytes,
                        tr_error *err) {
    struct stat info;
    *data = NULL;
    if (stat(path, &info) != 0) {
        return cannot(path, "read", err);
    }
    if (!S_ISREG(info.st_mode)) {
        return tr_fail(err, TR_IO, "%.300s: not a regular file", path);
    }
    if ((uint64_t)info.st_size > limit) {
        return tr_fail(err, TR_IO,
                       "%.300s: the file has %lld bytes, and such a file has at most "
                       "%zu",
                       path, (long long)info.st_size, limit);
    }
    FILE *from = fopen(path, "rbe");
    if (!from) {
        return cannot(path, "read", err);
    }
    tr_status status = read_all(from, path, (size_t)info.st_size, data, bytes, err);
    fclose(from);
    return status;
}

// ---- writing

static tr_status check_replaceable(const char *path, tr_error *err) {
    struct stat info;
    bool there = lstat(path, &info) == 0;
    return there && !S_ISREG(info.st_mode)
               ? tr_fail(err, TR_IO,
                         "%.300s: cannot replace: not a regular file; move it away, "
                         "or give another path",
                         path)
               : TR_OK;
}

// What has the name beside is removed, and not written through.
static tr_status create(cli_output *out, tr_error *err) {
    unlink(out->beside);
    int file = open(out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    out->to = file >= 0 ? fdopen(file, "wb") : NULL;
    if (!out->to) {
        tr_status status = cannot(out->beside, "write", err);
        if (file >= 0) {
            close(file);
            unlink(out->beside);
        }
        return status;
    }
    return TR_OK;
}

tr_status cli_output_open(cli_output *out, const char *path, tr_error *err) {
    *out = (cli_output){.path = path};
    tr_status status = check_replaceable(path, err);
    if (status == TR_OK && asprintf(&out->beside, "%s.new", path) < 0) {
        out->beside = NULL;
        status = tr_fail(err, TR_MEMORY, "no memory for a path");
    }
    if (status == TR_OK) {
        status = create(out, err);
    }
    if (status != TR_OK) {
        free(out->beside);
        *out = (cli_output){0};
    }
    return status;
}

tr_status cli_output_fail(const cli_output *out, tr_error *err) {
    return cannot(out->path, "write", err);
}

// All of it is on the disk before it gets its name.
static tr_status finish(cli_output *out, tr_error *err) {
    bool whole =
        fflush(out->to) == 0 && !ferror(out->to) && fsync(fileno(out->to)) == 0;
    tr_status status = whole ? TR_OK : cli_output_fail(out, err);
    if (fclose(out->to) != 0 && status == TR_OK) {
        status = cli_output_fail(out, err);
    }
    if (status == TR_OK && rename(out->beside, out->path) != 0) {
        status = cli_output_fail(out, err);
    }
    return status;
}

tr_status cli_output_close(cli_output *out, tr_status status, tr_error *err) {
    if (!out->to) {
        return status;
    }
    if (status == TR_OK) {
        status = finish(out, err);
    } else {
        fclose(out->to);
    }
    if (status != TR_OK) {
        unlink(out->beside);
    }
    free(out->beside);
    *out = (cli_output){0};
    return status;
}
