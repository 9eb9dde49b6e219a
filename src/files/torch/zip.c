// The format: APPNOTE.TXT of PKWARE, 4.3. Numbers are little-endian.
#include "files/torch/zip.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Bytes of records, and their first four.
enum { END = 22, COMMENT_MOST = 65535, LOCATOR = 20, END_64 = 56, LISTED = 46 };
enum { LOCAL = 30, EXTRA_64 = 1, LIST_MOST = 256 << 20 };
#define END_MARK     UINT32_C(0x06054b50)
#define LOCATOR_MARK UINT32_C(0x07064b50)
#define END_64_MARK  UINT32_C(0x06064b50)
#define LISTED_MARK  UINT32_C(0x02014b50)
#define LOCAL_MARK   UINT32_C(0x04034b50)

static uint64_t number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static tr_status damaged(const tr_zip *zip, const char *what, tr_error *err) {
    return tr_fail(err, TR_IO,
                   "%s: %s: the file is damaged, or was not copied to its end",
                   zip->path, what);
}

// ---- where the list of entries is

typedef struct list {
    uint64_t offset, bytes, count;
} list;

// In files of 4 GiB and more a second record has the numbers.
static tr_status find_list_64(const tr_zip *zip, int64_t end, list *out,
                              tr_error *err) {
    unsigned char locator[LOCATOR], record[END_64];
    if (end < LOCATOR) {
        return damaged(zip, "it has no list of its entries", err);
    }
    tr_status status =
        tr__pread(zip->file, zip->path, locator, sizeof locator, end - LOCATOR, err);
    if (status != TR_OK) {
        return status;
    }
    uint64_t at = number(locator + 8, 8);
    if (number(locator, 4) != LOCATOR_MARK || at > (uint64_t)zip->size ||
        (uint64_t)zip->size - at < END_64) {
        return damaged(zip, "it has no list of its entries", err);
    }
    status = tr__pread(zip->file, zip->path, record, sizeof record, (int64_t)at, err);
    if (status == TR_OK && number(record, 4) != END_64_MARK) {
        status = damaged(zip, "it has no list of its entries", err);
    }
    *out =
        (list){number(record + 48, 8), number(record + 40, 8), number(record + 32, 8)};
    return status;
}

static tr_status find_list(const tr_zip *zip, list *out, tr_error *err) {
    int64_t most = tr__min_i64(zip->size, END + COMMENT_MOST), begin = zip->size - most;
    unsigned char *tail = tr__calloc((size_t)most + 1, 1);
    if (!tail) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", zip->path);
    }
    tr_status status = tr__pread(zip->file, zip->path, tail, (size_t)most, begin, err);
    int64_t at = most - END;
    while (status == TR_OK && at >= 0 && number(tail + at, 4) != END_MARK) {
        at--;
    }
    if (status == TR_OK && at < 0) {
        status = tr_fail(err, TR_IO,
                         "%s: is no zip archive to its end, as torch.save writes it: "
                         "it is damaged, was not copied to its end, or is of PyTorch "
                         "before 1.6, which a newer one loads and saves again",
                         zip->path);
    }
    if (status == TR_OK) {
        *out = (list){number(tail + at + 16, 4), number(tail + at + 12, 4),
                      number(tail + at + 10, 2)};
        bool longer = out->offset == UINT32_MAX || out->bytes == UINT32_MAX ||
                      out->count == UINT16_MAX;
        status = longer ? find_list_64(zip, begin + at, out, err) : TR_OK;
    }
    tr__free(tail);
    return status;
}

// ---- entries

// An entry as the list has it, and the texts behind it.
typedef struct listed {
    const unsigned char *at;
    size_t name, extra, comment; // bytes
} listed;

// The field behind the name that has numbers of more than 32 bits; *bytes 0: none has.
static const unsigned char *find_long(const listed *e, size_t *bytes) {
    const unsigned char *field = e->at + LISTED + e->name;
    size_t left = e->extra;
    while (left >= 4) {
        size_t inside = (size_t)number(field + 2, 2);
        if (inside > left - 4) {
            break;
        }
        if (number(field, 2) == EXTRA_64) {
            *bytes = inside;
            return field + 4;
        }
        field += 4 + inside;
        left -= 4 + inside;
    }
    *bytes = 0;
    return field;
}

// Those that do not fit into 32 bits, in this order. False: they are missing.
static bool long_numbers(const listed *e, uint64_t *size, uint64_t *stored,
                         uint64_t *offset) {
    uint64_t *const wanted[] = {size, stored, offset};
    size_t bytes = 0;
    const unsigned char *at = find_long(e, &bytes);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (*wanted[i] == UINT32_MAX) {
            if (bytes < 8) {
                return false;
            }
            *wanted[i] = number(at, 8);
            at += 8;
            bytes -= 8;
        }
    }
    return true;
}

// The bytes of an entry lie behind a record of its own.
static tr_status place(const tr_zip *zip, tr_zip_entry *entry, uint64_t local,
                       tr_error *err) {
    unsigned char record[LOCAL];
    uint64_t size = (uint64_t)zip->size;
    if (local > size || size - local < LOCAL) {
        return damaged(zip, "an entry lies outside of it", err);
    }
    tr_status status =
        tr__pread(zip->file, zip->path, record, sizeof record, (int64_t)local, err);
    if (status != TR_OK) {
        return status;
    }
    uint64_t begin = local + LOCAL + number(record + 26, 2) + number(record + 28, 2);
    if (number(record, 4) != LOCAL_MARK || begin > size ||
        size - begin < (uint64_t)entry->bytes) {
        return damaged(zip, "an entry lies outside of it", err);
    }
    entry->offset = (int64_t)begin;
    return TR_OK;
}

