#include "files/checkpoint/folder.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/checkpoint/state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[] = {"", ".partial", ".replaced", ".abandoned"};
enum { KINDS = sizeof suffixes / sizeof *suffixes };

static const char *const link_names[] = {"latest", "best"};
static const char *const new_link_names[] = {"latest.new", "best.new"};
enum { LINKS = sizeof link_names / sizeof *link_names };

tr_status tr__checkpoints_path(const char *out_folder, char *dst, tr_error *err) {
    struct stat info;
    tr_status status = tr__path_join(dst, PATH_MAX, out_folder, "checkpoints", err);
    if (status == TR_OK && lstat(dst, &info) == 0 && S_ISLNK(info.st_mode)) {
        status = tr_fail(err, TR_IO,
                         "%s: is a symbolic link, which is not followed: make it a "
                         "folder; \"out\" itself may be a link",
                         dst);
    }
    return status;
}

void tr__step_name(int64_t step, tr_step_kind kind, char *dst) {
    snprintf(dst, TR_STEP_NAME_MAX, "step-%08" PRId64 "%s", step, suffixes[kind]);
}

// A name of ours is one that we would write.
static bool parse_name(const char *name, tr_step_folder *out) {
    static const char prefix[] = "step-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 ||
        !isdigit((unsigned char)name[sizeof prefix - 1])) {
        return false;
    }
    out->step = strtoll(name + sizeof prefix - 1, NULL, 10);
    for (int kind = 0; kind < KINDS; kind++) {
        tr__step_name(out->step, (tr_step_kind)kind, out->name);
        if (strcmp(name, out->name) == 0) {
            out->kind = (tr_step_kind)kind;
            return true;
        }
    }
    return false;
}

int64_t tr__step_number(const char *name) {
    tr_step_folder found;
    return parse_name(name, &found) ? found.step : -1;
}

static bool is_folder(const char *folder, const char *name) {
    char path[PATH_MAX];
    struct stat info;
    return tr__path_join(path, sizeof path, folder, name, NULL) == TR_OK &&
           lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int by_step(const void *left, const void *right) {
    const tr_step_folder *a = left, *b = right;
    if (a->step != b->step) {
        return a->step < b->step ? -1 : 1;
    }
    return (int)a->kind - (int)b->kind;
}

tr_status tr__step_scan(const char *folder, tr_step_folder **list, size_t *count,
                        tr_error *err) {
    size_t capacity = 0;
    struct dirent *entry;
    tr_status status = TR_OK;
    *list = NULL;
    *count = 0;
    DIR *open_folder = opendir(folder);
    if (!open_folder) {
        return errno == ENOENT ? TR_OK
                               : tr_fail(err, TR_IO, "%s: cannot open: %s", folder,
                                         strerror(errno));
    }
    while (status == TR_OK && (entry = readdir(open_folder)) != NULL) {
        tr_step_folder found;
        if (!parse_name(entry->d_name, &found) || !is_folder(folder, found.name)) {
            continue;
        }
        if (tr__grow((void **)list, &capacity, *count + 1, sizeof **list)) {
            (*list)[(*count)++] = found;
        } else {
            status = tr_fail(err, TR_MEMORY, "no memory to list %s", folder);
        }
    }
    closedir(open_folder);
    if (*count > 0) {
        qsort(*list, *count, sizeof **list, by_step);
    }
    return status;
}

static tr_status rename_in(const char *folder, const char *from, const char *to,
                           tr_error *err) {
    char old[PATH_MAX], fresh[PATH_MAX];
    tr_status status = tr__path_join(old, sizeof old, folder, from, err);
    if (status == TR_OK) {
        status = tr__path_join(fresh, sizeof fresh, folder, to, err);
    }
    if (status == TR_OK && rename(old, fresh) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot rename to %s: %s", old, to,
                         strerror(errno));
    }
    return status;
}

static tr_status remove_in(const char *folder, const char *name, tr_error *err) {
    char path[PATH_MAX];
    tr_status status = tr__path_join(path, sizeof path, folder, name, err);
    return status == TR_OK ? tr__folder_remove(path, err) : status;
}

static tr_status clean_one(const char *folder, const tr_step_folder *found,
                           tr_error *err) {
    char plain[TR_STEP_NAME_MAX];
    tr__step_name(found->step, TR_STEP_PLAIN, plain);
    if (found->kind == TR_STEP_PLAIN || found->kind == TR_STEP_ABANDONED) {
        return TR_OK;
    }
    if (found->kind == TR_STEP_REPLACED && !is_folder(folder, plain)) {
        return rename_in(folder, found->name, plain, err);
    }
    return remove_in(folder, found->name, err);
}

tr_status tr__checkpoint_clean(const char *out_folder, tr_error *err) {
    char folder[PATH_MAX], link[PATH_MAX];
    tr_step_folder *list = NULL;
    size_t count = 0;
    tr_status status = tr__checkpoints_path(out_folder, folder, err);
    if (status == TR_OK) {
        status = tr__step_scan(folder, &list, &count, err);
    }
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        status = clean_one(folder, &list[i], err);
    }
    for (int i = 0; status == TR_OK && i < LINKS; i++) {
        status = tr__path_join(link, sizeof link, folder, new_link_names[i], err);
        if (status == TR_OK) {
            unlink(link); // most often it is not there
        }
    }
    tr__free(list);
    return status;
}

