#include "base/cache.h"

#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool tr__cache_folder(char path[PATH_MAX]) {
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (own && own[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/tranche", own);
    } else if (home && home[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/.cache/tranche", home);
    }
    return length > 0 && length < PATH_MAX;
}

tr_status tr__cache_write(const char *path, const void *data, size_t bytes,
                          tr_error *err) {
    char own[PATH_MAX];
    int length = snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
    if (length < 0 || length >= PATH_MAX) {
        return tr_fail(err, TR_IO, "%.300s: path too long", path);
    }
    tr_status status = tr__file_replace_private(own, data, bytes, err);
    if (status == TR_OK && rename(own, path) != 0) {
        unlink(own);
        status = tr_fail(err, TR_IO, "%.300s: cannot replace", path);
    }
    return status;
}
