// Pairs of spans: what follows what, of what the draws are a function, and what the
// second loss weighs.
#include "data/order/feed.h"
#include "data/scratch.h"

#include "base/batch.h"
#include "base/rng.h"
#include "data/sources/dataset.h"

#include <tranche/data.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKENIZER TR_TEST_DATA "/encoders/bert/tokenizer.json"

enum { LENGTH = 16, ROOM = LENGTH - 3, DOCUMENTS = 12, MOST = 40, EPOCHS = 400 };

typedef struct sample {
    int32_t ids[LENGTH], types[LENGTH], places[LENGTH], labels[LENGTH], follows;
    float weight;
} sample;

typedef struct document {
    int32_t id[MOST];
    int64_t count;
} document;

static document documents[DOCUMENTS];

// Documents of 1 to MOST words, each one token, and their ids.
static const char *write_documents(char *path, void **state) {
    static const char *const words[] = {"the", "river", "was", "low", "and", "boats",
                                        "lay", "on",    "men", "who", "for", "tide"};
    char text[DOCUMENTS * MOST * 8] = "";
    tr_error err = {0};
    tr_tokenizer *tokenizer = NULL;
    tr_encoder *encoder = NULL;
    assert_int_equal(tr_tokenizer_load(TOKENIZER, &tokenizer, &err), TR_OK);
    assert_int_equal(tr_encoder_create(tokenizer, &encoder, &err), TR_OK);
    for (int d = 0; d < DOCUMENTS; d++) {
        char *begin = text + strlen(text);
        int count = 1 + (d * 7) % MOST;
        for (int i = 0; i < count; i++) {
            int word = (int)tr__draw_below(12, (uint64_t)d * MOST + (uint64_t)i, 1, 2);
            sprintf(begin + strlen(begin), "%s%s", i ? " " : "", words[word]);
        }
        tr_text_pair whole = TR_TEXT_PAIR_INIT;
        tr_token_ids ids = {0}, types = {0};
        whole.first = begin;
        whole.first_bytes = strlen(begin);
        assert_int_equal(
            tr_encoder_encode_pair(encoder, &whole, &ids, &types, NULL, &err), TR_OK);
        assert_int_equal(ids.count, count + 2);
        documents[d].count = count;
        memcpy(documents[d].id, ids.id + 1, (size_t)count * sizeof *ids.id);
        tr_token_ids_release(&ids);
        tr_token_ids_release(&types);
        strcat(text, "\n");
    }
    tr_encoder_destroy(encoder);
    tr_tokenizer_destroy(tokenizer);
    return scratch_text(path, state, "documents.txt", text);
}

static tr_data_options options_of(const char *const *path, double probability) {
    return (tr_data_options){.size = sizeof(tr_data_options),
                             .format = "text",
                             .paths = path,
                             .path_count = 1,
                             .tokenizer = TOKENIZER,
                             .document_separator = "\n",
                             .sequence_length = LENGTH,
                             .token_types = 2,
                             .masked = true,
                             .masking = {.probability = probability,
                                         .mask = 0.8,
                                         .random = 0.1,
                                         .next_sentence = true},
                             .seed = 3};
}

static sample read_sample(tr_dataset *data, int64_t index) {
    sample s;
    void *const rows[] = {s.ids, s.types, s.places, s.labels, &s.follows, &s.weight};
    assert_int_equal(tr_dataset_read(data, &index, 1, rows, NULL), TR_OK);
    return s;
}

static bool holds(const document *d, const int32_t *id, int64_t count) {
    bool found = false;
    for (int64_t at = 0; at + count <= d->count && !found; at++) {
        found = memcmp(d->id + at, id, (size_t)count * sizeof *id) == 0;
    }
    return found;
}

// A window of document `own` that begins at token `at`, of which nothing is masked.
static void check_sample(const sample *s, int own, int64_t at) {
    const document *d = &documents[own];
    int64_t count = d->count - at < ROOM ? d->count - at : ROOM, first = 0;
    while (s->types[first + 2] == 0) { // behind [CLS] and before [SEP]
        first++;
    }
    assert_in_range(first, 1, count - 1);
    assert_memory_equal(s->ids + 1, d->id + at, (size_t)first * sizeof *s->ids);
    int64_t second = 0, from = first + 2;
    while (from + second < LENGTH && s->types[from + second] == 1) {
        second++;
    }
    second--; // the last [SEP]
    assert_int_equal(s->ids[first + 1], s->ids[from + second]);
    assert_int_equal(s->places[from + second], from + second);
    if (s->follows == 0) {
        assert_int_equal(second, count - first);
        assert_memory_equal(s->ids + from, d->id + at + first,
                            (size_t)second * sizeof *s->ids);
        return;
    }
    bool other = false;
    for (int k = 0; k < DOCUMENTS; k++) {
        other = other || (k != own && holds(&documents[k], s->ids + from, second) &&
                          (second == count - first || second == documents[k].count));
    }
    assert_int_equal(s->follows, 1);
    assert_true(other);
}

static void spans_are_of_documents(void **state) {
    char file[SCRATCH_PATH_MAX];
    const char *path = write_documents(file, state);
    const tr_data_options options = options_of(&path, 0);
    tr_dataset *data = scratch_open(&options);
    int64_t all = tr_dataset_samples(data), strangers = 0, at[2] = {0};
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t row = epoch * all;
        for (int d = 0; d < DOCUMENTS; d++) {
            for (at[0] = 0; documents[d].count - at[0] > 1; at[0] += ROOM, row++) {
                sample s = read_sample(data, row);
                check_sample(&s, d, at[0]);
                strangers += s.follows;
            }
        }
        assert_int_equal(row, (epoch + 1) * all); // ends of one token are left out
    }
    double count = (double)(all * EPOCHS);
    assert_true(fabs((double)strangers - count / 2) <= 3 * sqrt(count / 4));
    tr_dataset_destroy(data);
}

