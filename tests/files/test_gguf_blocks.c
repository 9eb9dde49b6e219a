// Labels: check
// Blocks of GGUF tensors: by hand, and to the bits of gguf-py
// (tools/goldens/gguf_files.py).
#include "files/support.h"

#include "base/memory.h"
#include "files/gguf/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const tr_gguf_format *format_named(const char *name) {
    for (int number = 0; number < 64; number++) {
        const tr_gguf_format *format = tr__gguf_format(number);
        if (format && strcmp(format->name, name) == 0) {
            return format;
        }
    }
    fail_msg("no format is called %s", name);
    return NULL;
}

static size_t from_hex(const char *hex, unsigned char *bytes) {
    size_t count = strlen(hex) / 2;
    for (size_t i = 0; i < count; i++) {
        unsigned value = 0;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        bytes[i] = (unsigned char)value;
    }
    return count;
}

static void decodes(const char *name, const char *block_hex, const char *values_hex) {
    const tr_gguf_format *format = format_named(name);
    unsigned char block[TR_GGUF_BLOCK_BYTES_MAX], wanted[TR_GGUF_BLOCK_MAX * 4];
    float values[TR_GGUF_BLOCK_MAX];
    assert_int_equal(from_hex(block_hex, block), format->bytes);
    assert_int_equal(from_hex(values_hex, wanted), format->elements * 4);
    format->decode(block, values);
    for (int i = 0; i < format->elements; i++) {
        if (memcmp(&values[i], wanted + 4 * i, 4) != 0) {
            fail_msg("%s: element %d is %.9g", name, i, (double)values[i]);
        }
    }
}

static void encodes(const char *name, const char *values_hex, const char *block_hex) {
    const tr_gguf_format *format = format_named(name);
    unsigned char block[TR_GGUF_BLOCK_BYTES_MAX], wanted[TR_GGUF_BLOCK_BYTES_MAX];
    float values[TR_GGUF_BLOCK_MAX];
    from_hex(values_hex, (unsigned char *)values);
    size_t bytes = from_hex(block_hex, wanted);
    assert_true(format->encode(values, block));
    assert_memory_equal(block, wanted, bytes);
}

static void blocks_are_gguf_pys(void **state) {
    size_t bytes = 0;
    char *text = test_read(TR_TEST_DATA "/gguf/blocks.txt", &bytes), *rest = text;
    int lines = 0;
    (void)state;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); lines++) {
        const char *word = strtok_r(line, " ", &line);
        bool encode = strcmp(word, "encode") == 0;
        const char *name = encode ? strtok_r(line, " ", &line) : word;
        const char *from = strtok_r(line, " ", &line);
        const char *to = strtok_r(line, " ", &line);
        if (encode) {
            encodes(name, from, to);
        } else {
            decodes(name, from, to);
        }
    }
    assert_int_equal(lines, 12 * 2 + 6);
    tr__free(text);
}

// Scale 2 (0x4000 as f16), least value -1 (0xbc00): what each field means.
static void blocks_by_hand(void **state) {
    unsigned char block[TR_GGUF_BLOCK_BYTES_MAX] = {0x00, 0x40, 0x00, 0xbc};
    float values[TR_GGUF_BLOCK_MAX];
    (void)state;
    block[4] = 0xf3; // elements 0 and 16: 3 and 15
    tr__gguf_decode_q4_1(block, values);
    assert_true(values[0] == 2 * 3 - 1 && values[16] == 2 * 15 - 1 && values[1] == -1);
    memset(block, 0, sizeof block);
    block[1] = 0x40;
    block[2] = 0x80; // Q8_0: element 0 is -128
    block[33] = 0x7f;
    tr__gguf_decode_q8_0(block, values);
    assert_true(values[0] == -256 && values[1] == 0 && values[31] == 254);
    memset(block, 0, sizeof block);
    block[1] = 0x40;
    block[2] = 0x01; // Q5_0: the fifth bit of element 0
    block[6] = 0x02; // and its low bits
    tr__gguf_decode_q5_0(block, values);
    assert_true(values[0] == 2 * (18 - 16) && values[1] == 2 * -16);
    memset(block, 0, sizeof block);
    block[209] = 0x40;                // Q6_K: the scale of scales
    block[192] = 3, block[193] = 255; // the first two scales: 3 and -1
    block[0] = 0x05;                  // element 0: low bits 5
    block[128] = 0x02;                // and high bits 2
    tr__gguf_decode_q6_k(block, values);
    assert_true(values[0] == 6 * (37 - 32) && values[16] == -2 * -32);
    assert_true(values[32] == 0);
}

static void what_q8_0_cannot_hold_is_told(void **state) {
    unsigned char block[34];
    float values[32] = {[7] = INFINITY};
    (void)state;
    assert_false(tr__gguf_encode_q8_0(values, block));
    values[7] = NAN;
    assert_false(tr__gguf_encode_q8_0(values, block));
    values[7] = 1e8f; // its scale is beyond f16
    assert_false(tr__gguf_encode_q8_0(values, block));
    values[7] = 1e-44f;
    assert_true(tr__gguf_encode_q8_0(values, block));
    assert_true(block[0] == 0 && block[1] == 0 && block[2 + 7] == 0);
}

static void names_are_known(void **state) {
    char names[128];
    (void)state;
    assert_null(tr__gguf_format(23));
    assert_string_equal(tr__gguf_format_name(23), "IQ4_XS");
    assert_null(tr__gguf_format_name(4));
    assert_null(tr__gguf_format(-1));
    assert_non_null(strstr(tr__gguf_format_names(names, sizeof names), "F32, F16"));
    assert_non_null(strstr(names, "Q6_K"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_gguf_pys),
        cmocka_unit_test(blocks_by_hand),
        cmocka_unit_test(what_q8_0_cannot_hold_is_told),
        cmocka_unit_test(names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
