// Memory for bookkeeping (plans, names, tables). Tensor memory comes from arenas alone.
//
// All bookkeeping goes through these functions, so that a test can make the Nth one
// fail and can count those made during a step.
#ifndef TR_BASE_MEMORY_H
#define TR_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

// Zeroed memory for `count` elements of `size` bytes; NULL when there is none or the
// product overflows. tr__free takes NULL.
void *tr__calloc(size_t count, size_t size);
void *tr__realloc(void *memory, size_t count, size_t size);
char *tr__strdup(const char *text);
char *tr__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tr__free(void *memory);
// Gives what has been freed back to the system, where the library of the system can:
// after work that takes much more memory than what follows.
void tr__memory_trim(void);

// Grows `*array` so that it holds at least `need` elements of `size` bytes; doubles.
// false when there is no memory (the array is as it was).
int tr__grow(void **array, size_t *capacity, size_t need, size_t size);

// Zeros for what a build with AddressSanitizer does besides: neither counted nor made
// to fail, since no other build takes it. NULL: there is no memory.
void *tr__calloc_besides(size_t bytes);

// Fault injection for tests: the nth call from now on (1: the next) fails; 0: none.
void tr__memory_fail_at(int64_t nth);
// Calls made so far, by all threads.
int64_t tr__memory_calls(void);

#endif
