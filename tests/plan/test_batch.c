// How the effective batch is cut.
#include "plan/flow/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void test_rules(void **state) {
    (void)state;
    static const struct {
        tr_batch_request given;
        int64_t total, m, g, count, last;
    } rows[] = {
        // As DeepSpeed has them.
        {{32, 4, 4, 2}, 32, 4, 4, 8, 4},
        {{32, 4, 0, 2}, 32, 4, 4, 8, 4},
        {{32, 0, 4, 2}, 32, 4, 4, 8, 4},
        {{0, 4, 4, 2}, 32, 4, 4, 8, 4},
        {{32, 0, 0, 2}, 32, 16, 1, 2, 16},
        {{0, 4, 0, 2}, 8, 4, 1, 2, 4},
        {{1, 1, 1, 1}, 1, 1, 1, 1, 1},
        // Ragged.
        {{30, 4, 0, 1}, 30, 4, 8, 8, 2},
        {{30, 4, 0, 3}, 30, 4, 3, 8, 2},
        {{3, 8, 0, 1}, 3, 8, 1, 1, 3},
        {{10, 0, 0, 4}, 10, 3, 1, 4, 1},
        {{1, 0, 0, 4}, 1, 1, 1, 1, 1},
        {{1, 1, 0, 1000}, 1, 1, 1, 1, 1},
        // The ends of the range.
        {{TR_BATCH_MAX, 1, 0, 1}, TR_BATCH_MAX, 1, TR_BATCH_MAX, TR_BATCH_MAX, 1},
        {{TR_BATCH_MAX, TR_BATCH_MAX, 0, TR_BATCH_MAX},
         TR_BATCH_MAX,
         TR_BATCH_MAX,
         1,
         1,
         TR_BATCH_MAX},
        {{0, TR_BATCH_MAX / 4, 2, 2},
         TR_BATCH_MAX,
         TR_BATCH_MAX / 4,
         2,
         4,
         TR_BATCH_MAX / 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tr_batch_cut cut;
        tr_error err = {0};
        assert_int_equal(tr__batch_resolve(&rows[i].given, &cut, &err), TR_OK);
        assert_int_equal(cut.train_batch_size, rows[i].total);
        assert_int_equal(cut.micro_batch, rows[i].m);
        assert_int_equal(cut.accumulation_steps, rows[i].g);
        assert_int_equal(cut.ranks, rows[i].given.ranks);
        assert_int_equal(cut.micro_batches, rows[i].count);
        assert_int_equal(cut.last_micro_batch, rows[i].last);
    }
}

// Whatever is accepted holds together.
static void test_invariants(void **state) {
    (void)state;
    for (int64_t total = 0; total <= 24; total++) {
        for (int64_t m = 0; m <= 9; m++) {
            for (int64_t g = 0; g <= 9; g++) {
                for (int64_t ranks = 1; ranks <= 5; ranks++) {
                    tr_batch_request given = {total, m, g, ranks};
                    tr_batch_cut cut;
                    if (tr__batch_resolve(&given, &cut, NULL) != TR_OK) {
                        continue;
                    }
                    assert_true(!total || cut.train_batch_size == total);
                    assert_true(!m || cut.micro_batch == m);
                    assert_true(!g || cut.accumulation_steps == g);
                    int64_t room = cut.micro_batch * cut.accumulation_steps * ranks;
                    assert_true(room >= cut.train_batch_size);
                    assert_true(!g || room == cut.train_batch_size);
                    // One accumulation step less would not do.
                    assert_true(room - cut.micro_batch * ranks < cut.train_batch_size);
                }
            }
        }
    }
}

static void refuse(tr_batch_request given, const char *const *words) {
    tr_batch_cut cut = {.ranks = -1};
    tr_error err = {0};
    assert_int_equal(tr__batch_resolve(&given, &cut, &err), TR_USAGE);
    assert_int_equal(cut.ranks, -1);
    for (; *words; words++) {
        if (!strstr(err.message, *words)) {
            fail_msg("\"%s\" is not in: %s", *words, err.message);
        }
    }
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_errors(void **state) {
    (void)state;
    const char *none =
        "Either train_batch_size or train_micro_batch_size_per_gpu needs "
        "to be provided";
    refuse((tr_batch_request){0, 0, 0, 1}, WORDS(none));
    refuse((tr_batch_request){0, 0, 4, 1}, WORDS(none));
    refuse((tr_batch_request){32, 4, 3, 1},
           WORDS("train_batch_size 32 is not train_micro_batch_size_per_gpu 4 x "
                 "gradient_accumulation_steps 3 x 1 rank, which makes 12",
                 "train_batch_size 12, or gradient_accumulation_steps 8, or no"));
    refuse(
        (tr_batch_request){30, 4, 5, 2},
        WORDS("x 2 ranks", "train_batch_size 40, or train_micro_batch_size_per_gpu 3"));
    refuse((tr_batch_request){30, 4, 8, 1}, WORDS("which makes 32"));
    refuse((tr_batch_request){7, TR_BATCH_MAX, TR_BATCH_MAX, TR_BATCH_MAX},
           WORDS("more than is possible", "what would fit: no gradient"));
    refuse((tr_batch_request){10, 0, 4, 1},
           WORDS("train_batch_size 10 is no multiple of gradient_accumulation_steps 4",
                 "train_batch_size 8, or train_batch_size 12, or train_micro"));
    refuse((tr_batch_request){2, 0, 4, 1}, WORDS("what would fit: train_batch_size 4"));
    refuse((tr_batch_request){2, 0, TR_BATCH_MAX, 9}, WORDS("no multiple"));
    refuse((tr_batch_request){0, TR_BATCH_MAX, 2, 1}, WORDS("make more than"));
    refuse((tr_batch_request){0, TR_BATCH_MAX, TR_BATCH_MAX, TR_BATCH_MAX},
           WORDS("make more than"));
    refuse((tr_batch_request){-1, 1, 1, 1}, WORDS("train_batch_size is -1"));
    refuse((tr_batch_request){1, -1, 1, 1}, WORDS("train_micro_batch_size_per_gpu"));
    refuse((tr_batch_request){1, 1, INT64_MIN, 1},
           WORDS("gradient_accumulation_steps"));
    refuse((tr_batch_request){INT64_MAX, 1, 1, 1}, WORDS("1 to 2147483648"));
    refuse((tr_batch_request){1, 1, 1, 0}, WORDS("ranks is 0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
