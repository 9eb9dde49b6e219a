// Headers and indices made to mislead: each is refused with the right words.
#include "files/support.h"

#include "base/memory.h"
#include "files/safetensors/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct hostile {
    const char *header;
    int64_t data_bytes;
    const char *words; // NULL: legal
} hostile;

// One tensor "a" with the given parts.
#define ONE(dtype, shape, offsets)                                                     \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
// Two tensors of four bytes with the given offsets.
#define TWO(first, second)                                                             \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" first "},"             \
    "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" second "}}"

static const hostile cases[] = {
    // legal, to know that the forms above are
    {ONE("\"F32\"", "[2]", "[0,8]"), 8, NULL},
    {TWO("[4,8]", "[0,4]"), 8, NULL},
    {"{}", 0, NULL},
    {"{}    ", 0, NULL},
    {ONE("\"F32\"", "[0,9223372036854775807]", "[0,0]"), 0, NULL},
    {"{\"__metadata__\":{\"a\":\"b\"}}", 0, NULL},
    // not a header
    {"", 0, "begin with"},
    {"[]", 0, "begin with"},
    {" {}", 0, "begin with"},
    {"{", 0, "not valid JSON"},
    {"{}x", 0, "not valid JSON"},
    {"{\"a\":1", 0, "not valid JSON"},
    {"{\"\xff\xfe\":1}", 0, "not valid JSON"},
    {"{\"a\\u0000b\":{}}", 0, "not valid JSON"},
    // names
    {"{\"a\":{},\"a\":{}}", 0, "duplicate"},
    {"{\"a\":{},\"\\u0061\":{}}", 0, "duplicate"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}", 0, "duplicate"},
    {"{\"\\u001b[2J\":{}}", 0, "control characters"},
    // metadata
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "more than strings"},
    // entries
    {"{\"a\":1}", 0, "not an object"},
    {"{\"a\":{}}", 0, "no \"dtype\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "no \"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"more\":1}}", 4,
     "keys beside"},
    // types
    {ONE("\"F33\"", "[1]", "[0,4]"), 4, "'F33' is not known"},
    {ONE("\"\"", "[1]", "[0,4]"), 4, "not known"},
    {ONE("\"f32\"", "[1]", "[0,4]"), 4, "not known"},
    {ONE("32", "[1]", "[0,4]"), 4, "dtype is not a string"},
    // shapes
    {ONE("\"F32\"", "1", "[0,4]"), 4, "shape is not an array"},
    {ONE("\"F32\"", "[-1]", "[0,4]"), 4, "dimension 0"},
    {ONE("\"F32\"", "[-1,-1]", "[0,4]"), 4, "dimension 0"},
    {ONE("\"F32\"", "[1.0]", "[0,4]"), 4, "dimension 0"},
    {ONE("\"F32\"", "[1,\"1\"]", "[0,4]"), 4, "dimension 1"},
    {ONE("\"F32\"", "[true]", "[0,4]"), 4, "dimension 0"},
    {ONE("\"F32\"", "[99999999999999999999]", "[0,4]"), 4, "too big"},
    {ONE("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0, "shape overflows"},
    {ONE("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, "size overflows"},
    {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "9 dimensions"},
    // ranges
    {ONE("\"F32\"", "[1]", "[0]"), 4, "two integers"},
    {ONE("\"F32\"", "[1]", "[0,4,8]"), 4, "two integers"},
    {ONE("\"F32\"", "[1]", "[0.0,4.0]"), 4, "two integers"},
    {ONE("\"F32\"", "[1]", "{\"0\":0}"), 4, "two integers"},
    {ONE("\"F32\"", "[1]", "[-4,0]"), 4, "no range"},
    {ONE("\"F32\"", "[1]", "[4,0]"), 4, "no range"},
    {ONE("\"F32\"", "[1]", "[-9223372036854775808,9223372036854775807]"), 4,
     "no range"},
    {ONE("\"F32\"", "[2]", "[0,8]"), 7, "cut short"},
    {ONE("\"F32\"", "[1]", "[9223372036854775800,9223372036854775804]"), 4,
     "cut short"},
    {ONE("\"F32\"", "[2]", "[0,4]"), 4, "need 8"},
    {ONE("\"F16\"", "[1]", "[0,4]"), 4, "need 2"},
    // cover
    {ONE("\"F32\"", "[1]", "[0,4]"), 5, "belong to none"},
    {"{}", 1, "belong to none"},
    {ONE("\"F32\"", "[1]", "[4,8]"), 8, "gap"},
    {TWO("[0,4]", "[8,12]"), 12, "gap"},
    {TWO("[0,4]", "[0,4]"), 8, "overlaps"},
    {TWO("[0,4]", "[2,6]"), 6, "overlaps"},
};

static void headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_error err = {0};
        tr_tensor_header header = {0};
        const hostile *item = &cases[i];
        tr_status status =
            tr__header_parse("bad.safetensors", item->header, strlen(item->header),
                             item->data_bytes, &header, &err);
        if (item->words) {
            test_fails(status, &err, TR_IO, item->words);
            assert_non_null(strstr(err.message, "bad.safetensors"));
        } else {
            test_ok(status, &err);
        }
        tr__header_release(&header);
    }
}

// Nesting deeper than any parser's stack should take.
static void deep_nesting(void **state) {
    (void)state;
    enum { DEPTH = 200000 };
    tr_error err = {0};
    tr_tensor_header header = {0};
    char *text = tr__calloc(1, DEPTH + 8);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', DEPTH);
    test_fails(tr__header_parse("deep", text, DEPTH + 5, 0, &header, &err), &err, TR_IO,
               "not valid JSON");
    tr__free(text);
}

// Flips every bit of a good header: refused, or read as something that still covers the
// data.
static void flipped_bits(void **state) {
    (void)state;
    static const char good[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3]"
        ","
        "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"U8\",\"shape\":[],"
        "\"data_offsets\":[24,25]}}";
    int refused = 0, read = 0;
    for (size_t bit = 0; bit < 8 * (sizeof good - 1); bit++) {
        char text[sizeof good];
        tr_error err = {0};
        tr_tensor_header header = {0};
        memcpy(text, good, sizeof good);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        if (tr__header_parse("f", text, sizeof good - 1, 25, &header, &err) == TR_OK) {
            int64_t bytes = 0;
            for (size_t i = 0; i < header.count; i++) {
                bytes += header.tensors[i].bytes;
            }
            assert_int_equal(bytes, 25);
            read++;
        } else {
            assert_int_equal(err.status, TR_IO);
            refused++;
        }
        tr__header_release(&header);
    }
    assert_true(refused > 0 && read > 0); // names may change freely
}

static void lengths(void **state) {
    static const struct {
        uint64_t length;
        const char *words;
    } files[] = {
        {3, "cut short"},        {TR_HEADER_MAX + 1, "at most"},
        {UINT64_MAX, "at most"}, {UINT64_MAX - 7, "at most"},
        {1ull << 63, "at most"}, {0, "begin with"},
    };
    char path[PATH_MAX], bytes[10];
    test_path(path, *state, "length.safetensors");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tr_error err = {0};
        tr_tensor_set *set = NULL;
        memcpy(bytes, &files[i].length, 8);
        memcpy(bytes + 8, "{}", 2);
        test_write(path, bytes, sizeof bytes);
        test_fails(tr__tensor_set_open(path, &set, &err), &err, TR_IO, files[i].words);
    }
}

