#include "files/checkpoint/diff_state.h"

#include "base/memory.h"
#include "base/text.h"
#include "files/checkpoint/state_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Of the numbers by name, those that decide what the next step does. The others are
// what the planner has chosen and what was measured on the way: they depend on how the
// batch is cut, the weights do not.
static const char *const counted[] = {"batch",      "learned_samples",
                                      "optimizer",  "guard_rate",
                                      "guard_warm", "skipped_in_row"};

static bool counts(const tr_state_row *row) {
    bool found = row->offset != TR_STATE_BY_NAME;
    for (size_t i = 0; !found && i < sizeof counted / sizeof *counted; i++) {
        found = strcmp(counted[i], row->name) == 0;
    }
    return found;
}

// The value as text, "" where there is none. dst: [32]
static void print_value(const tr_state_row *row, const tr_state *state, char *dst) {
    const char *at = (const char *)state + row->offset;
    double value = 0;
    dst[0] = '\0';
    switch (row->kind) {
    case TR_STATE_UNSIGNED:
        snprintf(dst, 32, "%" PRIu64, *(const uint64_t *)at);
        return;
    case TR_STATE_HASH:
        snprintf(dst, 32, "%016" PRIx64, *(const uint64_t *)at);
        return;
    case TR_STATE_INTEGER:
        if (row->offset != TR_STATE_BY_NAME) {
            snprintf(dst, 32, "%" PRId64, *(const int64_t *)at);
            return;
        }
        break;
    case TR_STATE_REAL:
        break;
    }
    if (row->offset != TR_STATE_BY_NAME) {
        value = *(const double *)at;
    } else if (!tr__state_numbers_get(&state->numbers, row->name, &value)) {
        return;
    }
    tr__print_double(dst, value);
}

static void add(tr_diff *diff, const tr_diff_state *found) {
    if (strcmp(found->a, found->b) != 0) {
        diff->states[diff->state_count++] = *found;
        diff->identical = false;
    }
}

static void compare_betas(const tr_state *a, const tr_state *b, tr_diff *diff) {
    for (int64_t i = 0; i < 2 * TR_STATE_GROUPS_MAX; i++) {
        tr_diff_state found = {.key = ""};
        snprintf(found.key, sizeof found.key, "beta_powers[%" PRId64 "][%" PRId64 "]",
                 i / 2, i % 2);
        if (i / 2 < a->group_count) {
            tr__print_double(found.a, a->beta_power[i / 2][i % 2]);
        }
        if (i / 2 < b->group_count) {
            tr__print_double(found.b, b->beta_power[i / 2][i % 2]);
        }
        add(diff, &found);
    }
}

tr_status tr__diff_states(const char *path_a, const char *path_b, tr_diff *diff,
                          tr_error *err) {
    tr_state a, b;
    tr_manifest manifest;
    tr_status status = tr__state_read(path_a, &a, &manifest, err);
    if (status == TR_OK) {
        status = tr__state_read(path_b, &b, &manifest, err);
    }
    if (status != TR_OK) {
        return status;
    }
    diff->states =
        tr__calloc(tr__state_rows + 2 * TR_STATE_GROUPS_MAX, sizeof *diff->states);
    if (!diff->states) {
        return tr_fail(err, TR_MEMORY, "no memory to compare");
    }
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *row = &tr__state_table[i];
        tr_diff_state found = {.key = ""};
        if (counts(row)) {
            snprintf(found.key, sizeof found.key, "%s%s%s",
                     row->section ? row->section : "", row->section ? "." : "",
                     row->name);
            print_value(row, &a, found.a);
            print_value(row, &b, found.b);
            add(diff, &found);
        }
    }
    compare_betas(&a, &b, diff);
    return TR_OK;
}
