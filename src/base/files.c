#include "base/files.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static tr_status fail(tr_error *err, const char *path, const char *what) {
    return tr_fail(err, TR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

tr_status tr__pread(int file, const char *path, void *data, size_t bytes,
                    int64_t offset, tr_error *err) {
    char *to = data;
    while (bytes > 0) {
        ssize_t got = pread(file, to, bytes, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(err, path, "read");
        }
        if (got == 0) {
            return tr_fail(err, TR_IO, "%s: ends %zu bytes early", path, bytes);
        }
        to += got;
        bytes -= (size_t)got;
        offset += got;
    }
    return TR_OK;
}

tr_status tr__pwrite(int file, const char *path, const void *data, size_t bytes,
                     int64_t offset, tr_error *err) {
    const char *from = data;
    while (bytes > 0) {
        ssize_t put = pwrite(file, from, bytes, offset);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            if (put == 0) {
                errno = ENOSPC;
            }
            return fail(err, path, "write");
        }
        from += put;
        bytes -= (size_t)put;
        offset += put;
    }
    return TR_OK;
}

tr_status tr__file_open(const char *path, int flags, int *file, tr_error *err) {
    struct stat info;
    // O_NONBLOCK: a pipe that nobody writes to must not hold us up.
    int opened = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
    if (opened < 0 && errno == ELOOP && flags & O_NOFOLLOW) {
        return tr_fail(err, TR_IO, "%s: is a symbolic link, which is not followed",
                       path);
    }
    if (opened < 0) {
        return fail(err, path, "open");
    }
    if (fstat(opened, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(opened);
        return tr_fail(err, TR_IO, "%s: not a regular file", path);
    }
    *file = opened;
    return TR_OK;
}

tr_status tr__file_read(const char *path, size_t limit, char **text, size_t *bytes,
                        tr_error *err) {
    struct stat info;
    char *data = NULL;
    int file = -1;
    tr_status status = tr__file_open(path, O_RDONLY, &file, err);
    if (status != TR_OK) {
        return status;
    }
    if (fstat(file, &info) != 0) {
        status = fail(err, path, "look at");
        goto cleanup;
    }
    if ((uint64_t)info.st_size > limit) {
        status = tr_fail(err, TR_IO,
                         "%s: the file has %lld bytes, and such a file has at most %zu",
                         path, (long long)info.st_size, limit);
        goto cleanup;
    }
    data = tr__calloc(1, (size_t)info.st_size + 1);
    if (!data) {
        status = tr_fail(err, TR_MEMORY, "no memory to read %s", path);
        goto cleanup;
    }
    status = tr__pread(file, path, data, (size_t)info.st_size, 0, err);
    if (status == TR_OK) {
        *text = data;
        *bytes = (size_t)info.st_size;
        data = NULL;
    }
cleanup:
    tr__free(data);
    close(file);
    return status;
}

static tr_status create(const char *path, mode_t mode, int *file, tr_error *err) {
    if (unlink(path) != 0 && errno != ENOENT) {
        return fail(err, path, "replace");
    }
    *file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return *file < 0 ? fail(err, path, "create") : TR_OK;
}

tr_status tr__file_create(const char *path, int *file, tr_error *err) {
    return create(path, 0666, file, err);
}

tr_status tr__file_create_private(const char *path, int *file, tr_error *err) {
    return create(path, 0600, file, err);
}

// A link, a device or a pipe is somebody's for a reason.
tr_status tr__file_check_replaceable(const char *path, tr_error *err) {
    struct stat info;
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode)) {
        return TR_OK;
    }
    return tr_fail(err, TR_IO,
                   "%s: cannot replace: not a regular file; move it away, or give "
                   "another path",
                   path);
}

