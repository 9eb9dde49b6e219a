// Documents that share samples: which go together, what a sample then holds, and the
// samples of a text.
#include "data/scratch.h"
#include "data/text/pack.h"

#include "base/memory.h"
#include "base/rng.h"

#include <tranche/data.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKENIZER TR_TEST_DATA "/tokenizers/gpt2.json"

enum { EOS = 0, ROOM_MAX = 200, COUNT_MAX = 400 }; // <|end|>

static int own_cache(void **state) {
    char folder[SCRATCH_PATH_MAX];
    if (scratch_make(state) != 0) {
        return 1;
    }
    return setenv("XDG_CACHE_HOME", scratch_path(folder, state, ".cache"), 1);
}

// ---- which go together

// Best fit decreasing as its definition has it: how many rows it comes to.
static int64_t rows_by_definition(const int32_t *length, int64_t count, int64_t room) {
    int64_t left[COUNT_MAX], rows = 0;
    for (int64_t size = room; size > 0; size--) {
        for (int64_t d = 0; d < count; d++) {
            int64_t best = -1;
            if (length[d] != size) {
                continue;
            }
            for (int64_t r = 0; r < rows; r++) {
                bool better = best < 0 || left[r] < left[best];
                best = left[r] >= size && better ? r : best;
            }
            if (best < 0) {
                best = rows++;
                left[best] = room;
            }
            left[best] -= size;
        }
    }
    return rows;
}

static void check_packing(const int32_t *length, int64_t count, int64_t room) {
    tr_packing p;
    bool seen[COUNT_MAX] = {false};
    int64_t before = -1;
    assert_int_equal(tr__pack(length, count, room, &p, NULL), TR_OK);
    assert_int_equal(p.first[0], 0);
    assert_int_equal(p.first[p.rows], count);
    for (int64_t row = 0; row < p.rows; row++) {
        int64_t sum = 0, last = -1;
        assert_true(p.document[p.first[row]] > before); // in the order of their firsts
        before = p.document[p.first[row]];
        for (int64_t i = p.first[row]; i < p.first[row + 1]; i++) {
            int64_t d = p.document[i];
            assert_true(d > last && !seen[d]);
            last = d;
            seen[d] = true;
            sum += length[d];
        }
        assert_in_range(sum, 1, room);
    }
    assert_int_equal(p.rows, rows_by_definition(length, count, room));
    tr__packing_free(&p);
}

static void documents_are_packed_best_fit_decreasing(void **state) {
    (void)state;
    int32_t length[COUNT_MAX];
    for (uint64_t n = 0; n < 60; n++) {
        int64_t room = 1 + (int64_t)tr__draw_below(ROOM_MAX, n, 1, 1);
        int64_t count = 1 + (int64_t)tr__draw_below(COUNT_MAX - 1, n, 1, 2);
        for (int64_t d = 0; d < count; d++) {
            uint64_t most = (uint64_t)(n % 2 ? room : (room + 3) / 4);
            length[d] = 1 + (int32_t)tr__draw_below(most, (uint64_t)d, n, 3);
        }
        check_packing(length, count, room);
    }
    const int32_t known[] = {4, 8, 1, 4, 2, 1}; // 8+2, 4+4+1+1
    tr_packing p;
    assert_int_equal(tr__pack(known, 6, 10, &p, NULL), TR_OK);
    assert_int_equal(p.rows, 2);
    const int64_t wanted[] = {0, 2, 3, 5, 1, 4};
    assert_memory_equal(p.document, wanted, sizeof wanted);
    tr__packing_free(&p);
}

// As long as conversations are: the logarithms are nearly normal, with a median of 150
// tokens. What is longer than a row is cut.
static int32_t draw_conversation(uint64_t number, int64_t room) {
    double normal = -6;
    for (uint64_t i = 0; i < 12; i++) {
        normal += (double)tr__draw_below(1000, number, i, 7) / 1000;
    }
    double tokens = 150 * exp(0.9 * normal);
    return tokens < (double)room ? 1 + (int32_t)tokens : (int32_t)room;
}

