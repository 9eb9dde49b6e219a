// Files of torch.save: one with values of each kind, and damage to it.
#include "files/support.h"

#include "base/memory.h"
#include "draws.h"
#include "files/torch/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KINDS TR_TEST_DATA "/torch/kinds.pt"

static tr_torch_file *open_file(const char *path) {
    tr_error err = {0};
    tr_torch_file *file = NULL;
    test_ok(tr__torch_open(path, true, &file, &err), &err);
    return file;
}

static const tr_torch_value *get(const tr_torch_file *file, const char *key,
                                 tr_torch_kind kind) {
    const tr_torch_value *value = tr__torch_get(tr__torch_root(file), key);
    assert_non_null(value);
    assert_int_equal(value->kind, kind);
    return value;
}

static void numbers_and_texts(void **state) {
    tr_torch_file *file = open_file(KINDS);
    (void)state;
    get(file, "none", TR_TORCH_NONE);
    assert_int_equal(get(file, "yes", TR_TORCH_BOOL)->integer, 1);
    assert_int_equal(get(file, "no", TR_TORCH_BOOL)->integer, 0);
    assert_int_equal(get(file, "small", TR_TORCH_INTEGER)->integer, 7);
    assert_int_equal(get(file, "two bytes", TR_TORCH_INTEGER)->integer, 300);
    assert_int_equal(get(file, "negative", TR_TORCH_INTEGER)->integer, -5);
    assert_true(get(file, "long", TR_TORCH_INTEGER)->integer == (int64_t)1 << 40);
    assert_true(get(file, "negative long", TR_TORCH_INTEGER)->integer ==
                -((int64_t)1 << 40));
    get(file, "longer", TR_TORCH_UNKNOWN);
    assert_true(get(file, "float", TR_TORCH_FLOAT)->number == 0.1);
    assert_string_equal(get(file, "text", TR_TORCH_TEXT)->text, "drei \xc3\x84pfel");
    get(file, "zero", TR_TORCH_UNKNOWN);
    assert_null(tr__torch_get(tr__torch_root(file), "nothing"));
    tr__torch_close(file);
}

static void lists_and_dicts(void **state) {
    tr_torch_file *file = open_file(KINDS);
    const tr_torch_value *list = get(file, "list", TR_TORCH_LIST);
    (void)state;
    assert_int_equal(list->count, 4);
    assert_int_equal(tr__torch_at(tr__torch_at(list, 3), 0)->kind, TR_TORCH_NONE);
    assert_null(tr__torch_at(list, 4));
    const tr_torch_value *tuple = get(file, "tuple", TR_TORCH_LIST);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(tr__torch_at(tuple, i)->count, i + 1);
    }
    assert_int_equal(tr__torch_at(tuple, 4)->count, 0);
    const tr_torch_value *dict = get(file, "dict", TR_TORCH_DICT);
    assert_string_equal(tr__torch_get_at(dict, 1)->text, "one");
    assert_int_equal(tr__torch_get(dict, "two")->integer, 2);
    assert_null(tr__torch_get_at(dict, 2));
    const tr_torch_value *ordered = get(file, "ordered", TR_TORCH_DICT);
    assert_int_equal(tr__torch_get(ordered, "a")->integer, 1);
    assert_int_equal(tr__torch_at(tr__torch_get(ordered, "b"), 1)->integer, 3);
    const tr_torch_value *loop = get(file, "loop", TR_TORCH_LIST);
    assert_ptr_equal(tr__torch_at(loop, 1), loop);
    tr__torch_close(file);
}

// Of these the class is known, and what they were made of; nothing is called.
static void objects_are_names(void **state) {
    tr_torch_file *file = open_file(KINDS);
    (void)state;
    assert_string_equal(get(file, "set", TR_TORCH_OBJECT)->text, "__builtin__.set");
    assert_string_equal(get(file, "bytes", TR_TORCH_OBJECT)->text, "_codecs.encode");
    const tr_torch_value *made = get(file, "enum", TR_TORCH_OBJECT);
    assert_string_equal(made->text, "__main__.Kind");
    assert_int_equal(made->item[0]->integer, 2);
    assert_string_equal(get(file, "object", TR_TORCH_OBJECT)->text, "__main__.Point");
    assert_string_equal(get(file, "class", TR_TORCH_CLASS)->text, "__main__.Point");
    assert_string_equal(get(file, "dtype", TR_TORCH_CLASS)->text, "torch.float32");
    get(file, "counter", TR_TORCH_OBJECT);
    tr__torch_close(file);
}

static void is_tensor(const tr_torch_file *file, const char *key, tr_dtype dtype,
                      int rank, int64_t count, const void *wanted) {
    const tr_stored_tensor *tensor = &get(file, key, TR_TORCH_TENSOR)->tensor;
    unsigned char found[64];
    int descriptor = open(KINDS, O_RDONLY);
    assert_int_equal(tensor->dtype, dtype);
    assert_int_equal(tensor->rank, rank);
    assert_int_equal(tensor->count, count);
    assert_int_equal(tensor->bytes, count * (int64_t)tr_dtype_bytes(dtype));
    assert_true(tensor->bytes <= (int64_t)sizeof found);
    assert_int_equal(pread(descriptor, found, (size_t)tensor->bytes, tensor->offset),
                     tensor->bytes);
    assert_memory_equal(found, wanted, (size_t)tensor->bytes);
    close(descriptor);
}

