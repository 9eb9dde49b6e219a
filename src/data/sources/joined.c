#include "data/sources/joined.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Files kept open. More are legal, but a process may have few descriptors (ulimit -n).
enum { KEPT_MAX = 64 };

static tr_status open_file(const char *path, int *file, tr_error *err) {
    *file = open(path, O_RDONLY | O_CLOEXEC);
    if (*file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
    }
    return TR_OK;
}

static tr_status open_all(tr_joined *joined, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; status == TR_OK && i < joined->files.count; i++) {
        const tr_file_entry *entry = &joined->files.entry[i];
        int file = -1;
        if (entry->bytes % joined->width != 0) {
            return tr_fail(err, TR_DATA,
                           "%s: %lld bytes are no whole number of entries of %d bytes; "
                           "is the dtype right, the file complete?",
                           entry->path, (long long)entry->bytes, joined->width);
        }
        joined->start[i + 1] = joined->start[i] + entry->bytes / joined->width;
        status = open_file(entry->path, &file, err);
        if (status == TR_OK && i < KEPT_MAX) {
            joined->file[joined->kept++] = file;
        } else if (status == TR_OK) {
            close(file);
        }
    }
    return status;
}

// Why there is nothing in the files.
static const char *why_empty(const tr_file_list *list) {
    if (list->count > 0) {
        return "only empty files";
    }
    return list->binary > 0   ? "only binary files in this folder"
           : list->hidden > 0 ? "only hidden files in this folder"
                              : "no files in this folder";
}

tr_status tr__joined_open(tr_joined *joined, tr_file_list *list, const char *path,
                          int width, tr_error *err) {
    tr_status status = TR_OK;
    *joined = (tr_joined){.width = width, .files = *list};
    *list = (tr_file_list){0};
    size_t files = joined->files.count;
    joined->start = tr__calloc(files + 1, sizeof *joined->start);
    joined->file =
        tr__calloc(files < KEPT_MAX ? files : KEPT_MAX, sizeof *joined->file);
    if (!joined->start || !joined->file) {
        status = tr_fail(err, TR_MEMORY, "no memory to open %zu files", files);
        goto cleanup;
    }
    status = open_all(joined, err);
    if (status == TR_OK && tr__joined_count(joined) == 0) {
        status = tr_fail(err, TR_DATA, "%s: %s; name files that hold data", path,
                         why_empty(&joined->files));
    }
cleanup:
    if (status != TR_OK) {
        tr__joined_close(joined);
    }
    return status;
}

void tr__joined_close(tr_joined *joined) {
    for (size_t i = 0; i < joined->kept; i++) {
        close(joined->file[i]);
    }
    tr__free(joined->file);
    tr__free(joined->start);
    tr__file_list_clear(&joined->files);
    *joined = (tr_joined){0};
}

int64_t tr__joined_count(const tr_joined *joined) {
    return joined->start[joined->files.count];
}

int64_t tr__joined_bytes(const tr_joined *joined) {
    return tr__file_list_bytes(&joined->files) +
           (int64_t)((joined->files.count + 1) * sizeof *joined->start +
                     joined->kept * sizeof *joined->file);
}

// The last file that begins at or before `entry`: the one that holds it, as empty files
// begin where the next one does.
static size_t find_file(const tr_joined *joined, int64_t entry) {
    size_t low = 0, high = joined->files.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (joined->start[middle] <= entry) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static tr_status read_part(const tr_joined *joined, size_t index, int64_t offset,
                           void *dst, size_t bytes, tr_error *err) {
    const char *path = joined->files.entry[index].path;
    if (index < joined->kept) {
        return tr__pread(joined->file[index], path, dst, bytes, offset, err);
    }
    int file = -1;
    tr_status status = open_file(path, &file, err);
    if (status == TR_OK) {
        status = tr__pread(file, path, dst, bytes, offset, err);
        close(file);
    }
    return status;
}

tr_status tr__joined_read(const tr_joined *joined, int64_t first, int64_t count,
                          void *dst, tr_error *err) {
    char *to = dst;
    tr_status status = TR_OK;
    for (size_t i = find_file(joined, first); status == TR_OK && count > 0; i++) {
        int64_t here = tr__min_i64(count, joined->start[i + 1] - first);
        if (here == 0) {
            continue;
        }
        int64_t offset = (first - joined->start[i]) * joined->width;
        size_t bytes = (size_t)(here * joined->width);
        status = read_part(joined, i, offset, to, bytes, err);
        to += bytes;
        first += here;
        count -= here;
    }
    return status;
}

const char *tr__joined_locate(const tr_joined *joined, int64_t entry, int64_t *inner) {
    size_t i = find_file(joined, entry);
    *inner = entry - joined->start[i];
    return joined->files.entry[i].path;
}
