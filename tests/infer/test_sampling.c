// Which tokens top-k and top-p keep, as transformers' logits warpers do, and what is
// drawn of them.
#include <tranche/sample.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS_MAX = 64 };

// The numbers up to '|' or the line's end; returns how many.
static int numbers(char **at, double *values) {
    int count = 0;
    char *end;
    for (double v = strtod(*at, &end); end != *at && count < TOKENS_MAX;
         v = strtod(*at, &end)) {
        values[count++] = v;
        *at = end;
    }
    *at += strspn(*at, " |");
    return count;
}

static void check_line(char *line) {
    double how[TOKENS_MAX], logit[TOKENS_MAX], token[TOKENS_MAX];
    float logits[TOKENS_MAX];
    bool kept[TOKENS_MAX];
    char *at = line;
    assert_int_equal(numbers(&at, how), 3);
    int count = numbers(&at, logit), left = numbers(&at, token);
    assert_true(count > 1 && left > 0);
    for (int i = 0; i < count; i++) {
        logits[i] = (float)logit[i];
    }
    tr_sampling sampling = {sizeof sampling, how[0], (int64_t)how[1], how[2], 1};
    assert_int_equal(tr_sample_keep(logits, count, &sampling, kept, NULL), TR_OK);
    for (int i = 0, k = 0; i < count; i++) {
        bool wanted = k < left && (int)token[k] == i;
        if (kept[i] != wanted) {
            fail_msg("token %d is %skept: %s", i, kept[i] ? "" : "not ", line);
        }
        k += wanted;
    }
}

static void test_warpers(void **state) {
    (void)state;
    char line[4096];
    int lines = 0;
    FILE *file = fopen(TR_TEST_DATA "/sampling.txt", "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++) {
        check_line(line);
    }
    fclose(file);
    assert_true(lines >= 72);
}

// Of equal logits top-p keeps the smaller tokens, and never leaves none.
static void test_ties(void **state) {
    static const float logits[] = {2, 2, 2, 2};
    static const struct {
        double top_p;
        bool kept[4];
    } cases[] = {{1e-6, {true, false, false, false}},
                 {0.25, {true, false, false, false}},
                 {0.6, {true, true, true, false}},
                 {0.99, {true, true, true, true}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_sampling how = {
            .size = sizeof(tr_sampling), .temperature = 1, .top_p = cases[i].top_p};
        bool kept[4];
        assert_int_equal(tr_sample_keep(logits, 4, &how, kept, NULL), TR_OK);
        assert_memory_equal(kept, cases[i].kept, sizeof kept);
    }
}

// Only what is kept is drawn, all of it, as often as its probability says.
static void test_shares(void **state) {
    static const float logits[] = {0, 1, 3, 2, 2};
    enum { DRAWS = 20000 };
    tr_sampling how = {
        .size = sizeof(tr_sampling), .temperature = 1, .top_k = 3, .seed = 3};
    int drawn[5] = {0};
    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        int32_t token = -1;
        assert_int_equal(tr_sample_pick(logits, 5, &how, (uint64_t)i, &token, NULL),
                         TR_OK);
        drawn[token]++;
    }
    double total = exp(3) + 2 * exp(2);
    assert_int_equal(drawn[0] + drawn[1], 0);
    assert_float_equal(drawn[2] / (double)DRAWS, exp(3) / total, 0.02);
    assert_float_equal(drawn[3] / (double)DRAWS, exp(2) / total, 0.02);
    assert_float_equal(drawn[4] / (double)DRAWS, exp(2) / total, 0.02);
}

// Without limits every draw is that of tr_sample_draw.
static void test_no_limits(void **state) {
    static const float logits[] = {0.3f, -1, 2.5f, 2.25f, 1};
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        static const tr_sampling all[] = {{sizeof *all, 1.3, 0, 0, 9},
                                          {sizeof *all, 1.3, 5, 1, 9}};
        for (int k = 0; k < 2; k++) {
            int32_t token = -1;
            assert_int_equal(tr_sample_pick(logits, 5, &all[k], i, &token, NULL),
                             TR_OK);
            assert_int_equal(token, tr_sample_draw(logits, 5, 1.3, 9, i));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warpers),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
