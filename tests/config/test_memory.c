// Out of memory at every allocation: an error, no crash and nothing leaked. First at
// ours alone, where the status must be right; then at jansson's too. Its reader (2.14)
// drops characters when a buffer cannot grow, so what it reads then may be called bad
// syntax or an unknown key.
#include "config/helper.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

static void *jansson_malloc(size_t size) {
    return tr__calloc(1, size);
}

static tr_status whole(const char *text, const char *const *sets) {
    tr_config *config = NULL;
    char *written = NULL;
    tr_error err = {0};
    tr_status status = try_config(text, sets, &config, &err);
    if (status == TR_OK) {
        status = tr__config_resolve_int(config, "gradient_accumulation_steps", 2,
                                        TR_ORIGIN_DERIVED, "m and T", &err);
    }
    if (status == TR_OK) {
        status = tr__config_settle(config, &err);
    }
    if (status == TR_OK) {
        status = tr__config_write_resolved(config, &written, &err);
    }
    assert_int_equal(err.status, status);
    tr__free(written);
    tr__config_destroy(config);
    return status;
}

// Fails allocation 1, 2, ... until all of them succeed; the end must be `expected`.
static void exhaust(const char *text, const char *const *sets, tr_status expected,
                    bool jansson_too) {
    int64_t failures = 0;
    for (int64_t nth = 1;; nth++) {
        int64_t before = tr__memory_calls();
        tr__memory_fail_at(nth);
        tr_status status = whole(text, sets);
        tr__memory_fail_at(0);
        if (tr__memory_calls() - before < nth) {
            assert_int_equal(status, expected);
            break;
        }
        failures++;
        // A message may have to do without its details; then its error stands.
        assert_true(status == TR_MEMORY || status == expected ||
                    (jansson_too && status == TR_USAGE));
    }
    assert_true(failures >= 3);
}

static const char text[] =
    "{\"train_batch_size\": 8, \"model\": {\"n_layer\": 2, \"x\": [1, 2.5, null]},"
    "\"optimizer\": {\"type\": \"adamw\", \"params\": {\"betas\": [0.9, 0.95],"
    "\"lr\": \"auto\"}, \"groups\": [{\"match\": [\"a*\", \"b\"], \"lr\": 1}]},"
    "\"zero_optimization\": {\"overlap_comm\": true, \"reduce_scatter\": true}}";

static void try_all(bool jansson_too) {
    exhaust(text, WORDS("steps=4", "scheduler.type=WarmupLR", "out=1"), TR_OK,
            jansson_too);
    exhaust("{\"stepz\": [1, 2]}", NULL, TR_USAGE, jansson_too);
    exhaust("{\"steps\": [1, 2]}", NULL, TR_USAGE, jansson_too);
}

static void test_ours(void **state) {
    (void)state;
    try_all(false);
}

static void test_all(void **state) {
    (void)state;
    json_set_alloc_funcs(jansson_malloc, tr__free);
    try_all(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ours),
                                       cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
