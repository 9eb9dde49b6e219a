#include "data/sources/scan_cache.h"

#include "base/cache.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 64 };

tr_scan_entry tr__scan_cache_entry(const tr_scan_key *key) {
    tr_scan_entry entry = {""};
    char folder[PATH_MAX];
    struct stat info;
    if (stat(key->path, &info) != 0 || info.st_size < TR_SCAN_KEPT ||
        !tr__cache_folder(folder)) {
        return entry;
    }
    const int64_t state[] = {(int64_t)info.st_dev,
                             (int64_t)info.st_ino,
                             (int64_t)info.st_size,
                             (int64_t)info.st_mtim.tv_sec,
                             (int64_t)info.st_mtim.tv_nsec,
                             (int64_t)info.st_ctim.tv_sec,
                             (int64_t)info.st_ctim.tv_nsec,
                             key->width,
                             key->labels};
    int length = snprintf(entry.path, sizeof entry.path, "%s/ids-%016llx", folder,
                          (unsigned long long)tr__hash(state, sizeof state));
    if (length < 0 || (size_t)length >= sizeof entry.path) {
        entry.path[0] = '\0';
    }
    return entry;
}

bool tr__scan_cache_read(const tr_scan_entry *entry, uint32_t most[2]) {
    char *text = NULL, more;
    size_t bytes = 0;
    if (entry->path[0] == '\0' || access(entry->path, F_OK) != 0 ||
        tr__file_read(entry->path, TEXT_MAX, &text, &bytes, NULL) != TR_OK) {
        return false;
    }
    bool good = sscanf(text, "%u %u %c", &most[0], &most[1], &more) == 2;
    tr__free(text);
    return good;
}

void tr__scan_cache_write(const tr_scan_entry *entry, const uint32_t most[2]) {
    char folder[PATH_MAX], text[TEXT_MAX];
    if (entry->path[0] == '\0' || !tr__cache_folder(folder) ||
        tr__folder_create_private(folder, NULL) != TR_OK) {
        return;
    }
    int length = snprintf(text, sizeof text, "%u %u\n", most[0], most[1]);
    (void)tr__cache_write(entry->path, text, (size_t)length, NULL);
}
