// The user's folder for what can be made again (XDG base directory specification).
#ifndef TR_BASE_CACHE_H
#define TR_BASE_CACHE_H

#include <tranche/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

// $XDG_CACHE_HOME/tranche or ~/.cache/tranche. false: the user has neither.
bool tr__cache_folder(char path[PATH_MAX]);
// What stands in it may come from files that others cannot read, so nobody else may
// read it: make the folder by tr__folder_create_private.
//
// tr__file_replace_private for a file that several processes may write at once: beside
// it first, under a name that no other process takes.
tr_status tr__cache_write(const char *path, const void *data, size_t bytes,
                          tr_error *err);

#endif
