// Notes and warnings. They go where the caller says: a tr_log is passed down, there is
// no global one.
#ifndef TR_BASE_LOG_H
#define TR_BASE_LOG_H

#include <stdbool.h>

typedef enum tr_log_level { TR_LOG_NOTE, TR_LOG_WARNING } tr_log_level;

typedef struct tr_log {
    void (*write)(void *user, tr_log_level level, const char *line); // NULL: silent
    void *user;
} tr_log;

// `log` may be NULL (silent). Lines carry no newline.
void tr__note(const tr_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tr__warn(const tr_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
