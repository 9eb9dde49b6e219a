#include "data/encoder/span_pairs.h"

#include "data/encoder/masking.h"
#include "data/encoder/text_list.h"
#include "data/sources/dataset.h"
#include "data/sources/formats.h"

#include "base/batch.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

// The draws of a sample.
enum { SPLIT, FOLLOWS, DOCUMENT, START, DRAWS };

typedef struct span_pairs {
    tr_text_list list;    // whole documents; the types of their tokens are roles
    tr_pair_frame frame;  // what stands around two spans
    int64_t *window;      // [documents + 1] the sample that each document begins with
    int64_t length, room; // tokens of a row, and of those both spans
    int64_t left;         // documents' ends of one token, which cannot be cut in two
    tr_masker masker;
} span_pairs;

// Tokens [first, first + count) of the list.
typedef struct span {
    int64_t first, count;
} span;

// ---- drawing

static int64_t length_of(const span_pairs *p, int64_t document) {
    return p->list.first[document + 1] - p->list.first[document];
}

static int64_t document_of(const span_pairs *p, int64_t sample) {
    int64_t low = 0, high = p->list.count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(p->window[middle] <= sample ? &low : &high) = middle;
    }
    return low;
}

static void draw(const span_pairs *p, int64_t epoch, int64_t sample,
                 uint32_t out[DRAWS]) {
    const uint64_t numbers[] = {p->masker.seed, (uint64_t)epoch};
    uint64_t key = tr__hash_more(tr__hash_text("data.spans"), numbers, sizeof numbers);
    const uint32_t counter[] = {(uint32_t)sample, (uint32_t)(sample >> 32), 0, 0};
    const uint32_t keys[] = {(uint32_t)key, (uint32_t)(key >> 32)};
    tr__philox(counter, keys, TR_PHILOX_ROUNDS, out);
}

// In [0, bound).
static int64_t below(uint32_t drawn, int64_t bound) {
    return (int64_t)((uint64_t)drawn * (uint64_t)bound >> 32);
}

// `most` tokens of another document than `own`, or all, where it has no more.
static span other_span(const span_pairs *p, int64_t own, int64_t most,
                       const uint32_t draws[DRAWS]) {
    int64_t document = below(draws[DOCUMENT], p->list.count - 1);
    document += document >= own;
    int64_t length = length_of(p, document), count = tr__min_i64(most, length);
    int64_t start = below(draws[START], length - count + 1);
    return (span){p->list.first[document] + start, count};
}

// The two spans of a sample. Returns whether the second is of another document.
static bool spans_of(const span_pairs *p, int64_t epoch, int64_t sample, span out[2]) {
    uint32_t draws[DRAWS];
    draw(p, epoch, sample, draws);
    int64_t document = document_of(p, sample);
    int64_t at = (sample - p->window[document]) * p->room;
    int64_t count = tr__min_i64(p->room, length_of(p, document) - at);
    int64_t first = p->list.first[document] + at;
    int64_t cut = 1 + below(draws[SPLIT], count - 1);
    bool other = draws[FOLLOWS] >> 31;
    out[0] = (span){first, cut};
    out[1] = other ? other_span(p, document, count - cut, draws)
                   : (span){first + cut, count - cut};
    return other;
}

// ---- reading

typedef struct row_places {
    int32_t *ids, *types, *places, *roles, *follows;
} row_places;

static int64_t put_frame(const span_pairs *p, int64_t from, int64_t to, int64_t at,
                         const row_places *row) {
    for (int64_t i = from; i < to; i++, at++) {
        row->ids[at] = p->frame.ids.id[i];
        row->types[at] = p->frame.types.id[i];
        row->roles[at] = TR_MASK_NEVER;
    }
    return at;
}

// A word that the span begins within begins with it.
static int64_t put_span(const span_pairs *p, span s, int32_t type, int64_t at,
                        const row_places *row) {
    for (int64_t i = 0; i < s.count; i++, at++) {
        row->ids[at] = p->list.ids.id[s.first + i];
        row->types[at] = type;
        row->roles[at] = i > 0 ? p->list.type[s.first + i] : TR_MASK_BEGINS;
    }
    return at;
}

static void read_row(const span_pairs *p, int64_t epoch, int64_t sample,
                     const row_places *row) {
    const tr_pair_part *part = p->frame.part;
    int64_t first = (int64_t)part[0].place, second = (int64_t)part[1].place;
    span s[2];
    *row->follows = spans_of(p, epoch, sample, s); // 1: it does not, as transformers'
    int64_t at = put_frame(p, 0, first, 0, row);
    at = put_span(p, s[0], part[0].type, at, row);
    at = put_frame(p, first, second, at, row);
    at = put_span(p, s[1], part[1].type, at, row);
    at = put_frame(p, second, (int64_t)p->frame.ids.count, at, row);
    for (int64_t i = 0; i < p->length; i++) {
        row->places[i] = i < at ? (int32_t)i : 0; // padding: each a text of its own
        row->ids[i] = i < at ? row->ids[i] : 0;
        row->types[i] = i < at ? row->types[i] : 0;
        row->roles[i] = i < at ? row->roles[i] : TR_MASK_NEVER;
    }
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const span_pairs *p = user;
    int64_t all = p->window[p->list.count];
    (void)err;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i * p->length, sample = index[i] % all, epoch = index[i] / all;
        const row_places row = {(int32_t *)rows[0] + at, (int32_t *)rows[1] + at,
                                (int32_t *)rows[2] + at, (int32_t *)rows[3] + at,
                                (int32_t *)rows[4] + i};
        read_row(p, epoch, sample, &row);
        tr__mask_row(&p->masker, epoch, sample, p->length, row.ids, row.roles);
        ((float *)rows[5])[i] = 1; // as long as nobody knows the step
    }
    return TR_OK;
}

