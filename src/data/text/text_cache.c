#include "data/text/text_cache.h"

#include "data/sources/scan.h"

#include "base/cache.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

// Behind the ids. The version is in the magic: it changes with the form of the file.
typedef struct trailer {
    char magic[8];
    uint64_t key;
    int64_t width, ids, documents;
    uint64_t ids_hash;
    uint64_t hash; // of all before
} trailer;

static const char magic[8] = {'T', 'R', 'i', 'd', 's', '0', '0', '1'};

static uint64_t trailer_hash(const trailer *t) {
    return tr__hash(t, offsetof(trailer, hash));
}

// ---- names

tr_status tr__text_cache_name(tr_text_cache *cache, tr_error *err) {
    char folder[PATH_MAX];
    if (!tr__cache_folder(folder)) {
        return tr_fail(err, TR_IO,
                       "tokenized text is kept in the user's cache folder, and there "
                       "is none: set HOME or XDG_CACHE_HOME to a folder");
    }
    tr_error why = {0};
    if (tr__folder_create_private(folder, &why) != TR_OK) {
        return tr_fail(err, TR_IO,
                       "%.400s; tokenized text is kept there: set XDG_CACHE_HOME to a "
                       "folder that can be written",
                       why.message);
    }
    int length = snprintf(cache->path, sizeof cache->path, "%s/text-%016llx.u%d",
                          folder, (unsigned long long)cache->key, 8 * cache->width);
    return length > 0 && (size_t)length < sizeof cache->path
               ? TR_OK
               : tr_fail(err, TR_IO, "%.300s: path too long", folder);
}

// ---- reading

// The hash of the first `bytes` bytes, and the greatest id in them.
static tr_status look_at_ids(int file, const char *path, int width, int64_t bytes,
                             uint64_t *hash, uint32_t *most, tr_error *err) {
    unsigned char *piece = tr__calloc(1, PIECE);
    tr_status status =
        piece ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to look at %s", path);
    uint32_t found[2] = {0, 0};
    *hash = 0;
    for (int64_t at = 0; at < bytes && status == TR_OK; at += PIECE) {
        int64_t here = tr__min_i64(PIECE, bytes - at);
        status = tr__pread(file, path, piece, (size_t)here, at, err);
        if (status == TR_OK) {
            *hash = tr__hash_more(*hash, piece, (size_t)here);
            tr__scan_most(piece, width, here / width, false, found);
        }
    }
    *most = found[0] > found[1] ? found[0] : found[1];
    tr__free(piece);
    return status;
}

// Sizes are checked before anything is multiplied.
static bool trailer_fits(const trailer *t, const tr_text_cache *cache, int64_t bytes) {
    return memcmp(t->magic, magic, sizeof magic) == 0 && t->hash == trailer_hash(t) &&
           t->key == cache->key && t->width == cache->width && t->ids >= 0 &&
           t->ids <= bytes / cache->width && t->ids * cache->width == bytes &&
           t->documents >= 0;
}

static bool read_file(tr_text_cache *cache, int file) {
    struct stat info;
    trailer t;
    uint64_t hash = 0;
    uint32_t most = 0;
    if (fstat(file, &info) != 0 || info.st_size < (off_t)sizeof t) {
        return false;
    }
    int64_t bytes = (int64_t)info.st_size - (int64_t)sizeof t;
    bool good = tr__pread(file, cache->path, &t, sizeof t, bytes, NULL) == TR_OK &&
                trailer_fits(&t, cache, bytes) &&
                look_at_ids(file, cache->path, cache->width, bytes, &hash, &most,
                            NULL) == TR_OK &&
                hash == t.ids_hash && (int64_t)most < cache->vocabulary;
    if (good) {
        cache->ids = t.ids;
        cache->documents = t.documents;
        cache->hash = t.ids_hash;
    }
    return good;
}

bool tr__text_cache_find(tr_text_cache *cache) {
    int file = -1;
    if (tr__file_open(cache->path, O_RDONLY | O_NOFOLLOW, &file, NULL) != TR_OK) {
        return false;
    }
    bool good = read_file(cache, file);
    (void)fchmod(file, 0600); // that of an earlier version
    close(file);
    return good;
}

// ---- writing

static tr_status cannot(const char *what, const char *path, tr_error *err) {
    return tr_fail(err, TR_IO,
                   "%s: cannot %s: %s; tokenized text is kept there: make room, or set "
                   "XDG_CACHE_HOME to another folder",
                   path, what, strerror(errno));
}

// Is the open file the one that has the name, and nobody else's?
static bool is_ours(int file, const char *path) {
    struct stat open_info, info;
    return fstat(file, &open_info) == 0 && lstat(path, &info) == 0 &&
           S_ISREG(info.st_mode) && info.st_dev == open_info.st_dev &&
           info.st_ino == open_info.st_ino && info.st_nlink == 1;
}

