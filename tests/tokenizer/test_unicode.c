// What is known of all 1,114,112 code points, against hashes of what Hugging Face's
// tokenizers answers for each (tools/unicode_tables.py).
#include "text/unicode/unicode.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static int open_tables(void **state) {
    static tr_unicode unicode;
    *state = &unicode;
    return tr__unicode_create(&unicode, NULL) == TR_OK ? 0 : -1;
}

static int close_tables(void **state) {
    tr__unicode_release(*state);
    return 0;
}

static void expect(uint64_t hash, uint64_t wanted) {
    if (hash != wanted) {
        print_error("the hash is 0x%016llx\n", (unsigned long long)hash);
    }
    assert_true(hash == wanted);
}

static void test_flags(void **state) {
    const tr_unicode *unicode = *state;
    expect(tr__hash(unicode->flags, TR_CODE_POINTS * sizeof *unicode->flags),
           UINT64_C(0x572dae67d72ba085));
}

static void test_lower_case(void **state) {
    uint64_t hash = 0;
    for (uint32_t c = 0; c < TR_CODE_POINTS; c++) {
        uint32_t lower[2] = {0};
        size_t count = tr__unicode_lowercase(*state, c, lower);
        hash = tr__hash_more(hash, lower, count * sizeof *lower);
    }
    expect(hash, UINT64_C(0x43666e50495fa41b));
}

static void test_combining_classes(void **state) {
    uint64_t hash = 0;
    for (uint32_t c = 0; c < TR_CODE_POINTS; c++) {
        int32_t class = tr__unicode_combining_class(*state, c);
        hash = tr__hash_more(hash, &class, sizeof class);
    }
    expect(hash, UINT64_C(0xfec8973a0af0362f));
}

static uint64_t hash_decompositions(const tr_unicode *unicode, bool compatibility) {
    uint64_t hash = 0;
    for (uint32_t c = 0; c < TR_CODE_POINTS; c++) {
        size_t count = 1;
        const uint32_t *parts = NULL;
        if (c < 0xac00 || c >= 0xac00 + 11172) { // Hangul is not in the tables
            parts = tr__unicode_decompose(unicode, c, compatibility, &count);
        }
        hash = tr__hash_more(hash, parts ? parts : &c, count * sizeof c);
    }
    return hash;
}

static void test_decompositions(void **state) {
    expect(hash_decompositions(*state, false), UINT64_C(0x7af7deeb99a8e386));
    expect(hash_decompositions(*state, true), UINT64_C(0x696b8c4f4141b274));
}

// Each character with each that may stand behind another one.
static void test_compositions(void **state) {
    const tr_unicode *unicode = *state;
    int64_t pairs = 0;
    uint64_t hash = 0;
    for (uint32_t b = 0; b < TR_CODE_POINTS; b++) {
        for (uint32_t a = 0; unicode->flags[b] & TR_COMPOSES_LEFT && a < 0x20000; a++) {
            uint32_t of[] = {a, b, tr__unicode_compose(unicode, a, b)};
            if (of[2] != 0) {
                hash = tr__hash_more(hash, of, sizeof of);
                pairs++;
            }
        }
    }
    assert_int_equal(pairs, 940);
    expect(hash, UINT64_C(0xe4a6e936746cabb7));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_lower_case),
        cmocka_unit_test(test_combining_classes),
        cmocka_unit_test(test_decompositions),
        cmocka_unit_test(test_compositions),
    };
    return cmocka_run_group_tests(tests, open_tables, close_tables);
}