static void conversations_leave_little_padding(void **state) {
    enum { CONVERSATIONS = 1000 };
    static const int64_t rooms[] = {512, 1024, 2048};
    (void)state;
    for (int r = 0; r < 3; r++) {
        int32_t length[CONVERSATIONS];
        int64_t tokens = 0;
        tr_packing p;
        for (uint64_t d = 0; d < CONVERSATIONS; d++) {
            length[d] = draw_conversation(d, rooms[r]);
            tokens += length[d];
        }
        assert_int_equal(tr__pack(length, CONVERSATIONS, rooms[r], &p, NULL), TR_OK);
        assert_true((double)tokens > 0.95 * (double)(p.rows * rooms[r]));
        tr__packing_free(&p);
    }
}

static void memory_that_fails_is_said(void **state) {
    (void)state;
    const int32_t length[] = {3, 2, 1};
    tr_packing p;
    for (int64_t nth = 1; nth <= 8; nth++) {
        tr__memory_fail_at(nth);
        assert_int_equal(tr__pack(length, 3, 4, &p, NULL), TR_MEMORY);
        assert_null(p.document);
    }
    tr__memory_fail_at(0);
}

// ---- the samples of a text

static const char *const texts[] = {
    "the men said that it was so",
    "one",
    "two and two",
    "",
    "they were the first of all the people that came to the town that day, and no one",
    "it is"};
enum { TEXTS = 6, LENGTH = 24 };

static tr_data_options text_options(const char *const *paths, size_t count) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "text",
                             .paths = paths,
                             .path_count = count,
                             .sequence_length = LENGTH,
                             .tokenizer = TOKENIZER,
                             .packing = true,
                             .eos_token = "<|end|>"};
}

static const char *write_texts(void **state, char path[SCRATCH_PATH_MAX]) {
    char all[1024] = "";
    for (int i = 0; i < TEXTS; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "====" : "",
                 texts[i]);
    }
    return scratch_text(path, state, "texts", all);
}

// The ids of a text, and the token that ends it, as far as a sample has room.
static int64_t ids_of(const tr_tokenizer *tokenizer, const char *text,
                      int32_t ids[LENGTH]) {
    tr_token_ids all = {0};
    assert_int_equal(
        tr_tokenizer_encode(tokenizer, text, strlen(text), NULL, 1, &all, NULL), 0);
    int64_t count = (int64_t)all.count < LENGTH ? (int64_t)all.count : LENGTH;
    memcpy(ids, all.id, (size_t)count * sizeof *ids);
    if (count < LENGTH) {
        ids[count++] = EOS;
    }
    tr_token_ids_release(&all);
    return count;
}

typedef struct sample {
    int32_t ids[LENGTH], labels[LENGTH], places[LENGTH];
} sample;

static void read_sample(tr_dataset *data, int64_t index, sample *s) {
    void *rows[] = {s->ids, s->labels, s->places};
    tr_error err = {0};
    assert_int_equal(tr_dataset_read(data, &index, 1, rows, &err), TR_OK);
}

// The document that begins at `at`: its place in `texts`, -1: padding.
static int check_document(const tr_tokenizer *tokenizer, const sample *s, int at,
                          int64_t *count) {
    for (int t = 0; t < TEXTS; t++) {
        int32_t ids[LENGTH];
        *count = texts[t][0] ? ids_of(tokenizer, texts[t], ids) : LENGTH + 1;
        if (at + *count <= LENGTH &&
            memcmp(s->ids + at, ids, (size_t)*count * sizeof *ids) == 0) {
            for (int64_t i = 0; i < *count; i++) {
                assert_int_equal(s->places[at + i], i);
                assert_int_equal(s->labels[at + i],
                                 i + 1 < *count ? ids[i + 1] : TR_NO_TARGET);
            }
            return t;
        }
    }
    *count = 1;
    assert_int_equal(s->ids[at], EOS);
    assert_int_equal(s->labels[at], TR_NO_TARGET);
    assert_int_equal(s->places[at], 0);
    return -1;
}

