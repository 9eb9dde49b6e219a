#include "data/sources/paths.h"

#include "base/hash.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct name_list {
    char **name;
    size_t count, capacity;
} name_list;

// One folder being walked, breadth first, without recursion: depth costs no stack.
typedef struct folder_walk {
    tr_file_list *list;
    name_list folders; // paths, read and to be read
    tr_inode_set seen;
} folder_walk;

static tr_status no_memory(tr_error *err, const char *path) {
    return tr_fail(err, TR_MEMORY, "no memory to list %s", path);
}

// Takes ownership of `name` (NULL: it could not be made), also on failure.
static bool name_list_add(name_list *list, char *name) {
    if (!name || !tr__grow((void **)&list->name, &list->capacity, list->count + 1,
                           sizeof *list->name)) {
        tr__free(name);
        return false;
    }
    list->name[list->count++] = name;
    return true;
}

static void name_list_clear(name_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        tr__free(list->name[i]);
    }
    tr__free(list->name);
    *list = (name_list){0};
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const tr_file_entry *)a)->path, ((const tr_file_entry *)b)->path);
}

static tr_status append(tr_file_list *list, const char *path, int64_t bytes,
                        tr_error *err) {
    char *copy = tr__strdup(path);
    if (!copy || !tr__grow((void **)&list->entry, &list->capacity, list->count + 1,
                           sizeof *list->entry)) {
        tr__free(copy);
        return no_memory(err, path);
    }
    list->entry[list->count++] = (tr_file_entry){copy, bytes};
    return TR_OK;
}

static tr_status no_file(tr_error *err, const char *path) {
    return tr_fail(err, TR_DATA,
                   "%s: is neither a regular file nor a folder; move it away or name "
                   "the files to use",
                   path);
}

// The names in `folder`, sorted, without those that begin with a dot, which *hidden
// counts but for . and ..
static tr_status list_folder(const char *folder, name_list *names, int64_t *hidden,
                             tr_error *err) {
    DIR *stream = opendir(folder);
    if (!stream) {
        return tr_fail(err, TR_DATA, "%s: cannot read the folder: %s", folder,
                       strerror(errno));
    }
    tr_status status = TR_OK;
    struct dirent *item;
    errno = 0;
    while (status == TR_OK && (item = readdir(stream)) != NULL) {
        bool dots = strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0;
        bool is_hidden = item->d_name[0] == '.';
        *hidden += is_hidden && !dots;
        if (!is_hidden && !name_list_add(names, tr__strdup(item->d_name))) {
            status = no_memory(err, folder);
        }
        errno = 0;
    }
    if (status == TR_OK && errno != 0) {
        status = tr_fail(err, TR_DATA, "%s: cannot read the folder: %s", folder,
                         strerror(errno));
    }
    closedir(stream);
    if (names->count > 0) {
        qsort(names->name, names->count, sizeof *names->name, compare_names);
    }
    return status;
}

static tr_status stat_inner(const char *path, struct stat *info, tr_error *err) {
    struct stat link;
    if (stat(path, info) == 0) {
        return TR_OK;
    }
    int reason = errno;
    if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode)) {
        return tr_fail(err, TR_DATA,
                       "%s: a link that leads nowhere (%s); remove it or name the "
                       "files to use",
                       path, strerror(reason));
    }
    return tr_fail(err, TR_DATA, "%s: cannot look at it: %s", path, strerror(reason));
}

static tr_inode inode_of(const struct stat *info) {
    return (tr_inode){(uint64_t)info->st_dev, (uint64_t)info->st_ino};
}

static bool is_left_out(const tr_file_list *list, const struct stat *info) {
    tr_inode inode = inode_of(info);
    return list->leaves_out && inode.device == list->left_out.device &&
           inode.inode == list->left_out.inode;
}

void tr__file_list_leave_out(tr_file_list *list, const char *folder) {
    struct stat info;
    list->leaves_out = folder && stat(folder, &info) == 0;
    if (list->leaves_out) {
        list->left_out = inode_of(&info);
    }
}

// Has the file a zero byte where text has none?
static tr_status look(const char *path, bool *binary, tr_error *err) {
    char start[TR_TEXT_LOOKED];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
    }
    ssize_t got = pread(file, start, sizeof start, 0);
    int reason = errno;
    close(file);
    *binary = got > 0 && memchr(start, '\0', (size_t)got);
    return got >= 0
               ? TR_OK
               : tr_fail(err, TR_IO, "%s: cannot read: %s", path, strerror(reason));
}

// A file that was found below a folder.
static tr_status add_inner(tr_file_list *list, const char *path, int64_t bytes,
                           tr_error *err) {
    bool binary = false;
    tr_status status = list->text ? look(path, &binary, err) : TR_OK;
    list->binary += binary;
    return status == TR_OK && !binary ? append(list, path, bytes, err) : status;
}

