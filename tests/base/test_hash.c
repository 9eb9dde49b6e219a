// Hashes: the known values of XXH3, pieces, files.
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void known_values(void **state) {
    (void)state;
    // XXH3_64bits of nothing, as its specification gives it.
    assert_true(tr__hash("", 0) == 0x2D06800538D394C2u);
    assert_true(tr__hash_text("") == tr__hash("", 0));
    assert_true(tr__hash_text("abc") == tr__hash("abcdef", 3));
    assert_true(tr__hash_text("abc") != tr__hash_text("abd"));
}

static void running_hashes_depend_on_order(void **state) {
    (void)state;
    uint64_t ab = tr__hash_more(tr__hash_more(0, "a", 1), "b", 1);
    uint64_t ba = tr__hash_more(tr__hash_more(0, "b", 1), "a", 1);
    assert_true(ab != ba);
    assert_true(ab == tr__hash_more(tr__hash_more(0, "a", 1), "b", 1));
}

static void a_file_hashes_as_its_bytes(void **state) {
    (void)state;
    enum { BYTES = (3 << 20) + 17 }; // more than one piece, and not whole ones
    char path[] = "/tmp/tranche-hash-XXXXXX";
    int file = mkstemp(path);
    unsigned char *data = malloc(BYTES);
    uint64_t hash = 0;
    assert_true(file >= 0 && data);
    for (int i = 0; i < BYTES; i++) {
        data[i] = (unsigned char)(i * 31 + i / 1000);
    }
    assert_int_equal(tr__pwrite(file, path, data, BYTES, 0, NULL), TR_OK);
    close(file);
    assert_int_equal(tr__hash_file(path, &hash, NULL), TR_OK);
    assert_true(hash == tr__hash(data, BYTES));
    tr__memory_fail_at(1);
    assert_int_equal(tr__hash_file(path, &hash, NULL), TR_MEMORY);
    unlink(path);
    free(data);
    tr_error err = {0};
    assert_int_equal(tr__hash_file(path, &hash, &err), TR_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(tr__hash_file("/tmp", &hash, NULL), TR_IO); // a folder
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(running_hashes_depend_on_order),
        cmocka_unit_test(a_file_hashes_as_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
