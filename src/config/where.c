// Where a value stands, for messages.
#include "config/internal.h"

#include <stdio.h>
#include <string.h>

// "FILE:LINE: ", "--set: "; source NULL: the file; line 0: not known.
static void place(const tr_config *config, const char *source, int line, char *dst,
                  size_t size) {
    if (source) {
        snprintf(dst, size, "%.100s: ", source);
    } else if (line > 0) {
        snprintf(dst, size, "%.300s:%d: ", config->name, line);
    } else {
        snprintf(dst, size, "%.300s: ", config->name);
    }
}

void tr__config_where(const tr_config *config, const char *path, char *dst,
                      size_t size) {
    int line = config->text ? tr__config_line(config->text, config->bytes, path) : 0;
    place(config, tr__config_path_source(config, path), line, dst, size);
}

void tr__config_name(const tr_config *config, const char *path, char *dst,
                     size_t size) {
    const tr_entry *entry = tr__config_entry(config, path);
    if (entry) {
        place(config, entry->origin == TR_ORIGIN_SET ? entry->source : NULL,
              entry->line, dst, size);
    } else {
        dst[0] = '\0';
    }
    size_t length = strlen(dst);
    snprintf(dst + length, size - length, "%s", path);
}
