// What holds for every optimizer of the list, whichever it is: by the numbers that a
// run file without optimizer.params gives it.
#include "ops/update.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool has_key(const tr_optimizer_settings *of, const char *path) {
    for (size_t i = 0; i < of->keys.count; i++) {
        if (strcmp(of->keys.keys[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

// Its numbers and names are its own; train finds the keys that it reads.
static void rows_are_whole(void **state) {
    const tr_optimizer_settings *of;
    size_t types = 0;
    (void)state;
    for (size_t i = 0; (of = tr__optimizers[i]) != NULL; i++) {
        const tr_optimizer *optimizer = of->optimizer;
        assert_true(i == 0 ||
                    optimizer->number > tr__optimizers[i - 1]->optimizer->number);
        assert_true(optimizer->state_count <= TR_OPTIMIZER_STATES);
        for (int s = 0; s < optimizer->state_count; s++) {
            assert_non_null(optimizer->states[s].name);
        }
        for (const char *const *type = of->types; *type; type++) {
            assert_ptr_equal(tr__optimizer_settings_find(*type), of);
            assert_string_equal(*type, tr__optimizer_types[types++]);
        }
        assert_true(has_key(of, "optimizer.params.lr"));
        assert_int_equal(has_key(of, "optimizer.params.betas"), optimizer->has_betas);
        assert_int_equal(has_key(of, "optimizer.params.exclude_1d"),
                         optimizer->adaptation != NULL);
        assert_int_equal(has_key(of, "optimizer.params.decay_1d"),
                         optimizer->adaptation != NULL);
        assert_true(!optimizer->scale || optimizer->has_betas);
    }
    assert_null(tr__optimizer_types[types]);
}

// One for each folder that has settings.
static void list_is_whole(void **state) {
    glob_t found;
    size_t count = 0;
    (void)state;
    while (tr__optimizers[count]) {
        count++;
    }
    assert_int_equal(
        glob(TR_SOURCE_DIR "/src/ops/optimizers/*/settings.c", 0, NULL, &found), 0);
    assert_int_equal(count, found.gl_pathc);
    globfree(&found);
}

static void fast_agrees_with_reference(void **state) {
    const tr_optimizer_settings *of;
    (void)state;
    for (size_t i = 0; (of = tr__optimizers[i]) != NULL; i++) {
        if (of->optimizer->matrices) { // tests/ops/test_muon.c
            continue;
        }
        tr_hyper hyper = test_hyper_read(of, "\"weight_decay\": 0.1");
        test_update_agrees(of->optimizer, &hyper, 1, 2e-6);
        test_update_agrees(of->optimizer, &hyper, 7, 2e-6);
    }
}

static void cuts_change_no_bit(void **state) {
    const tr_optimizer_settings *of;
    (void)state;
    for (size_t i = 0; (of = tr__optimizers[i]) != NULL; i++) {
        if (of->optimizer->matrices) {
            continue;
        }
        tr_hyper hyper = test_hyper_read(of, "\"weight_decay\": 0.1");
        test_update_cuts(of->optimizer, &hyper, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_is_whole),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
