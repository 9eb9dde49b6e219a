// Files of the safetensors Python package (tools/goldens/safetensors_files.py): read
// value by value, and written again byte by byte.
#include "files/support.h"

#include "base/hash.h"
#include "base/memory.h"
#include "files/safetensors/tensor_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES TR_TEST_DATA "/safetensors"

static const tr_tensor_spec golden[] = {
    {"h.0.attn.weight", TR_F32, {2, {4, 6, 0, 0}}},
    {"h.0.attn.bias", TR_F32, {1, {6, 0, 0, 0}}},
    {"wte.weight", TR_F32, {2, {3, 5, 0, 0}}},
    {"ln_f.scale", TR_F32, {0, {0, 0, 0, 0}}},
    {"empty", TR_F32, {2, {0, 7, 0, 0}}},
};
enum { GOLDEN_COUNT = sizeof golden / sizeof *golden, VALUES = 30 };

static float value(int64_t element) {
    return (float)(element - 5) / 4;
}

static tr_tensor_set *open_set(const char *path) {
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    test_ok(tr__tensor_set_open(path, &set, &err), &err);
    return set;
}

static void check_values(const tr_tensor_set *set, const char *name, int64_t first,
                         int64_t count) {
    tr_error err = {0};
    float read[VALUES + 1];
    const tr_stored_tensor *tensor = tr__tensor_set_find_prefixed(set, name);
    assert_non_null(tensor);
    read[count] = 7;
    test_ok(tr__tensor_read_f32(set, tensor, first, count, read, &err), &err);
    for (int64_t i = 0; i < count; i++) {
        assert_true(read[i] == value(first + i));
    }
    assert_true(read[count] == 7); // nothing behind the range
}

static void reads_f32(void **state) {
    (void)state;
    tr_tensor_set *set = open_set(FILES "/f32.safetensors");
    assert_int_equal(tr__tensor_set_count(set), GOLDEN_COUNT);
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_find(set, golden[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->dtype, TR_F32);
        assert_int_equal(tensor->rank, golden[i].shape.rank);
        for (int d = 0; d < tensor->rank; d++) {
            assert_int_equal(tensor->dim[d], golden[i].shape.dim[d]);
        }
        check_values(set, golden[i].name, 0, tensor->count);
    }
    check_values(set, "h.0.attn.weight", 7, 11);
    check_values(set, "h.0.attn.weight", 24, 0);
    assert_null(tr__tensor_set_find(set, "h.0.attn"));
    tr__tensor_set_close(set);
}

static void reads_every_type(void **state) {
    (void)state;
    static const char *const floats[] = {"float32", "float64", "float16", "bfloat16"};
    static const char *const integers[] = {"int8", "uint8", "int16", "int32", "int64"};
    tr_tensor_set *set = open_set(FILES "/types.safetensors");
    assert_int_equal(tr__tensor_set_count(set), 10);
    for (size_t i = 0; i < 4; i++) {
        check_values(set, floats[i], 0, VALUES);
        check_values(set, floats[i], 13, 4);
    }
    for (size_t i = 0; i < 5; i++) {
        tr_error err = {0};
        float read[VALUES];
        const tr_stored_tensor *tensor = tr__tensor_set_find(set, integers[i]);
        assert_non_null(tensor);
        test_fails(tr__tensor_read_f32(set, tensor, 0, 1, read, &err), &err, TR_IO,
                   "floating-point");
    }
    tr__tensor_set_close(set);
}

