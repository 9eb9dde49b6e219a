// What scans of large files found, kept in the user's cache folder, so that a run that
// goes on need not read all its data again.
//
// An entry holds for one state of a file: device, inode, size, and the times of its
// last changes. A cache that cannot be read or written is none.
#ifndef TR_DATA_SOURCES_SCAN_CACHE_H
#define TR_DATA_SOURCES_SCAN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum { TR_SCAN_KEPT = 256 << 20 }; // bytes; smaller files are read again

typedef struct tr_scan_key {
    const char *path;
    int width;
    bool labels;
} tr_scan_key;

// The entry of the file's state now: [0] 0: none can be had.
typedef struct tr_scan_entry {
    char path[4096];
} tr_scan_entry;

tr_scan_entry tr__scan_cache_entry(const tr_scan_key *key);
bool tr__scan_cache_read(const tr_scan_entry *entry, uint32_t most[2]);
void tr__scan_cache_write(const tr_scan_entry *entry, const uint32_t most[2]);

#endif
