// From the paths a user names to a list of files.
#ifndef TR_DATA_SOURCES_PATHS_H
#define TR_DATA_SOURCES_PATHS_H

#include "data/sources/inode_set.h"

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_TEXT_LOOKED = 8192 };

typedef struct tr_file_entry {
    char *path;
    int64_t bytes;
} tr_file_entry;

typedef struct tr_file_list { // zero-initialized: empty
    tr_file_entry *entry;
    size_t count, capacity;
    bool leaves_out; // below folders and among matches:
    tr_inode left_out;
    bool text;              // files that are not text are passed over below folders
    int64_t hidden, binary; // passed over: names that begin with a dot, not text
} tr_file_list;

// Has later calls of tr__file_list_add pass over this folder (NULL, or not there:
// none), unless it is itself what they are given.
void tr__file_list_leave_out(tr_file_list *list, const char *folder);

// Adds what `path` names: a file, the files of a folder (recursively, sorted by path,
// byte by byte), or the matches of a glob, sorted. Below a folder, a file or folder
// that several links reach is taken once, so loops of links end. Below a folder, hidden
// files and folders (the name begins with a dot) are passed over and counted, and,
// where the list is of text, files with a zero byte in their first TR_TEXT_LOOKED
// bytes. TR_DATA: nothing there, a link to nothing, neither file nor folder, a folder
// that cannot be read.
tr_status tr__file_list_add(tr_file_list *list, const char *path, tr_error *err);
void tr__file_list_clear(tr_file_list *list);
// Is there something that `path` names?
bool tr__path_is_found(const char *path);

// Bytes of memory that the list holds.
int64_t tr__file_list_bytes(const tr_file_list *list);
// Folds names (the last part of each path) and sizes into a hash.
uint64_t tr__file_list_names(const tr_file_list *list, uint64_t hash);

#endif
