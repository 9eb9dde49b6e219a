// state.json: every number comes back to the bit, and no damage goes unseen.
#include "files/support.h"

#include "base/memory.h"
#include "files/checkpoint/state_table.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double hard_doubles[] = {
    0.1,      1.0 / 3,   -0.0, DBL_MAX, DBL_MIN, 4.9e-324,
    INFINITY, -INFINITY, 1e22, 0x1p53,  65536.0, 0.999999999999999889};
enum { HARD_COUNT = sizeof hard_doubles / sizeof *hard_doubles };

static void fill(tr_state *state, tr_manifest *manifest) {
    *state = (tr_state){.step = 100,
                        .update = 98,
                        .skipped = 2,
                        .cursor = INT64_MAX,
                        .epoch = 3,
                        .seed = UINT64_MAX,
                        .dataset_hash = 0x0123456789abcdef,
                        .model_hash = 7,
                        .loss_scale = 0x1p-1074,
                        .good_steps = 17,
                        .hysteresis = 2,
                        .group_count = 2,
                        .beta_power = {{pow(0.9, 98), pow(0.999, 98)}, {0.1, 0.3}}};
    for (int i = 0; i < HARD_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "number.%d", i);
        assert_true(tr__state_numbers_set(&state->schedule, name, hard_doubles[i]));
    }
    assert_true(tr__state_numbers_set(&state->numbers, "wave", 4));
    *manifest = (tr_manifest){
        2, {{"config.json", 12, 0xfedcba9876543210}, {"model.safetensors", 1, 2}}};
}

static void round_trip(void **unused) {
    (void)unused;
    tr_error err = {0};
    tr_state state, back;
    tr_manifest manifest, manifest_back;
    char *text, *again;
    fill(&state, &manifest);
    test_ok(tr__state_encode(&state, &manifest, &text, &err), &err);
    test_ok(tr__state_decode("s", text, strlen(text), &back, &manifest_back, &err),
            &err);
    assert_memory_equal(&back, &state, sizeof state);
    assert_memory_equal(&manifest_back, &manifest, sizeof manifest);
    test_ok(tr__state_encode(&back, &manifest_back, &again, &err), &err);
    assert_string_equal(again, text);
    tr__free(text);
    tr__free(again);
}

static void not_a_number(void **unused) {
    (void)unused;
    tr_error err = {0};
    tr_state state = {.loss_scale = NAN}, back;
    tr_manifest manifest = {0};
    char *text;
    test_ok(tr__state_encode(&state, &manifest, &text, &err), &err);
    test_ok(tr__state_decode("s", text, strlen(text), &back, &manifest, &err), &err);
    assert_true(isnan(back.loss_scale));
    tr__free(text);
}

// Any changed byte is an error or changes nothing (a blank for another).
static void changed_bytes(void **unused) {
    (void)unused;
    tr_error err = {0};
    tr_state state, back;
    tr_manifest manifest, manifest_back;
    char *text;
    fill(&state, &manifest);
    test_ok(tr__state_encode(&state, &manifest, &text, &err), &err);
    size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) {
        char was = text[i];
        text[i] = (char)(was ^ 1);
        tr_error problem = {0};
        if (tr__state_decode("s", text, bytes, &back, &manifest_back, &problem) ==
            TR_OK) {
            assert_memory_equal(&back, &state, sizeof state);
            assert_memory_equal(&manifest_back, &manifest, sizeof manifest);
        } else {
            assert_int_equal(problem.status, TR_IO);
        }
        text[i] = was;
    }
    for (size_t length = 0; length < bytes - 2; length++) {
        tr_error problem = {0};
        test_fails(tr__state_decode("s", text, length, &back, &manifest_back, &problem),
                   &problem, TR_IO, "not valid JSON");
    }
    tr__free(text);
}

static void other_content(void **unused) {
    (void)unused;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{}", "not a tranche checkpoint"},
        {"[]", "not a JSON object"},
        {"{\"format\":\"tranche checkpoint\",\"version\":2}", "version 2"},
        {"{\"format\":\"tranche checkpoint\",\"version\":1}", "damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_error err = {0};
        tr_state state;
        tr_manifest manifest;
        test_fails(tr__state_decode("s", cases[i].text, strlen(cases[i].text), &state,
                                    &manifest, &err),
                   &err, TR_IO, cases[i].words);
    }
}

static void limits(void **unused) {
    (void)unused;
    tr_error err = {0};
    tr_state state = {.group_count = TR_STATE_GROUPS_MAX + 1};
    tr_manifest manifest = {0};
    tr_state_numbers numbers = {0};
    char *text;
    double value;
    test_fails(tr__state_encode(&state, &manifest, &text, &err), &err, TR_INTERNAL,
               "groups");
    assert_false(tr__state_numbers_set(&numbers, "", 1));
    assert_false(
        tr__state_numbers_set(&numbers, "a name of more than 31 characters", 1));
    assert_false(tr__state_numbers_get(&numbers, "a", &value));
    for (int i = 0; i <= TR_STATE_NUMBERS_MAX; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(tr__state_numbers_set(&numbers, name, i),
                         i < TR_STATE_NUMBERS_MAX);
    }
    assert_true(tr__state_numbers_set(&numbers, "n3", -1)); // replaced, not added
    assert_true(tr__state_numbers_get(&numbers, "n3", &value) && value == -1);
}

