// A zip archive whose entries are stored as they are, as torch.save writes it.
#ifndef TR_FILES_TORCH_ZIP_H
#define TR_FILES_TORCH_ZIP_H

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

typedef struct tr_zip_entry {
    char *name;
    int64_t offset, bytes; // in the file
    uint32_t crc;          // 0: it was not computed
} tr_zip_entry;

typedef struct tr_zip {
    char *path;
    int file; // open for reading
    int64_t size;
    tr_zip_entry *entry; // [count] by name
    size_t count, capacity;
} tr_zip;

// Reads where the entries are, and checks that they lie in the file. TR_IO: it is no
// such archive, or damaged. TR_MEMORY. Closed by tr__zip_close in either case.
tr_status tr__zip_open(const char *path, tr_zip *zip, tr_error *err);
void tr__zip_close(tr_zip *zip);

// NULL: there is none of that name.
const tr_zip_entry *tr__zip_find(const tr_zip *zip, const char *name);

// Reads all entries, and compares their CRCs. TR_IO names the one that is damaged.
tr_status tr__zip_verify(const tr_zip *zip, tr_error *err);

#endif
