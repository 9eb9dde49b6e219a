#include "data/sources/content.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Where block `i` of a file begins, and what it has.
static int64_t block_start(int64_t bytes, int64_t i) {
    if (bytes <= TR_CONTENT_WHOLE) {
        return i * TR_CONTENT_BLOCK;
    }
    return (int64_t)((__int128)(bytes - TR_CONTENT_BLOCK) * i /
                     (TR_CONTENT_BLOCKS - 1));
}

static int64_t block_count(int64_t bytes) {
    return bytes <= TR_CONTENT_WHOLE ? tr__ceil_div(bytes, TR_CONTENT_BLOCK)
                                     : TR_CONTENT_BLOCKS;
}

static tr_status hash_file(const tr_file_entry *entry, char *block, uint64_t *hash,
                           tr_error *err) {
    int file = open(entry->path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", entry->path,
                       strerror(errno));
    }
    tr_status status = TR_OK;
    *hash = tr__hash_more(*hash, &entry->bytes, sizeof entry->bytes);
    for (int64_t i = 0; i < block_count(entry->bytes) && status == TR_OK; i++) {
        int64_t start = block_start(entry->bytes, i);
        size_t here = (size_t)tr__min_i64(TR_CONTENT_BLOCK, entry->bytes - start);
        status = tr__pread(file, entry->path, block, here, start, err);
        *hash = tr__hash_more(*hash, block, here);
    }
    close(file);
    return status;
}

tr_status tr__content_hash(const tr_file_list *list, uint64_t *hash, tr_error *err) {
    char *block = tr__calloc(TR_CONTENT_BLOCK, 1);
    tr_status status =
        block ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to hash the data");
    for (size_t i = 0; i < list->count && status == TR_OK; i++) {
        status = hash_file(&list->entry[i], block, hash, err);
    }
    tr__free(block);
    return status;
}
