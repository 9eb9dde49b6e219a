#include "convert/support.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int folder_make(void **state) {
    char *path = tr__strdup("/tmp/tranche-gguf-XXXXXX");
    *state = path;
    return mkdtemp(path) ? 0 : -1;
}

int folder_remove(void **state) {
    tr_status status = tr__folder_remove(*state, NULL);
    tr__free(*state);
    return status == TR_OK ? 0 : -1;
}

const char *path_of(void **state, const char *name) {
    static char paths[16][PATH_MAX];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, PATH_MAX, "%s/%s", (const char *)*state, name);
    return path;
}

char *content(const char *path, size_t *bytes) {
    tr_error err = {0};
    char *text = NULL;
    must(tr__file_read(path, 1 << 26, &text, bytes, &err), &err);
    return text;
}

void put_content(const char *path, const void *data, size_t bytes) {
    tr_error err = {0};
    must(tr__file_replace(path, data, bytes, &err), &err);
}

void copy_file(const char *from, const char *to) {
    size_t bytes = 0;
    char *text = content(from, &bytes);
    put_content(to, text, bytes);
    tr__free(text);
}

const char *model_of(void **state, const char *golden, const char *name) {
    static const char *const files[] = {"config.json", "model.safetensors"};
    const char *folder = path_of(state, name);
    tr_error err = {0};
    must(tr__folder_create(folder, &err), &err);
    for (int i = 0; i < 2; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        snprintf(from, sizeof from, GOLDENS "/%s/initial/%s", golden, files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        copy_file(from, to);
    }
    return folder;
}

void assert_same_content(const char *a, const char *b) {
    size_t a_bytes = 0, b_bytes = 0;
    char *x = content(a, &a_bytes), *y = content(b, &b_bytes);
    if (a_bytes != b_bytes || memcmp(x, y, a_bytes) != 0) {
        fail_msg("%s and %s differ", a, b);
    }
    tr__free(x);
    tr__free(y);
}

void must(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fail_msg("status %d: %s", (int)status, err->message);
    }
}

void must_fail(tr_status status, const tr_error *err, tr_status wanted,
               const char *words) {
    if (status != wanted || !strstr(err->message, words)) {
        fail_msg("status %d, '%s'; expected %d with '%s'", (int)status, err->message,
                 (int)wanted, words);
    }
}