static tr_status take_entry(tr_zip *zip, const listed *e, tr_error *err) {
    uint64_t stored = number(e->at + 20, 4), size = number(e->at + 24, 4);
    uint64_t local = number(e->at + 42, 4);
    if (!long_numbers(e, &size, &stored, &local) || size > (uint64_t)zip->size ||
        memchr(e->at + LISTED, '\0', e->name)) {
        return damaged(zip, "an entry lies outside of it", err);
    }
    if (number(e->at + 10, 2) != 0 || stored != size) {
        return tr_fail(err, TR_IO,
                       "%s: has compressed entries, which torch.save does not write",
                       zip->path);
    }
    if (!tr__grow((void **)&zip->entry, &zip->capacity, zip->count + 1,
                  sizeof *zip->entry)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", zip->path);
    }
    tr_zip_entry *entry = &zip->entry[zip->count];
    *entry = (tr_zip_entry){.name = tr__calloc(e->name + 1, 1),
                            .bytes = (int64_t)size,
                            .crc = (uint32_t)number(e->at + 16, 4)};
    if (!entry->name) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", zip->path);
    }
    memcpy(entry->name, e->at + LISTED, e->name);
    zip->count++;
    return place(zip, entry, local, err);
}

static int by_name(const void *left, const void *right) {
    const tr_zip_entry *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static tr_status sort(tr_zip *zip, tr_error *err) {
    if (zip->count > 0) {
        qsort(zip->entry, zip->count, sizeof *zip->entry, by_name);
    }
    for (size_t i = 1; i < zip->count; i++) {
        if (strcmp(zip->entry[i - 1].name, zip->entry[i].name) == 0) {
            return damaged(zip, "two entries have one name", err);
        }
    }
    return TR_OK;
}

static tr_status take_entries(tr_zip *zip, const unsigned char *at, const list *l,
                              tr_error *err) {
    uint64_t left = l->bytes;
    tr_status status = TR_OK;
    for (uint64_t i = 0; i < l->count && status == TR_OK; i++) {
        if (left < LISTED || number(at, 4) != LISTED_MARK) {
            return damaged(zip, "the list of its entries ends too early", err);
        }
        listed e = {at, (size_t)number(at + 28, 2), (size_t)number(at + 30, 2),
                    (size_t)number(at + 32, 2)};
        uint64_t bytes = LISTED + e.name + e.extra + e.comment;
        if (left < bytes) {
            return damaged(zip, "the list of its entries ends too early", err);
        }
        status = take_entry(zip, &e, err);
        at += bytes;
        left -= bytes;
    }
    return status == TR_OK ? sort(zip, err) : status;
}

static tr_status read_list(tr_zip *zip, tr_error *err) {
    list l = {0};
    tr_status status = find_list(zip, &l, err);
    if (status != TR_OK) {
        return status;
    }
    if (l.bytes > LIST_MOST || l.offset > (uint64_t)zip->size ||
        l.bytes > (uint64_t)zip->size - l.offset) {
        return damaged(zip, "the list of its entries lies outside of it", err);
    }
    unsigned char *text = tr__calloc((size_t)l.bytes + 1, 1);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", zip->path);
    }
    status =
        tr__pread(zip->file, zip->path, text, (size_t)l.bytes, (int64_t)l.offset, err);
    status = status == TR_OK ? take_entries(zip, text, &l, err) : status;
    tr__free(text);
    return status;
}

// ---- the archive

tr_status tr__zip_open(const char *path, tr_zip *zip, tr_error *err) {
    struct stat info;
    *zip = (tr_zip){.file = -1, .path = tr__strdup(path)};
    if (!zip->path) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    tr_status status = tr__file_open(path, O_RDONLY, &zip->file, err);
    if (status == TR_OK && fstat(zip->file, &info) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot look at: %s", path, strerror(errno));
    }
    if (status != TR_OK) {
        return status;
    }
    zip->size = (int64_t)info.st_size;
    return read_list(zip, err);
}

void tr__zip_close(tr_zip *zip) {
    for (size_t i = 0; i < zip->count; i++) {
        tr__free(zip->entry[i].name);
    }
    tr__free(zip->entry);
    tr__free(zip->path);
    if (zip->file >= 0) {
        close(zip->file);
    }
    *zip = (tr_zip){.file = -1};
}

const tr_zip_entry *tr__zip_find(const tr_zip *zip, const char *name) {
    tr_zip_entry key = {.name = (char *)name};
    return zip->count > 0 ? bsearch(&key, zip->entry, zip->count, sizeof key, by_name)
                          : NULL;
}

static tr_status verify(const tr_zip *zip, const tr_zip_entry *entry,
                        const tr_crc32 *crc, tr_error *err) {
    enum { PIECE = 64 << 10 };
    unsigned char piece[PIECE];
    uint32_t sum = 0;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < entry->bytes && status == TR_OK; at += PIECE) {
        size_t now = (size_t)tr__min_i64(PIECE, entry->bytes - at);
        status = tr__pread(zip->file, zip->path, piece, now, entry->offset + at, err);
        sum = tr__crc32(crc, sum, piece, now);
    }
    return status == TR_OK && entry->crc != 0 && sum != entry->crc
               ? tr_fail(err, TR_IO,
                         "%s: is damaged: the CRC of its entry %.200s is %08x, and "
                         "%08x was written",
                         zip->path, entry->name, sum, entry->crc)
               : status;
}

tr_status tr__zip_verify(const tr_zip *zip, tr_error *err) {
    tr_crc32 crc = tr__crc32_begin(TR_CRC32_ZIP);
    tr_status status = TR_OK;
    for (size_t i = 0; i < zip->count && status == TR_OK; i++) {
        status = verify(zip, &zip->entry[i], &crc, err);
    }
    return status;
}
