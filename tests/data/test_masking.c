// Masks: how many, what becomes of what is masked, and of what they are a function.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/encoder/masking.h"

#include <math.h>
#include <string.h>

enum { LENGTH = 1000, ROWS = 7000, MASK = 103, VOCABULARY = 30522, ID = 7000 };

static const tr_masker plain = {
    {.probability = 0.15, .mask = 0.8, .random = 0.1}, MASK, VOCABULARY, 5};

typedef struct row {
    int32_t ids[LENGTH], labels[LENGTH];
} row;

// Every tenth token is never masked, and of the others every fourth goes on with a
// word.
static void make(const tr_masker *masker, int64_t epoch, int64_t number, row *out) {
    for (int i = 0; i < LENGTH; i++) {
        out->ids[i] = ID + i;
        out->labels[i] = i % 10 == 9  ? TR_MASK_NEVER
                         : i % 4 == 3 ? TR_MASK_GOES_ON
                                      : TR_MASK_BEGINS;
    }
    tr__mask_row(masker, epoch, number, LENGTH, out->ids, out->labels);
}

// Within three deviations of a binomial count.
static void assert_share(int64_t count, int64_t of, double share) {
    double deviation = sqrt((double)of * share * (1 - share));
    if (!(fabs((double)count - (double)of * share) <= 3 * deviation)) {
        fail_msg("%lld of %lld, and not %g of them", (long long)count, (long long)of,
                 share);
    }
}

// About 10^6 masks.
static void shares_are_as_asked(void **state) {
    static row r;
    int64_t open = 0, chosen = 0, masked = 0, same = 0, any = 0;
    (void)state;
    for (int64_t n = 0; n < ROWS; n++) {
        make(&plain, n % 3, n, &r);
        for (int i = 0; i < LENGTH; i++) {
            bool is_chosen = r.labels[i] >= 0;
            assert_true(is_chosen ||
                        (r.labels[i] == TR_NO_TARGET && r.ids[i] == ID + i));
            assert_true(!is_chosen || (r.labels[i] == ID + i && i % 10 != 9));
            open += i % 10 != 9;
            chosen += is_chosen;
            masked += is_chosen && r.ids[i] == MASK;
            same += is_chosen && r.ids[i] == ID + i;
            any += is_chosen && r.ids[i] != MASK && r.ids[i] != ID + i;
        }
    }
    assert_true(chosen > 900000);
    assert_share(chosen, open, 0.15);
    // A random token is the mask, or the token itself, once in a vocabulary.
    assert_share(masked, chosen, 0.8 + 0.1 / VOCABULARY);
    assert_share(same, chosen, 0.1 + 0.1 / VOCABULARY);
    assert_share(any, chosen, 0.1);
}

static void function_of_seed_epoch_and_sample(void **state) {
    static row first, again, other;
    (void)state;
    make(&plain, 2, 17, &first);
    make(&plain, 2, 17, &again);
    assert_memory_equal(&first, &again, sizeof first);
    make(&plain, 3, 17, &other);
    assert_memory_not_equal(&first, &other, sizeof first);
    make(&plain, 2, 18, &other);
    assert_memory_not_equal(&first, &other, sizeof first);
    tr_masker seed = plain;
    seed.seed++;
    make(&seed, 2, 17, &other);
    assert_memory_not_equal(&first, &other, sizeof first);
}

static void words_are_whole(void **state) {
    static row r;
    tr_masker whole = plain;
    int64_t words = 0, chosen = 0;
    (void)state;
    whole.how.whole_words = true;
    for (int64_t n = 0; n < 200; n++) {
        make(&whole, 0, n, &r);
        for (int i = 1; i < LENGTH; i++) {
            bool goes_on = i % 10 != 9 && i % 4 == 3;
            bool cut = (i - 1) % 10 == 9; // behind what is never masked: not chosen
            assert_true(!goes_on ||
                        (r.labels[i] >= 0) == (!cut && r.labels[i - 1] >= 0));
            words += i % 10 != 9 && !goes_on;
            chosen += !goes_on && r.labels[i] >= 0;
        }
    }
    assert_share(chosen, words, 0.15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_as_asked),
        cmocka_unit_test(function_of_seed_epoch_and_sample),
        cmocka_unit_test(words_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
