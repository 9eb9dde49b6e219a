#include "base/hash.h"

#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

uint64_t tr__hash(const void *data, size_t bytes) {
    return XXH3_64bits(data, bytes);
}

uint64_t tr__hash_text(const char *text) {
    return XXH3_64bits(text, strlen(text));
}

uint64_t tr__hash_more(uint64_t hash, const void *data, size_t bytes) {
    return XXH3_64bits_withSeed(data, bytes, hash);
}

tr_status tr__hash_file(const char *path, uint64_t *out, tr_error *err) {
    enum { PIECE = 1 << 20 };
    int file = -1;
    tr_status status = tr__file_open(path, O_RDONLY, &file, err);
    if (status != TR_OK) {
        return status;
    }
    char *piece = tr__calloc(1, PIECE);
    XXH3_state_t *state = XXH3_createState();
    if (!piece || !state) {
        status = tr_fail(err, TR_MEMORY, "no memory to hash %s", path);
        goto cleanup;
    }
    XXH3_64bits_reset(state);
    for (;;) {
        ssize_t got = read(file, piece, PIECE);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            status = tr_fail(err, TR_IO, "%s: cannot read: %s", path, strerror(errno));
            goto cleanup;
        }
        if (got == 0) {
            break;
        }
        XXH3_64bits_update(state, piece, (size_t)got);
    }
    *out = XXH3_64bits_digest(state);
cleanup:
    XXH3_freeState(state);
    tr__free(piece);
    close(file);
    return status;
}
