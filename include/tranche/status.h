// Status codes and the error object that carries the first message.
#ifndef TRANCHE_STATUS_H
#define TRANCHE_STATUS_H

#include <tranche/api.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// X(name, exit status of the program, words)
#define TR_STATUS_LIST(X)                                                              \
    X(OK, 0, "ok")                                                                     \
    X(DIFFERENT, 1, "different")                                                       \
    X(USAGE, 2, "usage or configuration")                                              \
    X(BUDGET, 3, "no plan fits the budgets")                                           \
    X(DATA, 4, "data")                                                                 \
    X(IO, 5, "checkpoint or other input/output")                                       \
    X(COMM, 6, "ranks or communication")                                               \
    X(NUMBERS, 7, "numbers")                                                           \
    X(INTERNAL, 8, "internal")                                                         \
    X(MEMORY, 8, "out of memory")                                                      \
    X(INTERRUPTED, 128, "interrupted")

typedef enum tr_status {
#define TR_STATUS_ENUM(name, exit_status, words) TR_##name,
    TR_STATUS_LIST(TR_STATUS_ENUM)
#undef TR_STATUS_ENUM
        TR_STATUS_COUNT
} tr_status;

enum { TR_MESSAGE_MAX = 4096 };

// What went wrong. The first function that detects an error writes it, and nobody
// overwrites it. A message with several problems, or with a table, has several lines:
// all but the first begin with four spaces, and the last has no newline. The caller
// owns the struct and must initialize it to zeros. Functions that take a `tr_error *`
// accept NULL.
typedef struct tr_error {
    tr_status status;
    char message[TR_MESSAGE_MAX];
} tr_error;

// The words for a status ("data"), never NULL.
TR_API const char *tr_status_words(tr_status status);

// The program's exit status for a status (0..8, or 128 for an interruption, to which
// the program adds the signal's number).
TR_API int tr_status_exit(tr_status status);

// Writes the message, unless one is already there, and returns `status`. So `return
// tr_fail(err, TR_DATA, "...")` ends a function.
TR_API tr_status tr_fail(tr_error *err, tr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same, and behind a message of TR_INTERNAL the place that found the mistake:
// "src/exec/executor.c", 106. In C the macro below calls it.
TR_API tr_status tr_fail_at(tr_error *err, tr_status status, const char *file, int line,
                            const char *format, ...)
    __attribute__((format(printf, 5, 6)));
#ifndef __cplusplus
#define tr_fail(err, status, ...)                                                      \
    tr_fail_at((err), (status), __FILE__, __LINE__, __VA_ARGS__)
#endif

// The one of `names` [count] that `word` is meant to be: the nearest, if it is near
// enough for a slip of the keys. NULL: none is.
TR_API const char *tr_nearest(const char *word, const char *const *names, size_t count);

#ifdef __cplusplus
}
#endif
#endif
