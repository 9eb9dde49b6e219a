// What was measured before: one machine file for each fingerprint.
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "calibrate/measure.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

// The user's folder for what can be made again (XDG base directory specification).
static bool user_folder(char path[PATH_MAX]) {
    const char *own = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (own && own[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/tranche", own);
    } else if (home && home[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/.cache/tranche", home);
    }
    return length > 0 && length < PATH_MAX;
}

static bool folder_of(const char *folder, char path[PATH_MAX]) {
    if (!folder) {
        return user_folder(path);
    }
    int length = snprintf(path, PATH_MAX, "%s", folder);
    return length > 0 && length < PATH_MAX;
}

static bool file_of(const char *folder, const char *fingerprint, char path[PATH_MAX]) {
    char in[PATH_MAX];
    if (!folder_of(folder, in)) {
        return false;
    }
    int length = snprintf(path, PATH_MAX, "%s/machine-%016llx.json", in,
                          (unsigned long long)tr__hash_text(fingerprint));
    return length > 0 && length < PATH_MAX;
}

// Is it a machine file, and of this fingerprint? `why`: what is wrong.
static bool holds(const char *path, const char *text, const char *fingerprint,
                  tr_error *why) {
    tr_machine *machine = NULL;
    bool same = false;
    if (tr__machine_parse(path, text, &machine, why) == TR_OK) {
        same = machine->fingerprint && strcmp(machine->fingerprint, fingerprint) == 0;
        if (!same) {
            tr_fail(why, TR_USAGE, "%.300s: of another machine", path);
        }
    }
    tr_machine_close(machine);
    return same;
}

void tr__calibration_read(const char *folder, const char *fingerprint,
                          const tr_log *log, char **text) {
    char path[PATH_MAX];
    size_t bytes = 0;
    tr_error why = {0};
    *text = NULL;
    if (!file_of(folder, fingerprint, path) || access(path, F_OK) != 0) {
        return;
    }
    if (tr__file_read(path, FILE_BYTES_MAX, text, &bytes, &why) != TR_OK) {
        *text = NULL;
        tr__note(log, "what was measured before is not used: %s", why.message);
    } else if (!holds(path, *text, fingerprint, &why)) {
        tr__free(*text);
        *text = NULL;
        tr__note(log, "what was measured before is not used: %s", why.message);
    }
}

// Beside the file first, under a name that no other process takes.
static tr_status write_file(const char *path, const char *text, tr_error *err) {
    char own[PATH_MAX];
    int length = snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
    if (length < 0 || length >= PATH_MAX) {
        return tr_fail(err, TR_IO, "%.300s: path too long", path);
    }
    tr_status status = tr__file_replace(own, text, strlen(text), err);
    if (status == TR_OK && rename(own, path) != 0) {
        unlink(own);
        status = tr_fail(err, TR_IO, "%.300s: cannot replace", path);
    }
    return status;
}

void tr__calibration_write(const char *folder, const char *fingerprint,
                           const char *text, const tr_log *log) {
    char path[PATH_MAX], in[PATH_MAX];
    tr_error why = {0};
    if (!file_of(folder, fingerprint, path) || !folder_of(folder, in)) {
        return;
    }
    tr_status status = tr__folder_create(in, &why);
    if (status == TR_OK) {
        status = write_file(path, text, &why);
    }
    if (status != TR_OK) {
        tr__note(log, "what was measured is not kept: %s", why.message);
    }
}