// Takes ownership of `path`.
static tr_status visit(folder_walk *walk, char *path, tr_error *err) {
    struct stat info;
    tr_status status = stat_inner(path, &info, err);
    if (status != TR_OK) {
        goto cleanup;
    }
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
        status = no_file(err, path);
        goto cleanup;
    }
    if (walk->seen.count > 0 && is_left_out(walk->list, &info)) { // not the root
        goto cleanup;
    }
    tr_inode_added added = tr__inode_set_add(&walk->seen, inode_of(&info));
    if (added == TR_INODE_NO_MEMORY) {
        status = no_memory(err, path);
    } else if (added == TR_INODE_NEW && S_ISDIR(info.st_mode)) {
        bool queued = name_list_add(&walk->folders, path);
        path = NULL;
        status = queued ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to list folders");
    } else if (added == TR_INODE_NEW) {
        status = add_inner(walk->list, path, info.st_size, err);
    }
cleanup:
    tr__free(path);
    return status;
}

static tr_status visit_all(folder_walk *walk, const char *folder, tr_error *err) {
    name_list names = {0};
    tr_status status = list_folder(folder, &names, &walk->list->hidden, err);
    bool slash = folder[strlen(folder) - 1] == '/';
    for (size_t i = 0; status == TR_OK && i < names.count; i++) {
        char *path = tr__format("%s%s%s", folder, slash ? "" : "/", names.name[i]);
        status = path ? visit(walk, path, err) : no_memory(err, folder);
    }
    name_list_clear(&names);
    return status;
}

static tr_status add_folder(tr_file_list *list, const char *root, tr_error *err) {
    folder_walk walk = {.list = list};
    size_t first = list->count;
    char *path = tr__strdup(root);
    tr_status status = path ? visit(&walk, path, err) : no_memory(err, root);
    for (size_t i = 0; status == TR_OK && i < walk.folders.count; i++) {
        status = visit_all(&walk, walk.folders.name[i], err);
    }
    if (list->count > first) {
        qsort(list->entry + first, list->count - first, sizeof *list->entry,
              compare_entries);
    }
    name_list_clear(&walk.folders);
    tr__inode_set_clear(&walk.seen);
    return status;
}

static tr_status add_existing(tr_file_list *list, const char *path,
                              const struct stat *info, tr_error *err) {
    if (S_ISDIR(info->st_mode)) {
        return add_folder(list, path, err);
    }
    return S_ISREG(info->st_mode) ? append(list, path, info->st_size, err)
                                  : no_file(err, path);
}

static int stop_at_errors(const char *path, int reason) {
    (void)path;
    return reason == ENOENT || reason == ENOTDIR ? 0 : 1;
}

static tr_status add_glob(tr_file_list *list, const char *pattern, tr_error *err) {
    glob_t found = {0};
    tr_status status = TR_OK;
    int result = glob(pattern, GLOB_NOSORT, stop_at_errors, &found);
    if (result == GLOB_NOMATCH) {
        status = tr_fail(err, TR_DATA, "%s: no file matches", pattern);
    } else if (result == GLOB_NOSPACE) {
        status = no_memory(err, pattern);
    } else if (result != 0) {
        status =
            tr_fail(err, TR_DATA, "%s: a folder on the way cannot be read", pattern);
    } else {
        // The library's own sort would follow the locale.
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_names);
    }
    for (size_t i = 0; status == TR_OK && result == 0 && i < found.gl_pathc; i++) {
        struct stat info;
        status = stat_inner(found.gl_pathv[i], &info, err);
        if (status == TR_OK && !is_left_out(list, &info)) {
            status = add_existing(list, found.gl_pathv[i], &info, err);
        }
    }
    globfree(&found);
    return status;
}

tr_status tr__file_list_add(tr_file_list *list, const char *path, tr_error *err) {
    struct stat info;
    if (stat(path, &info) == 0) { // a name may well hold a '*' or '['
        return add_existing(list, path, &info, err);
    }
    if (errno == ENOENT && strpbrk(path, "*?[")) {
        return add_glob(list, path, err);
    }
    return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
}

bool tr__path_is_found(const char *path) {
    struct stat info;
    glob_t found = {0};
    if (stat(path, &info) == 0) {
        return true;
    }
    bool matches = strpbrk(path, "*?[") && glob(path, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return matches;
}

void tr__file_list_clear(tr_file_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        tr__free(list->entry[i].path);
    }
    tr__free(list->entry);
    *list = (tr_file_list){0};
}

int64_t tr__file_list_bytes(const tr_file_list *list) {
    int64_t bytes = (int64_t)(list->capacity * sizeof *list->entry);
    for (size_t i = 0; i < list->count; i++) {
        bytes += (int64_t)strlen(list->entry[i].path) + 1;
    }
    return bytes;
}

uint64_t tr__file_list_names(const tr_file_list *list, uint64_t hash) {
    for (size_t i = 0; i < list->count; i++) {
        const char *slash = strrchr(list->entry[i].path, '/');
        const char *name = slash ? slash + 1 : list->entry[i].path;
        hash = tr__hash_more(hash, name, strlen(name));
        hash = tr__hash_more(hash, &list->entry[i].bytes, sizeof(int64_t));
    }
    return hash;
}
