// A folder for one test, and files in it.
#ifndef TESTS_TRAIN_SCRATCH_H
#define TESTS_TRAIN_SCRATCH_H

#include <stddef.h>

// For cmocka_unit_test_setup_teardown: *state is the folder's path.
int scratch_make(void **state);
int scratch_remove(void **state);
// A folder that is the user's cache folder, too, for texts that are made token ids.
int scratch_cache(void **state);

// "<folder>/<name>"; good until as many further calls as a test has paths at once (16).
const char *scratch_path(void *const *state, const char *name);
// Writes a file there and returns its path as above.
const char *scratch_write(void *const *state, const char *name, const void *content,
                          size_t bytes);
const char *scratch_text(void *const *state, const char *name, const char *text);
// A file of words, the same for the same seed.
const char *scratch_words(void *const *state, const char *name, size_t bytes,
                          unsigned seed);

// A file of numpy's: of a type ("<f4") and shape ("(2, 3)"), and its elements.
void scratch_npy(void **state, const char *name, const char *type, const char *shape,
                 const void *data, size_t bytes);

#endif