static void destroy(void *user) {
    span_pairs *p = user;
    tr__text_list_release(&p->list);
    tr_token_ids_release(&p->frame.ids);
    tr_token_ids_release(&p->frame.types);
    tr__free(p->window);
    tr__free(p);
}

// ---- opening

static tr_status check(const span_pairs *p, const tr_data_options *options,
                       const char *key, tr_error *err) {
    if (p->list.count < 2) {
        return tr_fail(err, TR_DATA,
                       "%s: has %lld document%s with text, and mlm.next_sentence takes "
                       "half of the second spans from another document: give more "
                       "files, or data.document_separator",
                       key, (long long)p->list.count, tr__plural(p->list.count));
    }
    if (p->room < 2) {
        return tr_fail(err, TR_DATA,
                       "data.max_length is %lld, and the tokenizer puts %zu tokens "
                       "around two texts, each of at least one: raise it",
                       (long long)p->length, p->frame.ids.count);
    }
    if (p->frame.part[1].type >= options->token_types) {
        return tr_fail(err, TR_DATA,
                       "mlm.next_sentence: the second span is of type %d, and the "
                       "model has %lld type%s of tokens (type_vocab_size)",
                       (int)p->frame.part[1].type, (long long)options->token_types,
                       tr__plural(options->token_types));
    }
    return TR_OK;
}

static tr_status cut_windows(span_pairs *p, const char *key, tr_error *err) {
    p->window = tr__calloc((size_t)p->list.count + 1, sizeof *p->window);
    if (!p->window) {
        return tr_fail(err, TR_MEMORY, "no memory for pairs of spans");
    }
    for (int64_t d = 0; d < p->list.count; d++) {
        int64_t length = length_of(p, d), rest = length % p->room;
        p->window[d + 1] = p->window[d] + length / p->room + (rest > 1);
        p->left += rest == 1;
    }
    return p->window[p->list.count] > 0
               ? TR_OK
               : tr_fail(err, TR_DATA,
                         "%s: each document has one token alone, and two spans need "
                         "two",
                         key);
}

static void say(const span_pairs *p, const tr_data_options *options, const char *key) {
    const int64_t rows = p->window[p->list.count];
    double all = (double)rows * (double)p->length;
    int64_t used =
        (int64_t)p->list.ids.count - p->left + rows * (int64_t)p->frame.ids.count;
    tr__data_say(
        options,
        "%s: %lld documents in %lld pair%s of spans, %lld tokens a row; %.1f%% "
        "of them are padding, where the second span follows the first",
        key, (long long)p->list.count, (long long)rows, tr__plural(rows),
        (long long)p->length, 100 * (1 - (double)used / all));
    if (p->left > 0) {
        tr__data_say(options,
                     "%s: %lld document%s a last token that fills no row: too few for "
                     "two spans, %s left out",
                     key, (long long)p->left, p->left == 1 ? " has" : "s have",
                     p->left == 1 ? "it is" : "they are");
    }
}

static tr_status read_pairs(span_pairs *p, const tr_data_options *options,
                            const tr_text_tokenizer *by, const tr_joined *files,
                            const char *key, tr_error *err) {
    tr_text_reading reading = {
        .options = options, .by = by, .files = files, .pairs = &p->frame};
    tr_status status = tr__text_list_read(&reading, &p->list, err);
    p->length = options->sequence_length;
    p->room = p->length - (int64_t)p->frame.ids.count;
    status = status == TR_OK ? check(p, options, key, err) : status;
    status = status == TR_OK ? cut_windows(p, key, err) : status;
    status = status == TR_OK ? tr__masker_begin(options, by, &p->masker, err) : status;
    if (status == TR_OK) {
        say(p, options, key);
    }
    return status;
}

static tr_status wrap(span_pairs *p, const tr_data_options *options,
                      const tr_joined *files, uint64_t hash, tr_dataset **out,
                      tr_error *err) {
    char about[256];
    int64_t rows = p->window[p->list.count];
    snprintf(about, sizeof about, "%zu file%s, %lld pair%s of spans of %lld documents",
             files->files.count, tr__plural((int64_t)files->files.count),
             (long long)rows, tr__plural(rows), (long long)p->list.count);
    const tr_dataset_source source = {
        .about = about,
        .samples = rows,
        .tensors = tr__batch_masked_pairs(p->length),
        .vocabulary = options->vocabulary,
        .classes = options->vocabulary,
        .hash = hash,
        .bytes = (int64_t)sizeof *p + tr__text_list_bytes(&p->list) +
                 (p->list.count + 1) * (int64_t)sizeof *p->window,
        .read = read_rows,
        .destroy = destroy,
        .user = p,
    };
    tr_status status = tr__dataset_create(&source, out, err); // destroys it on failure
    if (status == TR_OK) {
        tr__dataset_mark_epochs(*out);
        tr__dataset_mark_weights(*out);
    }
    return status;
}

tr_status tr__span_pairs_open(const tr_data_options *options,
                              const tr_text_tokenizer *by, const tr_joined *files,
                              const char *key, uint64_t hash, tr_dataset **out,
                              tr_error *err) {
    span_pairs *p = tr__calloc(1, sizeof *p);
    if (!p) {
        return tr_fail(err, TR_MEMORY, "no memory for pairs of spans");
    }
    tr_status status = read_pairs(p, options, by, files, key, err);
    if (status != TR_OK) {
        destroy(p);
        return status;
    }
    return wrap(p, options, files, hash, out, err);
}
