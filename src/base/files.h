// Files and folders: whole reads, exact pread and pwrite, durable replacement.
// Every error is TR_IO and names the path.
#ifndef TR_BASE_FILES_H
#define TR_BASE_FILES_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Opens a regular file with open()'s flags; anything else (a pipe, a device) is an
// error, and never waited for. O_NOFOLLOW: nor a symbolic link.
tr_status tr__file_open(const char *path, int flags, int *file, tr_error *err);
// Makes a new file to write; what had its name (a file, a link) is removed, not written
// through.
tr_status tr__file_create(const char *path, int *file, tr_error *err);
// The same of a file that only its owner may read, whatever the umask is.
tr_status tr__file_create_private(const char *path, int *file, tr_error *err);
// The whole file, with a zero byte after its end; the caller frees it with tr__free.
// Refuses files over `limit` bytes.
tr_status tr__file_read(const char *path, size_t limit, char **text, size_t *bytes,
                        tr_error *err);
// TR_IO where something is at `path` that is not a regular file.
tr_status tr__file_check_replaceable(const char *path, tr_error *err);
// Writes, syncs and renames over `path`, so that a reader sees the old or the new.
// What is there and not a regular file is an error.
tr_status tr__file_replace(const char *path, const void *data, size_t bytes,
                           tr_error *err);
// The same of a file that only its owner may read.
tr_status tr__file_replace_private(const char *path, const void *data, size_t bytes,
                                   tr_error *err);
// tr__file_replace of what `print` writes to `to`.
tr_status tr__file_print(const char *path,
                         tr_status (*print)(const void *what, FILE *to, tr_error *err),
                         const void *what, tr_error *err);
// Exactly `bytes` bytes at `offset`; a short file is an error that says so.
tr_status tr__pread(int file, const char *path, void *data, size_t bytes,
                    int64_t offset, tr_error *err);
tr_status tr__pwrite(int file, const char *path, const void *data, size_t bytes,
                     int64_t offset, tr_error *err);
// The folder and its parents.
tr_status tr__folder_create(const char *path, tr_error *err);
// The same of folders that only their owner may enter. One that is there, and ours, and
// open to others, is closed to them; TR_IO: that cannot be.
tr_status tr__folder_create_private(const char *path, tr_error *err);
// Nothing of anybody's is written over: the folder is not there, or has nothing in it.
tr_status tr__folder_check_empty(const char *path, tr_error *err);
tr_status tr__folder_sync(const char *path, tr_error *err);
// Takes a folder for oneself until *lock is closed; nothing is left behind in it. *lock
// -1: where the file system has no such locks (NFS). False: another process has it, or
// this one by an earlier call.
bool tr__folder_hold(const char *path, int *lock);
// A folder and all below it; missing is no error. Does not follow symbolic links.
tr_status tr__folder_remove(const char *path, tr_error *err);
// dst: [size]; TR_IO when the joined path does not fit.
tr_status tr__path_join(char *dst, size_t size, const char *folder, const char *name,
                        tr_error *err);

#endif
