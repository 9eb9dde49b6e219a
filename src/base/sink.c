#include "base/sink.h"

#include "base/arguments.h"

#include <errno.h>

// A stream takes 0 for an error.
static ssize_t hand_on(void *sink, const char *text, size_t bytes) {
    const tr_sink *to = sink;
    bool taken = to->write(to->user, text, bytes);
    errno = taken ? errno : EIO;
    return taken ? (ssize_t)bytes : 0;
}

tr_status tr__sink_print(const tr_sink *to, const char *function,
                         tr_status (*print)(const void *what, FILE *to, tr_error *err),
                         const void *what, tr_error *err) {
    static const cookie_io_functions_t functions = {.write = hand_on};
    tr_status status =
        what ? tr__need(to, function, "to", err)
             : tr_fail(err, TR_USAGE, "%s: NULL was given for what is to be printed",
                       function);
    if (status != TR_OK) {
        return status;
    }
    if (!to->write) {
        return tr_fail(err, TR_USAGE, "%s: the sink has no function `write`", function);
    }
    tr_sink sink = *to;
    FILE *stream = fopencookie(&sink, "w", functions);
    if (!stream) {
        return tr_fail(err, TR_MEMORY, "no memory to print");
    }
    tr_error found = {0};
    status = print(what, stream, &found);
    bool whole = !ferror(stream);
    whole = fclose(stream) == 0 && whole;
    if (!whole && (status == TR_OK || status == TR_IO)) {
        return tr_fail(err, TR_IO, "%s: the sink takes no more of the text", function);
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", found.message);
}