// More elements than one piece of conversion holds, and ranges across pieces.
static void converts_in_pieces(void **state) {
    char path[PATH_MAX];
    enum { COUNT = 100000 };
    tr_error err = {0};
    tr_tensor_writer *writer = NULL;
    tr_tensor_spec spec = {"x", TR_BF16, {1, {COUNT, 0, 0, 0}}};
    uint16_t *data = tr__calloc(COUNT, sizeof *data);
    float *read = tr__calloc(COUNT, sizeof *read);
    int64_t bytes;
    uint64_t hash;
    for (int i = 0; i < COUNT; i++) {
        data[i] = (uint16_t)(0x3f80 + i % 128); // 1 + (i % 128) / 128
    }
    test_path(path, *state, "half.safetensors");
    test_ok(tr__tensor_writer_create(path, &spec, 1, &writer, &err), &err);
    test_ok(tr__tensor_writer_put(writer, 0, 0, COUNT, data, &err), &err);
    test_ok(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
    tr_tensor_set *set = open_set(path);
    test_ok(
        tr__tensor_read_f32(set, tr__tensor_set_at(set, 0), 11, COUNT - 12, read, &err),
        &err);
    for (int i = 0; i < COUNT - 12; i++) {
        assert_true(read[i] == 1 + (float)((i + 11) % 128) / 128);
    }
    assert_true(read[COUNT - 12] == 0);
    tr__tensor_set_close(set);
    tr__free(data);
    tr__free(read);
}

static void reads_shards(void **state) {
    (void)state;
    tr_tensor_set *set = open_set(FILES "/sharded");
    assert_int_equal(tr__tensor_set_count(set), 4);
    assert_int_equal(tr__tensor_set_files(set), 2);
    check_values(set, "transformer.h.0.attn.weight", 0, 24);
    check_values(set, "h.0.attn.bias", 0, 6); // found under its longer name
    check_values(set, "wte.weight", 3, 12);
    assert_null(tr__tensor_set_find(set, "wte.weight"));
    tr__tensor_set_close(set);
    set = open_set(FILES "/f32.safetensors");
    check_values(set, "transformer.wte.weight", 0, 15); // and under its shorter one
    tr__tensor_set_close(set);
}

static void refuses_ranges(void **state) {
    (void)state;
    static const int64_t ranges[][2] = {{-1, 2}, {0, 16},        {15, 1},       {16, 0},
                                        {0, -1}, {INT64_MAX, 1}, {1, INT64_MAX}};
    tr_tensor_set *set = open_set(FILES "/f32.safetensors");
    const tr_stored_tensor *tensor = tr__tensor_set_find(set, "wte.weight");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        tr_error err = {0};
        float read[VALUES];
        tr_status status =
            tr__tensor_read_f32(set, tensor, ranges[i][0], ranges[i][1], read, &err);
        test_fails(status, &err, TR_INTERNAL, "wte.weight");
    }
    tr__tensor_set_close(set);
}

// Writes the golden tensors in pieces of `piece` elements, in the file's order or
// backwards.
static void write_golden(const char *path, int64_t piece, bool backwards) {
    tr_error err = {0};
    tr_tensor_writer *writer = NULL;
    float data[VALUES];
    int64_t bytes;
    uint64_t hash, expected;
    for (int i = 0; i < VALUES; i++) {
        data[i] = value(i);
    }
    test_ok(tr__tensor_writer_create(path, golden, GOLDEN_COUNT, &writer, &err), &err);
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        size_t index =
            tr__tensor_writer_order(writer, backwards ? GOLDEN_COUNT - 1 - i : i);
        int64_t count = tr_shape_count(golden[index].shape);
        for (int64_t first = 0; first < count; first += piece) {
            int64_t now = count - first < piece ? count - first : piece;
            test_ok(
                tr__tensor_writer_put(writer, index, first, now, data + first, &err),
                &err);
        }
    }
    test_ok(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err);
    tr__tensor_writer_destroy(writer);
    test_ok(tr__hash_file(path, &expected, &err), &err);
    assert_int_equal(hash, expected);
}

static void writes_the_same_bytes(void **state) {
    char path[PATH_MAX];
    size_t bytes, expected_bytes;
    char *expected = test_read(FILES "/f32.safetensors", &expected_bytes);
    test_path(path, *state, "again.safetensors");
    for (int backwards = 0; backwards < 2; backwards++) {
        for (int64_t piece = 1; piece < VALUES; piece += 4) {
            write_golden(path, piece, backwards);
            char *written = test_read(path, &bytes);
            assert_int_equal(bytes, expected_bytes);
            assert_memory_equal(written, expected, bytes);
            tr__free(written);
        }
    }
    tr__free(expected);
}

