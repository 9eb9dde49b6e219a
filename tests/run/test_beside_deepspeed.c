// What keys mean in DeepSpeed: rows that are of a key, and the text that programs get.
#include "run/keys/beside_deepspeed.h"

#include <tranche/run.h>
#include <tranche/version.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

// A key that works, of this path; with `type`, of those types alone.
static bool find(const char *path, const char *type, tr_run_key *out) {
    for (size_t i = 0; tr_run_key_at(i, out); i++) {
        bool found = out->works && strcmp(out->path, path) == 0 && !type;
        if (type && out->works && strcmp(out->path, path) == 0 && out->where) {
            for (size_t t = 0; out->where[t] && !found; t++) {
                found = strcmp(out->where[t], type) == 0;
            }
        }
        if (found) {
            return true;
        }
    }
    return false;
}

static void every_row_is_of_a_key_that_works(void **state) {
    (void)state;
    size_t count = 0;
    for (const char *path; (path = tr__key_beside_deepspeed_path(count)); count++) {
        tr_run_key key = TR_RUN_KEY_INIT;
        if (!find(path, NULL, &key)) {
            fail_msg("%s: no key has this path and an effect", path);
        }
    }
    assert_true(count > 50);
}

// Texts read on behind "In DeepSpeed: ", and one that has no effect needs none.
static void texts_say_same_or_differs(void **state) {
    (void)state;
    tr_run_key key = TR_RUN_KEY_INIT;
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        if (key.deepspeed && !begins(key.deepspeed, "same") &&
            !begins(key.deepspeed, "differs: ")) {
            fail_msg("%s: \"%s\"", key.path, key.deepspeed);
        }
        if (key.deepspeed && !key.works) {
            fail_msg("%s has no effect, and a row", key.path);
        }
    }
}

// All keys of these groups are DeepSpeed's: a new one needs a row.
static void groups_of_deepspeed_have_rows(void **state) {
    (void)state;
    static const char *const groups[] = {"fp16.",        "zero_optimization.",
                                         "csv_monitor.", "tensorboard.",
                                         "train_",       "gradient_"};
    tr_run_key key = TR_RUN_KEY_INIT;
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
            if (key.works && begins(key.path, groups[g]) && !key.deepspeed) {
                fail_msg("%s has no row", key.path);
            }
        }
    }
}

static void a_row_may_be_of_one_type(void **state) {
    (void)state;
    tr_run_key key = TR_RUN_KEY_INIT;
    assert_true(find("optimizer.params.lr", "AdamW", &key));
    assert_string_equal(key.deepspeed, "same");
    assert_true(find("optimizer.params.lr", "LARS", &key));
    assert_null(key.deepspeed);
    assert_true(find("optimizer.params.betas", "Lion", &key));
    assert_true(begins(key.deepspeed, "differs: "));
    assert_true(find("model", NULL, &key));
    assert_null(key.deepspeed);
    assert_true(find("train_batch_size", NULL, &key));
    assert_true(begins(key.deepspeed, "differs: "));
}

// Each key has a first version, of three numbers, which is none that is yet to come.
static void every_key_says_since_when(void **state) {
    (void)state;
    tr_run_key key = TR_RUN_KEY_INIT;
    size_t count = 0;
    for (size_t i = 0; tr_run_key_at(i, &key); i++, count++) {
        int major = 0, minor = 0, patch = 0, end = 0;
        if (sscanf(key.since, "%d.%d.%d%n", &major, &minor, &patch, &end) != 3 ||
            key.since[end] != '\0' ||
            major * 1000000 + minor * 1000 + patch > TRANCHE_VERSION_NUMBER) {
            fail_msg("%s: since \"%s\"", key.path, key.since);
        }
    }
    assert_true(count > 200);
    assert_true(find("train_batch_size", NULL, &key));
    assert_string_equal(key.since, "0.1.0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_of_a_key_that_works),
        cmocka_unit_test(texts_say_same_or_differs),
        cmocka_unit_test(groups_of_deepspeed_have_rows),
        cmocka_unit_test(a_row_may_be_of_one_type),
        cmocka_unit_test(every_key_says_since_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
