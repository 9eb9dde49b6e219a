#include "cli/proc.h"

#include <stdio.h>
#include <string.h>

bool cli_proc_line(const char *path, const char *key, char text[CLI_PROC_TEXT]) {
    char line[8192];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strncmp(line, key, strlen(key)) == 0;
    }
    if (file) {
        fclose(file);
    }
    if (found) {
        const char *value = line + strlen(key) + strspn(line + strlen(key), " \t:");
        snprintf(text, CLI_PROC_TEXT, "%.*s", (int)strcspn(value, "\n"), value);
    }
    return found;
}

size_t cli_proc_read(const char *path, char *bytes, size_t room) {
    FILE *file = fopen(path, "re");
    size_t count = file ? fread(bytes, 1, room, file) : 0;
    if (file) {
        fclose(file);
    }
    return count;
}
