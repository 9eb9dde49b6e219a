#include "backend/host/nvme.h"

#include "backend/host/copy_engine.h"

#include "base/files.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char advice[] = "make room there, or name another folder in nvme_path";

// Created and unlinked at once: whatever becomes of the process, nothing stays.
static tr_status open_file(const char *folder, int *file, tr_error *err) {
    char path[PATH_MAX];
    tr_status status =
        tr__path_join(path, sizeof path, folder, "tranche-nvme-XXXXXX", err);
    if (status != TR_OK) {
        return status;
    }
    *file = mkostemp(path, O_CLOEXEC);
    if (*file < 0) {
        return tr_fail(err, TR_IO,
                       "%s: cannot create a file there: %s; nvme_path is to be a "
                       "folder that exists and may be written to",
                       folder, strerror(errno));
    }
    if (unlink(path) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot remove: %s", path, strerror(errno));
        close(*file);
    }
    return status;
}

// Said before the disk is filled to the brim for the sake of an answer.
static tr_status check_room(const char *folder, int file, int64_t bytes,
                            tr_error *err) {
    char need[32], there[32];
    struct statvfs info;
    struct rlimit limit;
    tr__print_size(need, sizeof need, bytes);
    // Passing this limit is a signal that ends the process.
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < (uint64_t)bytes) {
        tr__print_size(there, sizeof there, (int64_t)limit.rlim_cur);
        return tr_fail(err, TR_IO,
                       "%s: the plan needs a file of %s here, but this process may "
                       "write files of at most %s: raise the limit (ulimit -f)",
                       folder, need, there);
    }
    if (fstatvfs(file, &info) == 0 && (int64_t)info.f_frsize > 0 &&
        info.f_bavail < (uint64_t)bytes / info.f_frsize) {
        tr__print_size(there, sizeof there,
                       (int64_t)info.f_bavail * (int64_t)info.f_frsize);
        return tr_fail(err, TR_IO,
                       "%s: the plan needs %s here, but only %s are free: %s", folder,
                       need, there, advice);
    }
    return TR_OK;
}

static tr_status reserve(const char *folder, int file, int64_t bytes, tr_error *err) {
    char need[32];
    int result = EINTR;
    tr_status status = check_room(folder, file, bytes, err);
    if (status != TR_OK || bytes == 0) {
        return status;
    }
    while (result == EINTR) {
        result = posix_fallocate(file, 0, bytes);
    }
    if (result == 0) {
        return TR_OK;
    }
    tr__print_size(need, sizeof need, bytes);
    return tr_fail(err, TR_IO, "%s: cannot reserve %s there: %s: %s", folder, need,
                   strerror(result), advice);
}

// Past the page cache, which would take the memory that the file is there to save.
// Where the file system cannot (or wants another alignment than ours), through it.
static bool make_direct(int file) {
    _Alignas(TR_CARRY_ALIGN) char block[TR_CARRY_ALIGN];
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || fcntl(file, F_SETFL, flags | O_DIRECT) != 0) {
        return false;
    }
    if (pread(file, block, sizeof block, 0) < 0) {
        fcntl(file, F_SETFL, flags);
        return false;
    }
    return true;
}

tr_status tr__nvme_create(const char *folder, int64_t bytes, bool plain, tr_nvme **out,
                          bool *direct, tr_error *err) {
    int file = -1;
    tr_status status = open_file(folder, &file, err);
    *out = NULL;
    if (status != TR_OK) {
        return status;
    }
    status = reserve(folder, file, bytes, err);
    if (status != TR_OK) {
        close(file);
        return status;
    }
    *direct = make_direct(file);
    if (!plain) {
        status = tr__nvme_uring_create(file, out, err);
    }
    if (status == TR_OK && !*out) {
        status = tr__nvme_threads_create(file, out, err);
    }
    return status;
}

void tr__nvme_destroy(tr_nvme *nvme) {
    if (nvme) {
        nvme->method->destroy(nvme);
    }
}
