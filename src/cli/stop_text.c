#include "cli/stop_text.h"

#include <stdlib.h>
#include <string.h>

tr_status cli_stop_open(cli_stop *stop, const cli_list *texts, tr_error *err) {
    *stop = (cli_stop){.texts = texts, .room = 1};
    for (size_t i = 0; i < texts->count; i++) {
        size_t length = strlen(texts->items[i]);
        if (length == 0) {
            return tr_fail(err, TR_USAGE, "--stop: the text is empty");
        }
        stop->room = length > stop->room ? length : stop->room;
    }
    stop->held = calloc(stop->room, 1);
    return stop->held ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for --stop");
}

void cli_stop_close(cli_stop *stop) {
    free(stop->held);
    stop->held = NULL;
}

static void show(cli_stop *stop, size_t count, report_clean *to) {
    for (size_t i = 0; i < count; i++) {
        report_clean_put(to, (unsigned char)stop->held[i]);
    }
    stop->count -= count;
    memmove(stop->held, stop->held + count, stop->count);
}

// Is what waits from `first` on a stop text, or (`begins`) the beginning of one?
static bool matches(const cli_stop *stop, size_t first, bool begins) {
    size_t count = stop->count - first;
    for (size_t i = 0; i < stop->texts->count; i++) {
        const char *text = stop->texts->items[i];
        bool long_enough = begins ? count <= strlen(text) : count == strlen(text);
        if (long_enough && memcmp(stop->held + first, text, count) == 0) {
            return true;
        }
    }
    return false;
}

// A stop text that ends with the newest byte ends the text. Of several the longest
// counts, since it begins first.
void cli_stop_put(cli_stop *stop, unsigned char byte, report_clean *to) {
    if (stop->found) {
        return;
    }
    stop->held[stop->count++] = (char)byte;
    for (size_t first = 0; first < stop->count; first++) {
        if (matches(stop, first, false)) {
            show(stop, first, to);
            stop->found = true;
            return;
        }
    }
    size_t first = 0;
    while (first < stop->count && !matches(stop, first, true)) {
        first++;
    }
    show(stop, first, to);
}

void cli_stop_end(cli_stop *stop, report_clean *to) {
    if (!stop->found) {
        show(stop, stop->count, to);
    }
}

size_t cli_stop_before(const cli_stop *stop, const char *text, size_t bytes) {
    for (size_t i = 0; i < stop->texts->count; i++) {
        const char *item = stop->texts->items[i];
        const char *at = memmem(text, bytes, item, strlen(item));
        bytes = at ? (size_t)(at - text) : bytes;
    }
    return bytes;
}
