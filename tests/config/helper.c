#include "config/helper.h"

#include "run/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { SETS_MAX = 16 };

tr_status try_config(const char *text, const char *const *sets, tr_config **out,
                     tr_error *err) {
    tr_config_override overrides[SETS_MAX] = {{0}};
    size_t count = 0;
    for (; sets && sets[count]; count++) {
        assert_true(count < SETS_MAX);
        overrides[count] = (tr_config_override){.value = sets[count]};
    }
    return tr__config_parse(&(tr_config_text){"run.json", text, strlen(text)},
                            tr__key_tables, TR_KEY_TABLES, overrides, count, out, err);
}

tr_config *good_config(const char *text, const char *const *sets) {
    tr_config *config = NULL;
    tr_error err = {0};
    if (try_config(text, sets, &config, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    assert_non_null(config);
    return config;
}

void refused(const char *text, const char *const *sets, const char *const *words) {
    tr_config *config = NULL;
    tr_error err = {0};
    tr_status status = try_config(text, sets, &config, &err);
    if (status == TR_OK) {
        tr__config_destroy(config);
        fail_msg("accepted: %s", text);
    }
    assert_int_equal(status, TR_USAGE);
    assert_int_equal(err.status, TR_USAGE);
    assert_null(config);
    for (; *words; words++) {
        if (!strstr(err.message, *words)) {
            fail_msg("\"%s\" is not in: %s", *words, err.message);
        }
    }
}
