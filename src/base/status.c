#include <tranche/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef tr_fail

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

// From the source folder on, wherever the library was built.
static const char *short_path(const char *file) {
    const char *name = strrchr(file, '/'), *at = file, *source = NULL;
    while ((at = strstr(at, "src/"))) {
        source = at == file || at[-1] == '/' ? at : source;
        at++;
    }
    return source ? source : name ? name + 1 : file;
}

// A message that is handed on has a place already.
static void add_place(char message[TR_MESSAGE_MAX], const char *file, int line) {
    size_t length = strlen(message);
    if (length == 0 || message[length - 1] != ']') {
        snprintf(message + length, TR_MESSAGE_MAX - length, " [%s:%d]",
                 short_path(file), line);
    }
}

// file: NULL: nobody knows the place.
__attribute__((format(printf, 5, 0))) static void set(tr_error *err, tr_status status,
                                                      const char *file, int line,
                                                      const char *format,
                                                      va_list args) {
    if (err && err->status == TR_OK) {
        vsnprintf(err->message, sizeof err->message, format, args);
        err->status = status;
        if (file && status == TR_INTERNAL) {
            add_place(err->message, file, line);
        }
    }
}

tr_status tr_fail(tr_error *err, tr_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, status, NULL, 0, format, args);
    va_end(args);
    return status;
}

tr_status tr_fail_at(tr_error *err, tr_status status, const char *file, int line,
                     const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, status, file, line, format, args);
    va_end(args);
    return status;
}