// What is under the name is no file that a process of ours has left: it goes, and is
// not written through.
static void remove_stranger(const char *path) {
    struct stat info;
    if (lstat(path, &info) == 0 && (!S_ISREG(info.st_mode) || info.st_nlink != 1)) {
        unlink(path);
    }
}

static tr_status open_alone(const tr_text_cache *cache, tr_text_writer *writer,
                            tr_error *err) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        number = (uint64_t)getpid();
    }
    int length = snprintf(writer->path, sizeof writer->path, "%s.%016llx", cache->path,
                          (unsigned long long)number);
    if (length < 0 || (size_t)length >= sizeof writer->path) {
        return tr_fail(err, TR_IO, "%.300s: path too long", cache->path);
    }
    return tr__file_create_private(writer->path, &writer->file, err);
}

// Whoever writes has the file locked; a process that ends for any reason lets go of it.
static tr_status open_shared(const tr_text_cache *cache, tr_text_writer *writer,
                             tr_text_claim *claim, tr_error *err) {
    remove_stranger(writer->path);
    int file = open(writer->path,
                    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0) {
        return cannot("write", writer->path, err);
    }
    (void)fchmod(file, 0600); // one that an earlier version has left
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        bool locked = errno == EWOULDBLOCK;
        close(file);
        *claim = locked ? TR_TEXT_TAKEN : TR_TEXT_OURS;
        return locked ? TR_OK : open_alone(cache, writer, err); // it has no locks
    }
    if (!is_ours(file, writer->path) || ftruncate(file, 0) != 0) {
        close(file); // it has just got its name, or gone
        *claim = TR_TEXT_TAKEN;
        return TR_OK;
    }
    writer->file = file;
    *claim = TR_TEXT_OURS;
    return TR_OK;
}

static tr_status name_partial(const tr_text_cache *cache, char path[PATH_MAX],
                              tr_error *err) {
    int length = snprintf(path, PATH_MAX, "%s.partial", cache->path);
    return length > 0 && length < PATH_MAX
               ? TR_OK
               : tr_fail(err, TR_IO, "%.300s: path too long", cache->path);
}

tr_status tr__text_cache_claim(const tr_text_cache *cache, bool alone,
                               tr_text_writer *writer, tr_text_claim *claim,
                               tr_error *err) {
    *writer = (tr_text_writer){.file = -1};
    *claim = TR_TEXT_OURS;
    if (alone) {
        return open_alone(cache, writer, err);
    }
    tr_status status = name_partial(cache, writer->path, err);
    return status == TR_OK ? open_shared(cache, writer, claim, err) : status;
}

int64_t tr__text_cache_progress(const tr_text_cache *cache) {
    char path[PATH_MAX];
    struct stat info;
    bool there = name_partial(cache, path, NULL) == TR_OK && lstat(path, &info) == 0;
    return there ? (int64_t)info.st_size ^ (int64_t)info.st_ino << 32 : -1;
}

tr_status tr__text_cache_write(tr_text_writer *writer, const void *ids, size_t bytes,
                               tr_error *err) {
    if (tr__pwrite(writer->file, writer->path, ids, bytes, writer->bytes, NULL) !=
        TR_OK) {
        return cannot("write", writer->path, err);
    }
    writer->bytes += (int64_t)bytes;
    return TR_OK;
}

// What is read back is what the hash is of.
static tr_status write_trailer(tr_text_cache *cache, tr_text_writer *writer,
                               tr_error *err) {
    trailer t = {.key = cache->key,
                 .width = cache->width,
                 .ids = cache->ids,
                 .documents = cache->documents};
    uint32_t most = 0;
    int file = -1;
    memcpy(t.magic, magic, sizeof magic);
    tr_status status = tr__file_open(writer->path, O_RDONLY | O_NOFOLLOW, &file, err);
    if (status != TR_OK) {
        return status;
    }
    status = look_at_ids(file, writer->path, cache->width, writer->bytes, &t.ids_hash,
                         &most, err);
    close(file);
    if (status != TR_OK) {
        return status;
    }
    t.hash = trailer_hash(&t);
    cache->hash = t.ids_hash;
    return tr__text_cache_write(writer, &t, sizeof t, err);
}

tr_status tr__text_cache_keep(tr_text_cache *cache, tr_text_writer *writer,
                              tr_error *err) {
    struct stat info;
    tr_status status = write_trailer(cache, writer, err);
    if (status == TR_OK && fsync(writer->file) != 0) {
        status = cannot("write", writer->path, err);
    }
    if (status == TR_OK && lstat(cache->path, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = tr_fail(err, TR_IO, "%s: is a folder, in the way: move it away",
                         cache->path);
    }
    if (status == TR_OK && rename(writer->path, cache->path) != 0) {
        status = cannot("rename", writer->path, err);
    }
    if (status == TR_OK) {
        close(writer->file);
        writer->file = -1;
    }
    return status;
}

void tr__text_cache_drop(tr_text_writer *writer) {
    if (writer->file >= 0) {
        unlink(writer->path);
        close(writer->file);
        writer->file = -1;
    }
}
