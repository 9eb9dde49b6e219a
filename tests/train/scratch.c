#include "scratch.h"

#include "base/files.h"
#include "samples.h"
#include "trial.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scratch_make(void **state) {
    char path[] = "/tmp/tranche-train-XXXXXX";
    *state = mkdtemp(path) ? strdup(path) : NULL;
    return *state ? 0 : -1;
}

int scratch_remove(void **state) {
    tr_error err = {0};
    tr_status status = tr__folder_remove(*state, &err);
    free(*state);
    *state = NULL;
    return status == TR_OK ? 0 : -1;
}

int scratch_cache(void **state) {
    return scratch_make(state) == 0 ? setenv("XDG_CACHE_HOME", *state, 1) : -1;
}

const char *scratch_path(void *const *state, const char *name) {
    static char paths[16][PATH_MAX];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, PATH_MAX, "%s/%s", (const char *)*state, name);
    return path;
}

const char *scratch_write(void *const *state, const char *name, const void *content,
                          size_t bytes) {
    const char *path = scratch_path(state, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *scratch_text(void *const *state, const char *name, const char *text) {
    return scratch_write(state, name, text, strlen(text));
}

const char *scratch_words(void *const *state, const char *name, size_t bytes,
                          unsigned seed) {
    static const char *const words[] = {"one ", "two ", "three ", "four ", "five\n"};
    uint64_t random = seed;
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    for (size_t at = 0; at < bytes;) {
        const char *word = words[test_between(&random, 0, 4)];
        memcpy(text + at, word, strlen(word) + 1);
        at += strlen(word);
    }
    const char *path = scratch_write(state, name, text, bytes);
    free(text);
    return path;
}

void scratch_npy(void **state, const char *name, const char *type, const char *shape,
                 const void *data, size_t bytes) {
    unsigned char head[128] = "\x93NUMPY\x01";
    size_t start = 10, end = sizeof head;
    char text[128];
    head[8] = (unsigned char)(end - start);
    int length =
        snprintf(text, sizeof text,
                 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(head + start, ' ', end - start);
    memcpy(head + start, text, (size_t)length);
    head[end - 1] = '\n';
    FILE *file = fopen(scratch_path(state, name), "wb");
    assert_non_null(file);
    fwrite(head, 1, end, file);
    fwrite(data, 1, bytes, file);
    assert_int_equal(fclose(file), 0);
}
