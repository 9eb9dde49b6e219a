// The program itself, in a process of its own.
#ifndef TESTS_TRAIN_PROGRAM_H
#define TESTS_TRAIN_PROGRAM_H

#include <jansson.h>
#include <sys/resource.h>
#include <sys/types.h>

// Starts `tranche ARGUMENTS...` (NULL at the end); stdout and stderr go to the file
// `log`.
pid_t program_start(const char *const *arguments, const char *log);
// The exit status; 1000 + signal when one ended it. usage may be NULL.
int program_wait(pid_t pid, struct rusage *usage);
// Both; a status other than `expected` fails the test with what it printed.
void program_run(const char *const *arguments, const char *log, int expected);

// The file's text, to be freed; "" when there is none.
char *file_text(const char *path);

// <out>/metrics.jsonl as an array of objects, without what differs between two equal
// runs: times and the process's memory.
json_t *metrics_read(const char *out);
// Whole lines in it so far.
int metrics_lines(const char *out);

#endif