static void tensors(void **state) {
    static const float quarters[] = {0,    0.25f, 0.5f, 0.75f, 1,    1.25f,
                                     1.5f, 1.75f, 2.0f, 2.25f, 2.5f, 2.75f};
    static const uint16_t f16[] = {0x3800, 0xb400}, bf16[] = {0x3f00, 0xbe80};
    static const double tenth[] = {0.1};
    static const int64_t whole[] = {-7, (int64_t)1 << 40};
    static const float one[] = {2.5f}, two[] = {1, -2};
    tr_torch_file *file = open_file(KINDS);
    (void)state;
    is_tensor(file, "f32", TR_F32, 1, 12, quarters);
    is_tensor(file, "part", TR_F32, 2, 6, quarters + 2);
    is_tensor(file, "scalar", TR_F32, 0, 1, one);
    is_tensor(file, "parameter", TR_F32, 1, 2, two);
    is_tensor(file, "f16", TR_F16, 1, 2, f16);
    is_tensor(file, "bf16", TR_BF16, 1, 2, bf16);
    is_tensor(file, "f64", TR_F64, 1, 1, tenth);
    is_tensor(file, "i64", TR_I64, 1, 2, whole);
    is_tensor(file, "empty", TR_F32, 2, 0, one);
    assert_non_null(strstr(get(file, "turned", TR_TORCH_TENSOR)->why, "behind one"));
    assert_non_null(strstr(get(file, "complex", TR_TORCH_TENSOR)->why, "not known"));
    tr__torch_close(file);
}

// ---- damage

static void put(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(value >> (8 * i));
    }
}

// Files of 4 GiB and more say in records of 64 bits where their list is.
static void a_list_of_64_bits(void **state) {
    enum { END = 22, MORE = 56 + 20 };
    char path[PATH_MAX];
    size_t bytes = 0;
    unsigned char *data = (unsigned char *)test_read(KINDS, &bytes);
    unsigned char *longer = tr__calloc(bytes + MORE, 1);
    unsigned char *old = data + bytes - END, *at = longer + bytes - END;
    memcpy(longer, data, bytes - END);
    put(at, 0x06064b50, 4);
    put(at + 24, old[10], 2);
    put(at + 32, old[10], 2);
    memcpy(at + 40, old + 12, 4);
    memcpy(at + 48, old + 16, 4);
    put(at + 56, 0x07064b50, 4);
    put(at + 64, bytes - END, 8);
    memcpy(at + MORE, old, END);
    memset(at + MORE + 8, 0xff, 12);
    test_write(test_path(path, *state, "long.pt"), longer, bytes + MORE);
    tr_torch_file *file = open_file(path);
    assert_int_equal(get(file, "small", TR_TORCH_INTEGER)->integer, 7);
    tr__torch_close(file);
    tr__free(longer);
    tr__free(data);
}

// With values that were changed unseen (a CRC of 0 was not computed) it is read, or
// refused as damaged.
static void no_byte_does_harm(void **state) {
    char path[PATH_MAX];
    size_t bytes = 0;
    char *data = test_read(KINDS, &bytes);
    size_t refused = 0, stride = TEST_DRAWS(1, 7);
    test_path(path, *state, "bad.pt");
    for (size_t at = 0; at < bytes; at += stride) {
        tr_error err = {0};
        tr_torch_file *file = NULL;
        char was = data[at];
        data[at] ^= (char)(1 + at % 255);
        test_write(path, data, bytes);
        tr_status status = tr__torch_open(path, false, &file, &err);
        assert_true(status == TR_OK || status == TR_IO || status == TR_MEMORY);
        assert_true(status == TR_OK || strstr(err.message, "bad.pt"));
        refused += status != TR_OK;
        tr__torch_close(file);
        data[at] = was;
    }
    assert_true(refused > 0);
    tr__free(data);
}

static void every_cut_and_every_change_is_found(void **state) {
    char path[PATH_MAX];
    size_t bytes = 0, stride = TEST_DRAWS(1, 7);
    char *data = test_read(KINDS, &bytes);
    test_path(path, *state, "bad.pt");
    for (size_t cut = 0; cut < bytes; cut += stride) {
        tr_error err = {0};
        tr_torch_file *file = NULL;
        test_write(path, data, cut);
        test_fails(tr__torch_open(path, true, &file, &err), &err, TR_IO, "bad.pt: ");
    }
    tr_torch_file *whole = open_file(KINDS);
    for (size_t i = 0; i < whole->zip.count; i++) {
        const tr_zip_entry *entry = &whole->zip.entry[i];
        for (int64_t k = 0; k < entry->bytes; k += (int64_t)stride) {
            tr_error err = {0};
            tr_torch_file *file = NULL;
            data[entry->offset + k] ^= 64;
            test_write(path, data, bytes);
            test_fails(tr__torch_open(path, true, &file, &err), &err, TR_IO,
                       "is damaged: the CRC of its entry");
            data[entry->offset + k] ^= 64;
        }
    }
    tr__torch_close(whole);
    tr__free(data);
}

