#include "fuzz.h"

#include "base/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX];

static void remove_folder(void) {
    tr__folder_remove(folder, NULL);
}

const char *fuzz_folder(void) {
    if (!folder[0]) {
        // Memory, where there is some: a file is written for each input.
        bool memory = access("/dev/shm", W_OK) == 0;
        snprintf(folder, sizeof folder, "%s/tranche-fuzz-XXXXXX",
                 memory ? "/dev/shm" : "/tmp");
        fuzz_check(mkdtemp(folder) != NULL, "no folder for the inputs");
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t size) {
    enum { FILES = 4 };
    static char paths[FILES][PATH_MAX + 64];
    static int next;
    char *path = paths[next++ % FILES];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder(), name);
    FILE *file = fopen(path, "wb");
    fuzz_check(file != NULL, "the input's file cannot be opened");
    bool whole = fwrite(data, 1, size, file) == size;
    fuzz_check(fclose(file) == 0 && whole, "the input's file cannot be written");
    return path;
}

void fuzz_check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

void fuzz_check_told(tr_status status, const tr_error *err) {
    fuzz_check((status == TR_OK) == (err->message[0] == '\0'),
               status == TR_OK ? "success, with an error's message"
                               : "a failure without a message");
}
