// Labels: check
// GGUF files: one of gguf-py's value by value, one of the writer's, and damage to both.
#include "files/support.h"

#include "base/memory.h"
#include "files/gguf/gguf.h"
#include "files/gguf/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KINDS TR_TEST_DATA "/gguf/kinds.gguf"

static tr_gguf *open_file(const char *path) {
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    test_ok(tr__gguf_open(path, &gguf, &err), &err);
    return gguf;
}

// ---- what gguf-py has written

static void is_integer(const tr_gguf *gguf, const char *key, int64_t wanted) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    int64_t number = 0;
    assert_non_null(value);
    assert_true(tr__gguf_integer(value, 0, &number));
    assert_true(number == wanted);
}

static void is_real(const tr_gguf *gguf, const char *key, double wanted) {
    const tr_gguf_value *value = tr__gguf_find(gguf, key);
    double number = 0;
    int64_t whole = 0;
    assert_non_null(value);
    assert_true(tr__gguf_number(value, 0, &number) && number == wanted);
    assert_false(tr__gguf_integer(value, 0, &whole));
}

static void kinds_of_values(void **state) {
    tr_gguf *gguf = open_file(KINDS);
    size_t bytes = 0;
    int64_t number = 0;
    (void)state;
    is_integer(gguf, "a.u8", 200);
    is_integer(gguf, "a.i8", -100);
    is_integer(gguf, "a.u16", 60000);
    is_integer(gguf, "a.i16", -30000);
    is_integer(gguf, "a.u32", 4000000000);
    is_integer(gguf, "a.i32", -2000000000);
    is_integer(gguf, "a.i64", -((int64_t)1 << 62));
    is_real(gguf, "a.f32", (double)1e-5f);
    is_real(gguf, "a.f64", 0.1);
    assert_int_equal(tr__gguf_find(gguf, "a.bool")->data[0], 1);
    assert_false(tr__gguf_integer(tr__gguf_find(gguf, "a.u64"), 0, &number)); // 2^63
    assert_string_equal(tr__gguf_text(tr__gguf_find(gguf, "a.text"), 0, &bytes),
                        "drei \xc3\x84pfel");
    assert_int_equal(bytes, 11);
    const tr_gguf_value *texts = tr__gguf_find(gguf, "a.texts");
    assert_true(texts->array && texts->count == 3);
    assert_string_equal(tr__gguf_text(texts, 0, &bytes), "");
    assert_string_equal(tr__gguf_text(texts, 2, &bytes), "cd");
    const tr_gguf_value *numbers = tr__gguf_find(gguf, "a.numbers");
    assert_true(tr__gguf_integer(numbers, 2, &number) && number == 70000);
    assert_true(tr__gguf_integer(numbers, 0, &number) && number == -1);
    assert_null(tr__gguf_find(gguf, "a.nothing"));
    tr__gguf_close(gguf);
}

// Each line of kinds.txt: a tensor, and its numbers by gguf-py.
static void tensors_of_several_formats(void **state) {
    tr_gguf *gguf = open_file(KINDS);
    size_t bytes = 0;
    char *text = test_read(TR_TEST_DATA "/gguf/kinds.txt", &bytes), *rest = text;
    size_t lines = 0;
    (void)state;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); lines++) {
        const char *name = strtok_r(line, " ", &line);
        const char *hex = strtok_r(line, " ", &line);
        const tr_gguf_tensor *tensor = tr__gguf_find_tensor(gguf, name);
        float values[128];
        tr_error err = {0};
        assert_non_null(tensor);
        assert_int_equal(strlen(hex), tensor->count * 8);
        test_ok(tr__gguf_read(gguf, tensor, 0, tensor->count, values, &err), &err);
        for (int64_t i = 0; i < tensor->count * 4; i++) {
            unsigned byte = 0;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
            assert_int_equal(((unsigned char *)values)[i], byte);
        }
    }
    assert_int_equal(lines, tr__gguf_tensor_count(gguf));
    const tr_gguf_tensor *matrix = tr__gguf_find_tensor(gguf, "f32");
    assert_true(matrix->rank == 2 && matrix->dim[0] == 5 && matrix->dim[1] == 3);
    tr__free(text);
    tr__gguf_close(gguf);
}

// ---- what the writer writes

