// What Linux tells in /proc.
#ifndef TR_CLI_PROC_H
#define TR_CLI_PROC_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_PROC_TEXT = 512 };

// The rest of the first line of a file that begins with `key`, without blanks and ':'.
// false: there is none.
bool cli_proc_line(const char *path, const char *key, char text[CLI_PROC_TEXT]);
// The bytes of a file of /proc, at most `room`: how many; 0: it cannot be read.
size_t cli_proc_read(const char *path, char *bytes, size_t room);

#endif