// A state in which every number is within its bounds.
static tr_state usual(void) {
    tr_state state = {.step = 1000, .update = 900, .loss_scale = 1, .group_count = 1};
    state.beta_power[0][0] = state.beta_power[0][1] = 0.5;
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *row = &tr__state_table[i];
        if (row->offset == TR_STATE_BY_NAME) {
            assert_true(tr__state_numbers_set(&state.numbers, row->name, row->min));
        }
    }
    return state;
}

static void put(tr_state *state, const tr_state_row *row, double value) {
    void *at = (char *)state + row->offset;
    if (row->offset == TR_STATE_BY_NAME) {
        assert_true(tr__state_numbers_set(&state->numbers, row->name, value));
    } else if (row->kind == TR_STATE_INTEGER) {
        *(int64_t *)at = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
    } else {
        *(double *)at = value;
    }
}

// What a file with such a state is read as.
static tr_status read_state(const char *path, const tr_state *state, tr_error *err) {
    tr_manifest manifest = {0};
    tr_state back;
    char *text;
    test_ok(tr__state_encode(state, &manifest, &text, err), err);
    test_write(path, text, strlen(text));
    tr__free(text);
    return tr__state_read(path, &back, &manifest, err);
}

static void refuse(const char *path, const tr_state_row *row, double value) {
    tr_error err = {0};
    tr_state state = usual();
    char key[80];
    put(&state, row, value);
    snprintf(key, sizeof key, "'%s%s%s'", row->section ? row->section : "",
             row->section ? "." : "", row->name);
    tr_status status = read_state(path, &state, &err);
    test_fails(status, &err, TR_IO, key);
    test_fails(status, &err, TR_IO, path);
}

// Every number at its bounds, and beyond them, in a file whose own check is right.
static void bounds(void **folder) {
    char path[PATH_MAX];
    tr_error err = {0};
    test_path(path, *folder, "state.json");
    tr_state state = usual();
    test_ok(read_state(path, &state, &err), &err);
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *row = &tr__state_table[i];
        bool by_name = row->offset == TR_STATE_BY_NAME;
        if (row->kind == TR_STATE_UNSIGNED || row->kind == TR_STATE_HASH) {
            continue;
        }
        refuse(path, row,
               row->max < 1e300 ? nextafter(row->max, INFINITY) + 1 : INFINITY);
        if (by_name || row->kind == TR_STATE_REAL) {
            refuse(path, row, NAN);
            refuse(path, row, row->min > -1e300 ? row->min - 1 : -INFINITY);
            refuse(path, row, -INFINITY);
        }
        if (by_name && row->kind == TR_STATE_INTEGER && row->max > 1) {
            refuse(path, row, 0.5);
            refuse(path, row, 9e30);
        }
        if (by_name) {
            state = usual();
            put(&state, row, row->max);
            test_ok(read_state(path, &state, &err), &err);
        }
    }
    state = usual();
    state.beta_power[0][1] = NAN;
    test_fails(read_state(path, &state, &err), &err, TR_IO, "beta_powers");
    state = usual();
    state.update = state.step + 1;
    err = (tr_error){0};
    test_fails(read_state(path, &state, &err), &err, TR_IO, "'update'");
}

// What lies between and behind the fields has no part in it.
static void manifests_compare_by_fields(void **state) {
    tr_manifest a, b;
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0xff, sizeof b);
    a.count = b.count = 1;
    strcpy(a.file[0].name, "model.safetensors");
    strcpy(b.file[0].name, "model.safetensors");
    a.file[0].bytes = b.file[0].bytes = 7;
    a.file[0].hash = b.file[0].hash = 9;
    assert_true(tr__manifest_same(&a, &b));
    b.file[0].hash = 10;
    assert_false(tr__manifest_same(&a, &b));
    b.file[0].hash = 9;
    b.file[0].bytes = 8;
    assert_false(tr__manifest_same(&a, &b));
    b.file[0].bytes = 7;
    b.file[0].name[0] = 'M';
    assert_false(tr__manifest_same(&a, &b));
    b.count = 0;
    assert_false(tr__manifest_same(&a, &b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(changed_bytes),
        cmocka_unit_test(other_content),
        cmocka_unit_test(limits),
        cmocka_unit_test(manifests_compare_by_fields),
        cmocka_unit_test_setup_teardown(bounds, test_folder_make, test_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