static void write_small(const char *path) {
    static const int64_t matrix[] = {32, 2}, vector[] = {3};
    tr_error err = {0};
    tr_gguf_writer *w = tr__gguf_writer_create();
    float values[64];
    for (int i = 0; i < 64; i++) {
        values[i] = (float)(i - 20) / 8;
    }
    assert_non_null(w);
    tr__gguf_put_text(w, "general.architecture", "none", 4);
    tr__gguf_put_u32(w, "a.number", 7);
    tr__gguf_put_list(w, "a.list", TR_GGUF_TEXT, 2);
    tr__gguf_add_text(w, "x", 1);
    tr__gguf_add_text(w, "yz", 2);
    test_ok(tr__gguf_add_tensor(w, "q", tr__gguf_format(TR_GGUF_Q8_0), 2, matrix, &err),
            &err);
    test_ok(tr__gguf_add_tensor(w, "v", tr__gguf_format(TR_GGUF_F32), 1, vector, &err),
            &err);
    test_ok(tr__gguf_writer_open(w, path, &err), &err);
    test_ok(tr__gguf_write(w, values, 32, &err), &err);
    test_ok(tr__gguf_write(w, values + 32, 32, &err), &err);
    test_ok(tr__gguf_write(w, values, 3, &err), &err);
    test_ok(tr__gguf_writer_finish(w, &err), &err);
    tr__gguf_writer_destroy(w);
}

static void what_is_written_is_read(void **state) {
    char path[PATH_MAX];
    float values[64];
    size_t bytes = 0;
    tr_error err = {0};
    write_small(test_path(path, *state, "small.gguf"));
    tr_gguf *gguf = open_file(path);
    is_integer(gguf, "a.number", 7);
    assert_string_equal(tr__gguf_text(tr__gguf_find(gguf, "a.list"), 1, &bytes), "yz");
    const tr_gguf_tensor *q = tr__gguf_find_tensor(gguf, "q");
    const tr_gguf_tensor *v = tr__gguf_find_tensor(gguf, "v");
    assert_true(q->dim[0] == 32 && q->dim[1] == 2 && q->offset % 32 == 0);
    test_ok(tr__gguf_read(gguf, q, 32, 32, values, &err), &err);
    assert_true(fabsf(values[31] - 43.0f / 8) < 0.03f);
    test_ok(tr__gguf_read(gguf, v, 0, 3, values, &err), &err);
    assert_true(values[0] == -2.5f && values[2] == -18.0f / 8);
    assert_true(tr__gguf_is(path) && !tr__gguf_is(*state) && !tr__gguf_is("/nowhere"));
    tr__gguf_close(gguf);
}

