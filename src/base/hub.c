#include "base/hub.h"

#include "base/files.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 96, COMMIT_MAX = 64, REF_MAX = 4096 };

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static bool is_edge_char(char c) {
    return c == '-' || c == '.';
}

// ORG or NAME: [begin, end).
static bool is_part(const char *begin, const char *end) {
    bool good = begin < end && !is_edge_char(*begin) && !is_edge_char(end[-1]);
    for (const char *c = begin; c < end; c++) {
        good = good && is_name_char(*c);
    }
    return good;
}

bool tr__hub_is_name(const char *text) {
    const char *slash = strchr(text, '/'), *end = text + strlen(text);
    return slash && end - text <= NAME_MAX_BYTES && !strstr(text, "--") &&
           !strstr(text, "..") && is_part(text, slash) && is_part(slash + 1, end);
}

// ---- where the cache is

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

// `folder`, in which a leading "~" is the user's home, and what comes below it. False:
// too long, or there is no home.
static bool place(char *dst, const char *folder, const char *below) {
    bool at_home = folder[0] == '~' && (folder[1] == '/' || !folder[1]);
    const char *home = at_home ? variable("HOME") : "";
    int length =
        home ? snprintf(dst, PATH_MAX, "%s%s%s", home, folder + at_home, below) : -1;
    return length > 0 && length < PATH_MAX;
}

// dst: [PATH_MAX].
static bool cache_folder(char *dst) {
    static const struct {
        const char *variable, *below;
    } ways[] = {{"HF_HUB_CACHE", ""},
                {"HUGGINGFACE_HUB_CACHE", ""},
                {"HF_HOME", "/hub"},
                {"XDG_CACHE_HOME", "/huggingface/hub"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *folder = variable(ways[i].variable);
        if (folder) {
            return place(dst, folder, ways[i].below);
        }
    }
    return place(dst, "~/.cache/huggingface/hub", "");
}

// <cache>/models--ORG--NAME. model: [PATH_MAX].
static bool model_folder(const char *name, char *model) {
    char cache[PATH_MAX];
    const char *slash = strchr(name, '/');
    if (!cache_folder(cache)) {
        return false;
    }
    int length = snprintf(model, PATH_MAX, "%s/models--%.*s--%s", cache,
                          (int)(slash - name), name, slash + 1);
    return length > 0 && length < PATH_MAX;
}

bool tr__hub_name_of(const char *folder, char *name) {
    char again[PATH_MAX];
    const char *model = strstr(folder, "/models--");
    const char *end = model ? strstr(model, "/snapshots/") : NULL;
    const char *part = model ? model + strlen("/models--") : NULL;
    const char *dashes = end ? strstr(part, "--") : NULL;
    if (!dashes || dashes >= end) {
        return false;
    }
    int length = snprintf(name, PATH_MAX, "%.*s/%.*s", (int)(dashes - part), part,
                          (int)(end - dashes - 2), dashes + 2);
    return length < PATH_MAX && tr__hub_is_name(name) && model_folder(name, again) &&
           strncmp(again, folder, (size_t)(end - folder)) == 0;
}

// ---- what is in it

tr_status tr__hub_fail_incomplete(const char *name, const char *path, const char *what,
                                  tr_error *err) {
    return tr_fail(err, TR_USAGE,
                   "%s: %s %s; to download the model again: hf download %s", name, path,
                   what, name);
}

// The name of a snapshot, which may lead nowhere else. commit: [COMMIT_MAX + 1], ""
// where the model's folder has no such reference.
static tr_status read_commit(const char *name, const char *model, char *commit,
                             tr_error *err) {
    char path[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    commit[0] = '\0';
    tr_status status = tr__path_join(path, sizeof path, model, "refs/main", err);
    if (status != TR_OK || access(path, F_OK) != 0) {
        return status;
    }
    status = tr__file_read(path, REF_MAX, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    while (bytes > 0 && isspace((unsigned char)text[bytes - 1])) {
        bytes--;
    }
    if (bytes <= COMMIT_MAX && is_part(text, text + bytes)) {
        memcpy(commit, text, bytes);
        commit[bytes] = '\0';
    } else {
        status =
            tr__hub_fail_incomplete(name, path, "is not the name of a commit", err);
    }
    tr__free(text);
    return status;
}

tr_status tr__hub_find(const char *name, char *folder, tr_error *err) {
    char model[PATH_MAX], snapshots[PATH_MAX], commit[COMMIT_MAX + 1];
    folder[0] = '\0';
    if (!tr__hub_is_name(name) || !model_folder(name, model)) {
        return TR_OK;
    }
    tr_status status = read_commit(name, model, commit, err);
    if (status != TR_OK || !commit[0]) {
        return status;
    }
    status = tr__path_join(snapshots, sizeof snapshots, model, "snapshots", err);
    if (status == TR_OK) {
        status = tr__path_join(folder, PATH_MAX, snapshots, commit, err);
    }
    return status;
}
