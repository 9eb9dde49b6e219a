// What was measured before: one machine file for each fingerprint.
#include "base/cache.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "calibrate/measure.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

static bool folder_of(const char *folder, char path[PATH_MAX]) {
    if (!folder) {
        return tr__cache_folder(path);
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
        tr__note(log, "the kept measurements of this machine are not used: %s",
                 why.message);
    } else if (!holds(path, *text, fingerprint, &why)) {
        tr__free(*text);
        *text = NULL;
        tr__note(log, "what was measured before is not used: %s", why.message);
    }
}

void tr__calibration_write(const char *folder, const char *fingerprint,
                           const char *text, const tr_log *log) {
    char path[PATH_MAX], in[PATH_MAX];
    tr_error why = {0};
    if (!file_of(folder, fingerprint, path) || !folder_of(folder, in)) {
        return;
    }
    tr_status status =
        folder ? tr__folder_create(in, &why) : tr__folder_create_private(in, &why);
    if (status == TR_OK) {
        status = tr__cache_write(path, text, strlen(text), &why);
    }
    if (status != TR_OK) {
        tr__note(log, "the measurements of this machine are not kept: %s", why.message);
    }
}
