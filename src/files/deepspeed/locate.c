// Where in a path DeepSpeed saved a step.
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "files/deepspeed/deepspeed.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

static const char model_end[] = "_model_states.pt";
enum { NAME_MOST = 256 };

// Has it files of a step, or folders with such files?
static bool has_files(const char *path, bool inside) {
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;
    bool found = false;
    while (folder && !found && (entry = readdir(folder)) != NULL) {
        char inner[PATH_MAX];
        found = tr__ends_with(entry->d_name, model_end);
        if (!found && inside && entry->d_name[0] != '.' &&
            tr__path_join(inner, sizeof inner, path, entry->d_name, NULL) == TR_OK) {
            found = has_files(inner, false);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return found;
}

// The name of a folder beside it. False: there is no such file, or no such name in it.
static bool read_latest(const char *path, char name[NAME_MOST]) {
    char file[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    bool named = tr__path_join(file, sizeof file, path, "latest", NULL) == TR_OK &&
                 tr__file_read(file, NAME_MOST - 1, &text, &bytes, NULL) == TR_OK;
    if (named) {
        memcpy(name, text, bytes + 1);
        name[strcspn(name, "\r\n")] = '\0';
        named = name[0] && name[0] != '.' && !strchr(name, '/');
    }
    tr__free(text);
    return named;
}

tr_status tr__deepspeed_locate(const char *path, char *dst, tr_error *err) {
    char name[NAME_MOST];
    *dst = '\0';
    if (has_files(path, false)) {
        size_t length = strlen(path);
        memcpy(dst, path, length < PATH_MAX ? length + 1 : 0);
        return length < PATH_MAX ? TR_OK
                                 : tr_fail(err, TR_IO, "%.600s: too long a path", path);
    }
    if (!has_files(path, true)) {
        return TR_OK;
    }
    tr_status status =
        read_latest(path, name) ? tr__path_join(dst, PATH_MAX, path, name, err) : TR_OK;
    if (status == TR_OK && (!*dst || !has_files(dst, false))) {
        *dst = '\0';
        status = tr_fail(err, TR_IO,
                         "%.600s: DeepSpeed saved steps in this folder, and its file "
                         "\"latest\" names none of them: give the folder of a step",
                         path);
    }
    return status;
}
