// The program as its users meet it: started in a folder of its own, with what it says
// and how it ends.
#ifndef TESTS_CLI_COMMAND_H
#define TESTS_CLI_COMMAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

// For cmocka_unit_test_setup_teardown: *state is the path of an empty folder, in which
// the commands run. The user's cache folder is in it: a file of the machine that
// earlier runs have measured would change what a planner chooses.
int folder_make(void **state);
int folder_remove(void **state);

// Files below the folder. Paths that are returned are good for 16 further calls.
const char *file_path(void *const *state, const char *name);
void file_write(void *const *state, const char *name, const void *data, size_t bytes);
void file_text(void *const *state, const char *name, const char *text);
// A repeated sentence of `bytes` bytes.
void file_words(void *const *state, const char *name, size_t bytes);
// The content, to be freed, with a zero byte after its end; fails when there is none.
char *file_read(void *const *state, const char *name, size_t *bytes);
json_t *file_json(void *const *state, const char *name); // an object
// The number of that name in it; the test fails where there is none.
double number_in(const json_t *object, const char *name);

// Address spaces can be limited: not under AddressSanitizer, which maps terabytes.
#if defined(__SANITIZE_ADDRESS__)
enum { CAN_LIMIT_MEMORY = 0 };
#else
enum { CAN_LIMIT_MEMORY = 1 };
#endif

// How a command is run, besides its arguments. Zero: as usual.
typedef struct setting {
    const char *program;        // in place of tranche
    int64_t file_limit;         // RLIMIT_FSIZE, bytes
    int64_t memory_limit;       // RLIMIT_AS, bytes
    const char *out;            // file that gets standard output
    const char *environment[8]; // "NAME=value", NULL at the end
    bool terminal;              // standard output is a terminal
    bool together;              // standard error goes there, too
    bool closed;                // without standard input, output and error
    int columns;                // of the terminal
    int later_columns; // it gets these once it has shown a loss; 0: it does not
} setting;

typedef struct outcome {
    int status;      // exit status, 1000 + signal; -1: it hung, and was killed
    char *out, *err; // what it said
} outcome;

// Runs `tranche ARGUMENTS...`. what: NULL: as usual.
outcome run_with(void *const *state, const setting *what, const char *const *arguments);
outcome run(void *const *state, const char *const *arguments); // as usual
void outcome_free(outcome *o);

// A command that must succeed; returns what it wrote to standard output, to be freed.
char *succeed(void *const *state, const char *const *arguments);
// The same of a command that writes JSON.
json_t *succeed_json(void *const *state, const char *const *arguments);

enum { WORDS_MAX = 6 };

// A command that must fail with `status` and one message, which holds each of `words`
// (up to WORDS_MAX, NULL at the end).
void fail_with(void *const *state, const setting *what, const char *const *arguments,
               int status, const char *const *words);

// Asserts that `text` holds `words`.
void assert_says(const char *text, const char *words);

// Asserts that two files of the folder are the same, byte for byte.
void assert_same_file(void *const *state, const char *a, const char *b);

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)
// Arguments and words, NULL-terminated.
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