static bool same(const sample *a, const sample *b) {
    return memcmp(a->ids, b->ids, sizeof a->ids) == 0 &&
           memcmp(a->types, b->types, sizeof a->types) == 0 &&
           memcmp(a->labels, b->labels, sizeof a->labels) == 0 &&
           a->follows == b->follows;
}

// Another opening has the same pairs; another epoch, and another seed, have others.
static void pairs_are_a_function(void **state) {
    char file[SCRATCH_PATH_MAX];
    const char *path = write_documents(file, state);
    tr_data_options options = options_of(&path, 0.15);
    tr_dataset *data = scratch_open(&options), *again = scratch_open(&options);
    options.seed++;
    tr_dataset *other = scratch_open(&options);
    int64_t all = tr_dataset_samples(data), epochs = 0, seeds = 0;
    for (int64_t i = 0; i < all; i++) {
        sample s = read_sample(data, i), t = read_sample(again, i);
        assert_true(same(&s, &t));
        t = read_sample(data, all + i);
        epochs += !same(&s, &t);
        t = read_sample(other, i);
        seeds += !same(&s, &t);
    }
    assert_true(epochs > all / 2 && seeds > all / 2);
    assert_true(tr_dataset_hash(data) == tr_dataset_hash(again));
    assert_true(tr_dataset_hash(data) != tr_dataset_hash(other));
    tr_dataset_destroy(data);
    tr_dataset_destroy(again);
    tr_dataset_destroy(other);
}

// ---- what the second loss weighs

static int64_t targets_in(const sample *s) {
    int64_t count = 0;
    for (int i = 0; i < LENGTH; i++) {
        count += s->labels[i] >= 0;
    }
    return count;
}

// Steps of `batch` samples, of which this feed has one micro-batch of `m` each. Each
// row weighs the targets of its whole step, divided by the step's samples.
static void check_weights(tr_dataset *data, int64_t batch, int64_t m, int64_t first,
                          bool whole) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(data);
    int64_t slot = tr__batch_offset(tensors, m, tensors->count);
    int64_t all = tr_dataset_samples(data);
    void *memory = aligned_alloc(TR_SLOT_ALIGNMENT, (size_t)slot);
    tr_feed_options options = {.dataset = data,
                               .order = {.samples = all, .shuffled = true, .seed = 9},
                               .batcher = {.samples = all, .batch = batch},
                               .steps = 5,
                               .micro_batch = m,
                               .first_micro = first,
                               .micros = 1,
                               .weigh_whole = whole,
                               .slots = 1,
                               .memory = memory};
    tr_feed *feed = NULL;
    tr_feed_micro micro;
    assert_int_equal(tr__feed_create(&options, &feed, NULL), TR_OK);
    for (int step = 0; step < 5; step++) {
        assert_int_equal(tr__feed_acquire(feed, &micro, NULL), TR_OK);
        int64_t targets = 0, from = whole ? 0 : micro.batch.first;
        int64_t count = whole ? all : micro.batch.count;
        for (int64_t i = from; i < from + count; i++) {
            int64_t index = tr__order_sample(&options.order, i / all, i % all);
            sample s = read_sample(data, i / all * all + index);
            targets += targets_in(&s);
        }
        void *rows[TR_BATCH_TENSORS_MAX];
        tr__batch_rows(tensors, tensors, memory, m, 0, rows);
        const float *weight = rows[tr_batch_find(tensors, TR_LOSS_WEIGHTS)];
        for (int64_t i = 0; i < m; i++) {
            float expected = (float)((double)targets / (double)count);
            assert_true(i < micro.rows ? weight[i] == expected : isnan(weight[i]));
        }
        tr__feed_release(feed);
    }
    tr__feed_destroy(feed);
    free(memory);
}

static void pairs_weigh_what_tokens_do(void **state) {
    char file[SCRATCH_PATH_MAX];
    const char *path = write_documents(file, state);
    const tr_data_options options = options_of(&path, 0.3);
    tr_dataset *data = scratch_open(&options);
    int64_t all = tr_dataset_samples(data);
    assert_true(all % 8 > 2); // the last step of an epoch is short
    check_weights(data, 8, 2, 0, false);
    check_weights(data, 8, 2, 1, false); // another rank's
    check_weights(data, 8, 8, 0, false);
    check_weights(data, all, 4, 0, false);
    check_weights(data, 3, 3, 0, true);
    tr_dataset_destroy(data);
}

static void refusals(void **state) {
    char file[SCRATCH_PATH_MAX], one[SCRATCH_PATH_MAX];
    const char *path = write_documents(file, state);
    tr_data_options options = options_of(&path, 0.15);
    options.sequence_length = 4;
    scratch_refuse(&options, TR_DATA, "data.max_length is 4");
    options.sequence_length = LENGTH;
    options.token_types = 1;
    scratch_refuse(&options, TR_DATA, "type_vocab_size");
    options.token_types = 2;
    options.document_separator = NULL;
    scratch_refuse(&options, TR_DATA, "has 1 document");
    path = scratch_text(one, state, "one.txt", "men\nlow\n");
    options.document_separator = "\n";
    scratch_refuse(&options, TR_DATA, "one token alone");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(spans_are_of_documents),
        TEST(pairs_are_a_function),
        TEST(pairs_weigh_what_tokens_do),
        TEST(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
