// tranche evaluate on pairs of texts: where each anchor's positive comes among all
// candidates, as the embeddings say that it writes.
#include "command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 128, WIDTH = 28, GROUPS = 700, TEXTS = 3 };

static const char bert[] = TR_TEST_DATA "/encoders/bert";

static const char *const words[] = {"the", "river", "was",  "low",  "boats", "wait",
                                    "for", "tide",  "late", "rain", "fell",  "day"};
enum { WORDS = sizeof words / sizeof *words };

// Texts of a few words, so that some are equal.
static void write_groups(void **state, const char *third) {
    const char *const fields[TEXTS] = {"anchor", "positive", third};
    uint32_t draw = 1;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    for (int g = 0; g < GROUPS; g++) {
        for (int k = 0; k < TEXTS; k++) {
            fprintf(to, "%s\"%s\": \"", k ? ", " : "{", fields[k]);
            for (int w = 0; w < 4; w++) {
                draw = draw * 1664525 + 1013904223;
                fprintf(to, "%s%s", w ? " " : "", words[(draw >> 16) % WORDS]);
            }
            fprintf(to, "\"");
        }
        fprintf(to, "}\n");
    }
    fclose(to);
    file_text(state, "pairs.jsonl", text);
    free(text);
}

static json_t *evaluate(void **state) {
    char *said =
        succeed(state, LIST("evaluate", bert, "--data", "pairs.jsonl", "--json",
                            "--format", "jsonl", "--embeddings", "e.npy"));
    json_t *json = json_loads(said, 0, NULL);
    assert_non_null(json);
    free(said);
    return json;
}

static double product(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

// The place of group g's positive among the candidates of all groups.
static int place_of(const float *rows, int g, int texts) {
    const float *anchor = rows + (size_t)g * texts * WIDTH;
    double own = product(anchor, anchor + WIDTH);
    int place = 1;
    for (int c = 0; c < GROUPS * texts; c++) {
        place += c % texts > 0 && product(anchor, rows + (size_t)c * WIDTH) > own;
    }
    return place;
}

static double said(const json_t *json, const char *name) {
    const json_t *value = json_object_get(json, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void check(void **state, const char *third, int texts) {
    double first = 0, ten = 0, inverse = 0;
    size_t bytes = 0;
    write_groups(state, third);
    json_t *json = evaluate(state);
    char *file = file_read(state, "e.npy", &bytes);
    assert_int_equal(bytes, HEADER + GROUPS * texts * WIDTH * (int)sizeof(float));
    float *rows = malloc(bytes - HEADER);
    assert_non_null(rows);
    memcpy(rows, file + HEADER, bytes - HEADER);
    for (int g = 0; g < GROUPS; g++) {
        int place = place_of(rows, g, texts);
        first += place <= 1;
        ten += place <= 10;
        inverse += 1.0 / place;
    }
    // Products in f32 may lie in another order where they are next to each other.
    assert_true(fabs(said(json, "recall_at_1") - first / GROUPS) < 2.5 / GROUPS);
    assert_true(fabs(said(json, "recall_at_10") - ten / GROUPS) < 2.5 / GROUPS);
    assert_true(fabs(said(json, "mrr") - inverse / GROUPS) < 2.0 / GROUPS);
    assert_true(ten > 0 && ten < GROUPS && inverse > first);
    free(rows);
    free(file);
    json_decref(json);
}

static void test_pairs(void **state) {
    check(state, "unread", 2);
}

static void test_negatives_are_candidates(void **state) {
    check(state, "negative", 3);
}

static void test_texts_alone(void **state) {
    file_text(state, "pairs.jsonl", "{\"text\": \"the river\"}\n{\"text\": \"low\"}\n");
    json_t *json = evaluate(state);
    assert_true(json_is_null(json_object_get(json, "recall_at_1")));
    assert_true(json_is_null(json_object_get(json, "mrr")));
    json_decref(json);
    char *text = succeed(
        state, LIST("evaluate", bert, "--data", "pairs.jsonl", "--format", "jsonl"));
    assert_null(strstr(text, "recall"));
    free(text);
}

// Records of groups that lack a text are an error, as in training.
static void test_lacking(void **state) {
    file_text(state, "pairs.jsonl",
              "{\"anchor\": \"a\", \"positive\": \"b\"}\n{\"anchor\": \"a\"}\n");
    fail_with(state, NULL,
              LIST("evaluate", bert, "--data", "pairs.jsonl", "--format", "jsonl"), 4,
              LIST("pairs.jsonl:2", "positive"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_pairs),
        TEST(test_negatives_are_candidates),
        TEST(test_texts_alone),
        TEST(test_lacking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
