// What the tests of GGUF files share: a folder of its own for each, and models in it.
#ifndef TESTS_CONVERT_SUPPORT_H
#define TESTS_CONVERT_SUPPORT_H

#include <tranche/gguf.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GOLDENS    TR_TEST_DATA "/goldens"
#define TOKENIZERS TR_TEST_DATA "/tokenizers"

// cmocka set-up and tear-down; *state is the path of an empty folder.
int folder_make(void **state);
int folder_remove(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

// "<folder>/<name>", good for 16 further calls.
const char *path_of(void **state, const char *name);
void copy_file(const char *from, const char *to);
// A folder of the test's with the model of a golden ("llama3") in it; returns its path.
const char *model_of(void **state, const char *golden, const char *name);
// The content, freed with tr__free.
char *content(const char *path, size_t *bytes);
void put_content(const char *path, const void *data, size_t bytes);
void assert_same_content(const char *a, const char *b);

void must(tr_status status, const tr_error *err);
// It fails so, and its message has these words.
void must_fail(tr_status status, const tr_error *err, tr_status wanted,
               const char *words);

#endif