// A file with tensors of the given header and 4 bytes of data.
static void write_shard(const char *folder, const char *name, const char *header) {
    char path[PATH_MAX], bytes[256] = {0};
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    test_write(test_path(path, folder, name), bytes, 8 + length + 4);
}

static void indices(void **state) {
    static const struct {
        const char *index, *words;
    } files[] = {
        {"{\"weight_map\":{\"a\":\"1.safetensors\"}}", NULL},
        {"{}", "weight_map"},
        {"{\"weight_map\":[]}", "weight_map"},
        {"{\"weight_map\":{}}", "weight_map"},
        {"{\"weight_map\":{\"a\":1}}", "not in a file of this folder"},
        {"{\"weight_map\":{\"a\":\"\"}}", "not in a file of this folder"},
        {"{\"weight_map\":{\"a\":\"../1.safetensors\"}}",
         "not in a file of this folder"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "not in a file of this folder"},
        {"{\"weight_map\":{\"a\":\"3.safetensors\"}}", "cannot open"},
        {"{\"weight_map\":{\"b\":\"1.safetensors\"}}", "'b' is not in 1.safetensors"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"2.safetensors\"}}",
         "is also in"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"1.safetensors\"}}",
         "duplicate"},
    };
    char path[PATH_MAX];
    write_shard(*state, "1.safetensors", ONE("\"F32\"", "[1]", "[0,4]"));
    write_shard(*state, "2.safetensors", ONE("\"F32\"", "[1]", "[0,4]"));
    test_path(path, *state, "model.safetensors.index.json");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tr_error err = {0};
        tr_tensor_set *set = NULL;
        test_write(path, files[i].index, strlen(files[i].index));
        tr_status status = tr__tensor_set_open(*state, &set, &err);
        if (files[i].words) {
            test_fails(status, &err, TR_IO, files[i].words);
        } else {
            test_ok(status, &err);
        }
        tr__tensor_set_close(set);
    }
}

// Not as long as to hold the reader up, and not without tensors to speak of.
static void long_headers(void **state) {
    static const uint64_t bytes[] = {2 << 20, TR_HEADER_MAX + 8};
    static const char *const words[] = {"for 4 bytes of tensors", "at most"};
    char path[PATH_MAX];
    test_path(path, *state, "model.safetensors");
    for (int i = 0; i < 2; i++) {
        size_t size = 8 + (size_t)bytes[i] + 4;
        char *text = tr__calloc(size, 1);
        tr_tensor_set *set = NULL;
        tr_error err = {0};
        memset(text + 8, ' ', (size_t)bytes[i]);
        memcpy(text, &bytes[i], 8);
        text[8] = '{';
        test_write(path, text, size);
        tr__free(text);
        test_fails(tr__tensor_set_open(path, &set, &err), &err, TR_IO, words[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test_setup_teardown(long_headers, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(lengths, test_folder_make, test_folder_remove),
        cmocka_unit_test_setup_teardown(indices, test_folder_make, test_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