// A file that was not finished is not there.
static void what_is_not_finished_is_removed(void **state) {
    static const int64_t dim[] = {4};
    char path[PATH_MAX], partial[PATH_MAX];
    tr_error err = {0};
    tr_gguf_writer *w = tr__gguf_writer_create();
    test_path(path, *state, "some.gguf");
    test_path(partial, *state, "some.gguf.partial");
    test_ok(tr__gguf_add_tensor(w, "v", tr__gguf_format(TR_GGUF_F32), 1, dim, &err),
            &err);
    test_ok(tr__gguf_writer_open(w, path, &err), &err);
    assert_int_equal(access(partial, F_OK), 0);
    test_fails(tr__gguf_writer_finish(w, &err), &err, TR_INTERNAL,
               "0 of 1 tensors written");
    tr__gguf_writer_destroy(w);
    assert_int_not_equal(access(partial, F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

// ---- damage

// Writes the bytes as a file, which must be refused with these words.
static void refuse(void **state, const void *data, size_t bytes, const char *words) {
    char path[PATH_MAX];
    tr_error err = {0};
    tr_gguf *gguf = NULL;
    test_write(test_path(path, *state, "bad.gguf"), data, bytes);
    test_fails(tr__gguf_open(path, &gguf, &err), &err, TR_IO, words);
    assert_int_equal(unlink(path), 0);
}

// Cut off anywhere it is an error, and never one of another kind.
static void every_cut_is_found(void **state) {
    size_t bytes = 0;
    char *data = test_read(KINDS, &bytes);
    tr_gguf *gguf = open_file(KINDS);
    const tr_gguf_tensor *last =
        tr__gguf_tensor_at(gguf, tr__gguf_tensor_count(gguf) - 1);
    size_t end = (size_t)(last->offset + last->bytes); // padding may be cut
    for (size_t cut = 0; cut < end; cut++) {
        refuse(state, data, cut, "bad.gguf: ");
    }
    tr__gguf_close(gguf);
    tr__free(data);
}

// The place of `text` behind the first `from` bytes.
static size_t find(const char *data, size_t bytes, const char *text, size_t from) {
    for (size_t i = from; i + strlen(text) <= bytes; i++) {
        if (memcmp(data + i, text, strlen(text)) == 0) {
            return i;
        }
    }
    fail_msg("no '%s'", text);
    return 0;
}

// One number of `size` bytes of the small file, `skip` bytes behind the text, changed.
typedef struct change {
    const char *behind;
    size_t skip, size;
    uint64_t value;
    const char *words;
} change;

static void each_wrong_number_is_named(void **state) {
    static const change all[] = {
        {"GGUF", 0, 4, 1, "of version 1, and supported are 2 and 3"},
        {"GGUF", 0, 4, 0x03000000, "this one is big-endian"},
        {"GGUF", 4, 8, UINT64_MAX, "a tensor's name"},
        {"GGUF", 12, 8, UINT64_MAX, "metadata"},
        {"GGUF", 20, 8, 0, "a key of its metadata is empty"},
        {"GGUF", 20, 8, UINT64_MAX, "more than the file"},
        {"a.number", 0, 4, 13, "a.number is of an unknown kind"},
        {"a.list", 0, 4, 4, "is damaged"},
        {"a.list", 4, 4, 9, "a list of lists"},
        {"a.list", 8, 8, UINT64_MAX, "more elements than the file has bytes"},
        {"a.list", 8, 8, 300, "more texts than the file has room for"},
        {"a.list", 16, 8, UINT64_MAX, "a text that is longer than the file"},
        {"q\x02", 0, 4, 5, "more than 4 dimensions"},
        {"q\x02", 3, 8, 0, "dimensions that cannot be"},
        {"q\x02", 3, 8, UINT64_MAX, "dimensions that cannot be"},
        {"q\x02", 3, 8, (uint64_t)1 << 62, "dimensions that cannot be"},
        {"q\x02", 3, 8, 31, "no whole number of the blocks"},
        {"q\x02", 11, 8, (uint64_t)1 << 57, "ends behind the end of the file"},
        {"q\x02", 19, 4, 20, "IQ4_NL (type 20), which is not supported; supported are"},
        {"q\x02", 19, 4, 99, "something unknown (type 99)"},
        {"q\x02", 23, 8, UINT64_MAX, "begins behind the end"},
        {"v\x01", 15, 8, 8, "does not begin at the file's alignment"},
        {"v\x01", 15, 8, 32, "lies over another one"},
    };
    char path[PATH_MAX];
    size_t bytes = 0;
    write_small(test_path(path, *state, "small.gguf"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const change *c = &all[i];
        char *data = test_read(path, &bytes);
        size_t at = find(data, bytes, c->behind, 0) + strlen(c->behind) + c->skip;
        memcpy(data + at, &c->value, c->size);
        refuse(state, data, bytes, c->words);
        tr__free(data);
    }
}

static void names_are_there_once(void **state) {
    char path[PATH_MAX];
    size_t bytes = 0;
    write_small(test_path(path, *state, "small.gguf"));
    char *data = test_read(path, &bytes);
    data[find(data, bytes, "v\x01", 0)] = 'q';
    refuse(state, data, bytes, "tensor q is there twice");
    data[find(data, bytes, "q\x01", 0)] = '\0';
    refuse(state, data, bytes, "a tensor's name is empty, too long, or no text");
    tr__free(data);
    data = test_read(KINDS, &bytes);
    data[find(data, bytes, "a.i8", 0) + 2] = 'u';
    refuse(state, data, bytes, "a.u8 is there twice");
    refuse(state, "{\"a\": 1}", 8, "is no GGUF file");
    tr__free(data);
}

static void an_alignment_is_a_power_of_two(void **state) {
    static const uint32_t bad[] = {0, 24, 1 << 21};
    char path[PATH_MAX];
    tr_error err = {0};
    for (size_t i = 0; i < 3; i++) {
        tr_gguf *gguf = NULL;
        tr_gguf_writer *w = tr__gguf_writer_create();
        tr__gguf_put_u32(w, "general.alignment", bad[i]);
        test_ok(tr__gguf_writer_open(w, test_path(path, *state, "a.gguf"), &err), &err);
        test_ok(tr__gguf_writer_finish(w, &err), &err);
        tr__gguf_writer_destroy(w);
        tr_error why = {0};
        test_fails(tr__gguf_open(path, &gguf, &why), &why, TR_IO,
                   "general.alignment must be a power of two");
    }
}

// Whichever request for memory fails, it is said, and nothing is lost.
static void no_memory_is_told(void **state) {
    tr_status status = TR_MEMORY;
    (void)state;
    for (int64_t nth = 1; status != TR_OK; nth++) {
        tr_error err = {0};
        tr_gguf *gguf = NULL;
        tr__memory_fail_at(nth);
        status = tr__gguf_open(KINDS, &gguf, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_true(nth < 1000);
        tr__gguf_close(gguf);
    }
}

#define FOLDER_TEST(name)                                                              \
    cmocka_unit_test_setup_teardown(name, test_folder_make, test_folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_values),
        cmocka_unit_test(tensors_of_several_formats),
        FOLDER_TEST(what_is_written_is_read),
        FOLDER_TEST(what_is_not_finished_is_removed),
        FOLDER_TEST(every_cut_is_found),
        FOLDER_TEST(each_wrong_number_is_named),
        FOLDER_TEST(names_are_there_once),
        FOLDER_TEST(an_alignment_is_a_power_of_two),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