static tr_status replace(const char *path, mode_t mode, const void *data, size_t bytes,
                         tr_error *err) {
    char temporary[PATH_MAX];
    int file = -1, length = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return tr_fail(err, TR_IO, "%s: path too long", path);
    }
    tr_status status = tr__file_check_replaceable(path, err);
    if (status == TR_OK) {
        status = create(temporary, mode, &file, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = tr__pwrite(file, temporary, data, bytes, 0, err);
    if (status == TR_OK && fsync(file) != 0) {
        status = fail(err, temporary, "sync");
    }
    if (close(file) != 0 && status == TR_OK) {
        status = fail(err, temporary, "close");
    }
    if (status == TR_OK && rename(temporary, path) != 0) {
        status = fail(err, path, "replace");
    }
    if (status != TR_OK) {
        unlink(temporary);
    }
    return status;
}

tr_status tr__file_replace(const char *path, const void *data, size_t bytes,
                           tr_error *err) {
    return replace(path, 0666, data, bytes, err);
}

tr_status tr__file_replace_private(const char *path, const void *data, size_t bytes,
                                   tr_error *err) {
    return replace(path, 0600, data, bytes, err);
}

tr_status tr__file_print(const char *path,
                         tr_status (*print)(const void *what, FILE *to, tr_error *err),
                         const void *what, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    tr_status status = print(what, to, err);
    if (fclose(to) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    if (status == TR_OK) {
        status = tr__file_replace(path, text, bytes, err);
    }
    free(text);
    return status;
}

static tr_status create_folder(const char *path, mode_t mode, tr_error *err) {
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        return tr_fail(err, TR_IO, "'%s': not a usable folder name", path);
    }
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != '\0') {
            continue;
        }
        part[i] = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            return fail(err, part, "create folder");
        }
        part[i] = path[i];
    }
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return tr_fail(err, TR_IO, "%s: is not a folder", path);
    }
    return TR_OK;
}

tr_status tr__folder_create(const char *path, tr_error *err) {
    return create_folder(path, 0777, err);
}

tr_status tr__folder_create_private(const char *path, tr_error *err) {
    const mode_t others = S_IRWXG | S_IRWXO;
    struct stat info;
    tr_status status = create_folder(path, 0700, err);
    if (status != TR_OK) {
        return status;
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return errno == EACCES ? TR_OK : fail(err, path, "open");
    }
    // What belongs to another is not ours to change.
    bool open_to_others =
        fstat(folder, &info) == 0 && info.st_uid == geteuid() && info.st_mode & others;
    if (open_to_others && fchmod(folder, info.st_mode & 07777 & ~others) != 0) {
        status = fail(err, path, "close to other users");
    }
    close(folder);
    return status;
}

tr_status tr__folder_check_empty(const char *path, tr_error *err) {
    DIR *folder = opendir(path);
    int entries = 0;
    if (!folder) {
        return errno == ENOENT ? TR_OK : fail(err, path, "open");
    }
    while (readdir(folder)) {
        entries++;
    }
    closedir(folder);
    return entries <= 2
               ? TR_OK // "." and ".."
               : tr_fail(err, TR_IO,
                         "%s: is not empty; name a folder that is not there", path);
}

tr_status tr__folder_sync(const char *path, tr_error *err) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return fail(err, path, "open");
    }
    tr_status status = fsync(folder) == 0 ? TR_OK : fail(err, path, "sync");
    close(folder);
    return status;
}

bool tr__folder_hold(const char *path, int *lock) {
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0) {
        return true;
    }
    bool held = errno == EWOULDBLOCK;
    close(*lock);
    *lock = -1;
    return !held;
}

tr_status tr__folder_remove(const char *path, tr_error *err) {
    int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT ? TR_OK : fail(err, path, "open as a folder");
    }
    DIR *folder = fdopendir(file);
    if (!folder) {
        close(file);
        return fail(err, path, "read as a folder");
    }
    tr_status status = TR_OK;
    struct dirent *entry;
    while (status == TR_OK && (entry = readdir(folder)) != NULL) {
        char inner[PATH_MAX];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        status = tr__path_join(inner, sizeof inner, path, entry->d_name, err);
        if (status != TR_OK) {
            break;
        }
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
            status = tr__folder_remove(inner, err);
        } else if (unlink(inner) != 0 && errno != ENOENT) {
            status = fail(err, inner, "remove");
        }
    }
    closedir(folder);
    if (status == TR_OK && rmdir(path) != 0 && errno != ENOENT) {
        status = fail(err, path, "remove");
    }
    return status;
}

tr_status tr__path_join(char *dst, size_t size, const char *folder, const char *name,
                        tr_error *err) {
    int length = snprintf(dst, size, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= size) {
        return tr_fail(err, TR_IO, "%s/%s: path too long", folder, name);
    }
    return TR_OK;
}