static bool is_ours(const char *folder, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s/state.json", folder, name);
    tr_state state;
    tr_manifest manifest;
    return length > 0 && (size_t)length < sizeof path &&
           tr__state_read(path, &state, &manifest, NULL) == TR_OK;
}

// Under a temporary name first: a removal cut short must not look complete.
static tr_status remove_step(const char *folder, const tr_step_folder *found,
                             tr_error *err) {
    char partial[TR_STEP_NAME_MAX];
    tr__step_name(found->step, TR_STEP_PARTIAL, partial);
    tr_status status = remove_in(folder, partial, err);
    if (status == TR_OK) {
        status = rename_in(folder, found->name, partial, err);
    }
    return status == TR_OK ? remove_in(folder, partial, err) : status;
}

tr_status tr__step_prune(const char *folder, int64_t step, int keep, tr_error *err) {
    tr_step_folder *list = NULL;
    size_t count = 0;
    char best[TR_STEP_NAME_MAX] = "";
    int kept = 1; // `step` itself
    if (keep < 1) {
        return TR_OK;
    }
    tr_status status = tr__step_scan(folder, &list, &count, err);
    tr__link_read(folder, TR_LINK_BEST, best);
    for (size_t i = count; status == TR_OK && i-- > 0;) {
        if (list[i].kind == TR_STEP_PLAIN && list[i].step < step &&
            is_ours(folder, list[i].name) && kept++ >= keep &&
            strcmp(list[i].name, best) != 0) {
            status = remove_step(folder, &list[i], err);
        }
    }
    tr__free(list);
    return status;
}

tr_status tr__step_clear(const char *folder, int64_t step, int *removed,
                         tr_error *err) {
    tr_step_folder *list = NULL;
    size_t count = 0;
    *removed = 0;
    tr_status status = tr__step_scan(folder, &list, &count, err);
    for (size_t i = count; status == TR_OK && i-- > 0;) { // the newest goes first
        if (list[i].kind == TR_STEP_PLAIN && list[i].step != step &&
            is_ours(folder, list[i].name)) {
            status = remove_step(folder, &list[i], err);
            *removed += status == TR_OK;
        }
    }
    tr__free(list);
    return status;
}

tr_status tr__step_abandon(const char *folder, int64_t until, int64_t step, int *moved,
                           tr_error *err) {
    tr_step_folder *list = NULL;
    size_t count = 0;
    *moved = 0;
    tr_status status = tr__step_scan(folder, &list, &count, err);
    for (size_t i = count; status == TR_OK && i-- > 0;) { // the newest goes first
        char name[TR_STEP_NAME_MAX];
        if (list[i].kind != TR_STEP_PLAIN || list[i].step <= until ||
            list[i].step == step || !is_ours(folder, list[i].name)) {
            continue;
        }
        tr__step_name(list[i].step, TR_STEP_ABANDONED, name);
        status = remove_in(folder, name, err);
        if (status == TR_OK) {
            status = rename_in(folder, list[i].name, name, err);
        }
        *moved += status == TR_OK;
    }
    tr__free(list);
    return status;
}

bool tr__link_read(const char *folder, tr_link link, char *dst) {
    char path[PATH_MAX], target[TR_STEP_NAME_MAX];
    tr_step_folder found;
    if (tr__path_join(path, sizeof path, folder, link_names[link], NULL) != TR_OK) {
        return false;
    }
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0 || (size_t)length >= sizeof target - 1) {
        return false;
    }
    target[length] = '\0';
    if (!parse_name(target, &found) || found.kind != TR_STEP_PLAIN ||
        !is_folder(folder, target)) {
        return false;
    }
    memcpy(dst, found.name, TR_STEP_NAME_MAX);
    return true;
}

tr_status tr__link_write(const char *folder, tr_link link, const char *name,
                         tr_error *err) {
    char fresh[PATH_MAX];
    tr_status status =
        tr__path_join(fresh, sizeof fresh, folder, new_link_names[link], err);
    if (status != TR_OK) {
        return status;
    }
    unlink(fresh);
    if (symlink(name, fresh) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot make a symbolic link: %s", fresh,
                       strerror(errno));
    }
    status = rename_in(folder, new_link_names[link], link_names[link], err);
    return status == TR_OK ? tr__folder_sync(folder, err) : status;
}

void tr__link_tidy(const char *folder, tr_link link) {
    char path[PATH_MAX], name[TR_STEP_NAME_MAX];
    struct stat info;
    if (tr__path_join(path, sizeof path, folder, link_names[link], NULL) == TR_OK &&
        lstat(path, &info) == 0 && S_ISLNK(info.st_mode) &&
        !tr__link_read(folder, link, name)) {
        unlink(path);
    }
}
