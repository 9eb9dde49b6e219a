#include <tranche/status.h>

#include <stdarg.h>
#include <stdio.h>

static const struct {
    int exit_status;
    const char *words;
} status_table[] = {
#define TR_STATUS_ROW(name, exit_status, words) {exit_status, words},
    TR_STATUS_LIST(TR_STATUS_ROW)
#undef TR_STATUS_ROW
};

const char *tr_status_words(tr_status status) {
    if ((unsigned)status >= TR_STATUS_COUNT) {
        return "unknown";
    }
    return status_table[status].words;
}

int tr_status_exit(tr_status status) {
    if ((unsigned)status >= TR_STATUS_COUNT) {
        return status_table[TR_INTERNAL].exit_status;
    }
    return status_table[status].exit_status;
}

tr_status tr_fail(tr_error *err, tr_status status, const char *format, ...) {
    if (err && err->status == TR_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}