// ---- pickles

typedef struct program {
    const char *text;
    size_t bytes;
    const char *words; // of the error; NULL: it is read
} program;

#define PROGRAM(text, words)                                                           \
    { text, sizeof(text) - 1, words }

static void programs(void **state) {
    static const program all[] = {
        PROGRAM("\x80\x02N.", NULL),
        PROGRAM("", "ends too early at byte 0"),
        PROGRAM("\x80\x04N.", "protocol 4"),
        PROGRAM("\x80\x02", "ends too early"),
        PROGRAM("\x80\x02.", "takes a value that is not there"),
        PROGRAM("\x80\x02(.", "takes a value that is not there"),
        PROGRAM("\x80\x02Nt.", "takes values that are not there"),
        PROGRAM("\x80\x02(N\x85\x86.", "takes values that are not there"),
        PROGRAM("\x80\x02X\xff\xff\xff\xffx.", "ends too early"),
        PROGRAM("\x80\x02\x8b\xff\xff\xff\xff.", "ends too early"),
        PROGRAM("\x80\x02h\x05.", "asks for a value that it has not"),
        PROGRAM("\x80\x02Nr\xff\xff\xff\x7f.", "remembers more values than it has"),
        PROGRAM("\x80\x02NNa.", "adds to what takes none"),
        PROGRAM("\x80\x02}(Nu.", "adds to what takes none"),
        PROGRAM("\x80\x02}N(s.", "takes values that are not there"),
        PROGRAM("\x80\x02(Na.", "adds to what takes none"),
        PROGRAM("\x80\x02NNR.", "calls what is no class"),
        PROGRAM("\x80\x02"
                "cos\nsystem\n(X\x02\x00\x00\x00lst\x81.",
                NULL), // it is a name, and is not called
        PROGRAM("\x80\x02"
                "cos",
                "ends too early"),
        PROGRAM("\x80\x02NQ.", "that is no tensor"),
        PROGRAM("\x80\x02(X\x07\x00\x00\x00storageNX\x02\x00\x00\x00zzNJ"
                "\x01\x00\x00\x00tQ.",
                "the bytes of a tensor are not there"),
        PROGRAM("\x80\x02"
                "ctorch._utils\n_rebuild_tensor_v2\n)R.",
                "is not described as PyTorch"),
        PROGRAM("\x80\x02V.", "an operation 0x56 at byte 2"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tr_error err = {0};
        tr_torch_file *file = open_file(KINDS);
        tr_status status = tr__torch_unpickle(file, (const unsigned char *)all[i].text,
                                              all[i].bytes, &err);
        if (all[i].words) {
            test_fails(status, &err, TR_IO, all[i].words);
        } else {
            test_ok(status, &err);
        }
        tr__torch_close(file);
    }
}

// Values take more memory than the bytes that make them.
static void values_have_a_limit(void **state) {
    enum { BYTES = 1 << 20 };
    tr_error err = {0};
    tr_torch_file *file = open_file(KINDS);
    unsigned char *pickle = tr__calloc(BYTES, 1);
    (void)state;
    memset(pickle, 'N', BYTES);
    pickle[BYTES / 2] = '.';
    test_ok(tr__torch_unpickle(file, pickle, BYTES, &err), &err);
    pickle[BYTES / 2] = 'N';
    test_fails(tr__torch_unpickle(file, pickle, BYTES, &err), &err, TR_IO,
               "more than 1048576 values");
    tr__free(pickle);
    tr__torch_close(file);
}

// Whichever request for memory fails, it is said, and nothing is lost.
static void no_memory_is_told(void **state) {
    tr_status status = TR_MEMORY;
    (void)state;
    for (int64_t nth = 1; status != TR_OK; nth++) {
        tr_error err = {0};
        tr_torch_file *file = NULL;
        tr__memory_fail_at(nth);
        status = tr__torch_open(KINDS, true, &file, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_true(nth < 3000);
        tr__torch_close(file);
    }
}

#define FOLDER_TEST(name)                                                              \
    cmocka_unit_test_setup_teardown(name, test_folder_make, test_folder_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_texts),
        cmocka_unit_test(lists_and_dicts),
        cmocka_unit_test(objects_are_names),
        cmocka_unit_test(tensors),
        FOLDER_TEST(a_list_of_64_bits),
        FOLDER_TEST(no_byte_does_harm),
        FOLDER_TEST(every_cut_and_every_change_is_found),
        cmocka_unit_test(programs),
        cmocka_unit_test(values_have_a_limit),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
