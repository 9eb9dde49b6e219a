// What the tests of this room share.
#ifndef TR_TESTS_FILES_SUPPORT_H
#define TR_TESTS_FILES_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/checkpoint/checkpoint.h"

enum { TEST_TENSORS = 3 };

// A small model and its optimizer state, every value a function of (step, tensor,
// element).
typedef struct test_run {
    float model_data[TEST_TENSORS][64], optimizer_data[TEST_TENSORS][64];
    tr_checkpoint_tensor model[TEST_TENSORS], optimizer[TEST_TENSORS];
    tr_state state;
    tr_checkpoint_input input;
} test_run;

// Whether test_run_fill has weights stored in bf16 and in several files.
extern bool test_in_shards;

float test_value(int64_t step, int tensor, int element);
// Element i of a piece, as the file has it.
float test_stored(const tr_checkpoint_tensor *piece, int64_t i);

// Fills `run` as of `step`, to be saved below `out_folder`.
void test_run_fill(test_run *run, const char *out_folder, int64_t step, int keep);
// Opens the checkpoint with hashes and compares everything with test_run_fill's.
void test_run_check(const char *folder, int64_t step);

// cmocka set-up and tear-down: *state is the path of an empty folder, removed after.
// test_shards_make also sets test_in_shards, until then.
int test_folder_make(void **state);
int test_shards_make(void **state);
int test_folder_remove(void **state);

void test_write(const char *path, const void *data, size_t bytes);
char *test_read(const char *path, size_t *bytes); // freed with tr__free

// dst: [PATH_MAX]; returns dst.
const char *test_path(char *dst, const char *folder, const char *name);

// Fails with the message when status is not TR_OK.
void test_ok(tr_status status, const tr_error *err);
// The status is `expected`, and the message holds `words`.
void test_fails(tr_status status, const tr_error *err, tr_status expected,
                const char *words);

#endif