static void writer_refuses(void **state) {
    char path[PATH_MAX];
    tr_error err = {0};
    tr_tensor_writer *writer = NULL;
    int64_t bytes;
    uint64_t hash;
    float data[VALUES] = {0};
    tr_tensor_spec twice[] = {golden[0], golden[0]};
    test_path(path, *state, "refused.safetensors");
    test_fails(tr__tensor_writer_create(path, twice, 2, &writer, &err), &err,
               TR_INTERNAL, "two tensors");
    tr_tensor_spec large = {"x", TR_F32, {2, {INT64_MAX, 2, 0, 0}}};
    err = (tr_error){0};
    test_fails(tr__tensor_writer_create(path, &large, 1, &writer, &err), &err,
               TR_INTERNAL, "size");
    err = (tr_error){0};
    test_ok(tr__tensor_writer_create(path, golden, GOLDEN_COUNT, &writer, &err), &err);
    test_fails(tr__tensor_writer_put(writer, 1, 5, 2, data, &err), &err, TR_INTERNAL,
               "tensor 1");
    err = (tr_error){0};
    test_fails(tr__tensor_writer_finish(writer, &bytes, &hash, &err), &err, TR_INTERNAL,
               "written");
    tr__tensor_writer_destroy(writer);
}

// A file cut anywhere is refused, and one with a byte too many.
static void refuses_cut_files(void **state) {
    char path[PATH_MAX];
    size_t bytes;
    char *whole = test_read(FILES "/f32.safetensors", &bytes);
    test_path(path, *state, "cut.safetensors");
    for (size_t length = 0; length < bytes; length++) {
        tr_error err = {0};
        tr_tensor_set *set = NULL;
        test_write(path, whole, length);
        test_fails(tr__tensor_set_open(path, &set, &err), &err, TR_IO,
                   "cut.safetensors");
    }
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    test_write(path, whole, bytes + 1); // the reader's zero byte after the end
    test_fails(tr__tensor_set_open(path, &set, &err), &err, TR_IO, "belong to none");
    tr__free(whole);
}

static void cut_while_open(void **state) {
    char path[PATH_MAX];
    size_t bytes;
    tr_error err = {0};
    float read[VALUES];
    char *whole = test_read(FILES "/f32.safetensors", &bytes);
    test_path(path, *state, "cut.safetensors");
    test_write(path, whole, bytes);
    tr_tensor_set *set = open_set(path);
    assert_int_equal(truncate(path, (off_t)bytes - 3), 0);
    test_fails(tr__tensor_read_f32(set, tr__tensor_set_find(set, "wte.weight"), 0, 15,
                                   read, &err),
               &err, TR_IO, "ends 3 bytes early");
    tr__tensor_set_close(set);
    tr__free(whole);
}

static void refuses_other_things(void **state) {
    char path[PATH_MAX], inner[PATH_MAX];
    tr_tensor_set *set = NULL;
    tr_error err = {0};
    test_fails(tr__tensor_set_open("/nowhere/at/all", &set, &err), &err, TR_IO,
               "cannot open");
    err = (tr_error){0};
    test_fails(tr__tensor_set_open(*state, &set, &err), &err, TR_IO, "neither");
    test_write(test_path(path, *state, "pytorch_model.bin"), "x", 1);
    err = (tr_error){0};
    test_fails(tr__tensor_set_open(*state, &set, &err), &err, TR_IO,
               "safe_serialization");
    assert_int_equal(mkfifo(test_path(inner, *state, "model.safetensors"), 0600), 0);
    err = (tr_error){0};
    test_fails(tr__tensor_set_open(*state, &set, &err), &err, TR_IO,
               "not a regular file");
    assert_null(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_f32),
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test_setup_teardown(converts_in_pieces, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test(reads_shards),
        cmocka_unit_test(refuses_ranges),
        cmocka_unit_test_setup_teardown(writes_the_same_bytes, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(writer_refuses, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(refuses_cut_files, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(cut_while_open, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(refuses_other_things, test_folder_make,
                                        test_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
