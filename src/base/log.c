#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 0))) static void
say(const tr_log *log, tr_log_level level, const char *format, va_list args) {
    char line[1024];
    if (log && log->write) {
        vsnprintf(line, sizeof line, format, args);
        log->write(log->user, level, line);
    }
}

void tr__note(const tr_log *log, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(log, TR_LOG_NOTE, format, args);
    va_end(args);
}

void tr__warn(const tr_log *log, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(log, TR_LOG_WARNING, format, args);
    va_end(args);
}