static void every_document_is_whole_and_there_once(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {write_texts(state, path)};
    tr_data_options options = text_options(paths, 1);
    options.document_separator = "====";
    tr_dataset *data = scratch_open(&options);
    tr_tokenizer *tokenizer = NULL;
    assert_int_equal(tr_tokenizer_load(TOKENIZER, &tokenizer, NULL), TR_OK);
    int seen[TEXTS] = {0};
    assert_int_equal(tr_dataset_tensors(data)->count, 3);
    for (int64_t i = 0; i < tr_dataset_samples(data); i++) {
        sample s;
        int64_t count = 0;
        read_sample(data, i, &s);
        for (int at = 0; at < LENGTH; at += (int)count) {
            int t = check_document(tokenizer, &s, at, &count);
            if (t >= 0) {
                seen[t]++;
            }
        }
    }
    for (int t = 0; t < TEXTS; t++) {
        assert_int_equal(seen[t], texts[t][0] != '\0');
    }
    assert_non_null(strstr(tr_dataset_about(data), "packed into"));
    tr_tokenizer_destroy(tokenizer);
    tr_dataset_destroy(data);
}

// user: [1024]
static void keep_line(void *user, const char *line) {
    char *lines = user;
    size_t at = strlen(lines);
    snprintf(lines + at, 1024 - at, "%s\n", line);
}

static void what_packing_came_to_is_said(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {write_texts(state, path)};
    tr_data_options options = text_options(paths, 1);
    char lines[1024] = "";
    options.document_separator = "====";
    options.say = keep_line;
    options.say_user = lines;
    tr_dataset *data = scratch_open(&options);
    assert_non_null(strstr(lines, "5 documents packed into"));
    assert_non_null(strstr(lines, "% of them are padding"));
    assert_non_null(strstr(lines, "1 document of more than 24 tokens is cut"));
    tr_dataset_destroy(data);
}

// A half that is set aside has rows of its own, drawn over all of them.
static void a_split_deals_out_rows(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {write_texts(state, path)};
    tr_data_options options = text_options(paths, 1);
    tr_dataset *train = NULL, *validation = NULL;
    tr_error err = {0};
    options.document_separator = "====";
    tr_dataset *whole = scratch_open(&options);
    options.validation_fraction = 0.4;
    assert_int_equal(tr_dataset_open(&options, &train, &validation, &err), TR_OK);
    assert_int_equal(tr_dataset_samples(train) + tr_dataset_samples(validation),
                     tr_dataset_samples(whole));
    sample a, b;
    read_sample(validation, 0, &a);
    bool found = false;
    for (int64_t i = 0; i < tr_dataset_samples(whole); i++) {
        read_sample(whole, i, &b);
        found = found || memcmp(&a, &b, sizeof a) == 0;
    }
    assert_true(found);
    tr_dataset_destroy(train);
    tr_dataset_destroy(validation);
    tr_dataset_destroy(whole);
}

static void what_cannot_be_packed_is_refused(void **state) {
    char path[SCRATCH_PATH_MAX];
    const char *paths[] = {scratch_text(path, state, "short", "")};
    tr_data_options options = text_options(paths, 1);
    const char *ids[] = {scratch_text(path, state, "bytes", "some bytes to read here")};
    tr_data_options bytes = {.size = sizeof(tr_data_options),
                             .format = "bytes",
                             .paths = ids,
                             .path_count = 1,
                             .sequence_length = 4,
                             .packing = true};
    scratch_refuse(&bytes, TR_USAGE, "data.packing: has no meaning for format bytes");
    options.paths = ids;
    options.eos_token = NULL; // and the tokenizer's folder names none
    scratch_refuse(&options, TR_DATA, "data.packing:");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_packed_best_fit_decreasing),
        cmocka_unit_test(conversations_leave_little_padding),
        cmocka_unit_test(memory_that_fails_is_said),
        cmocka_unit_test_setup_teardown(every_document_is_whole_and_there_once,
                                        own_cache, scratch_remove),
        cmocka_unit_test_setup_teardown(what_packing_came_to_is_said, own_cache,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_split_deals_out_rows, own_cache,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_packed_is_refused, own_cache,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
