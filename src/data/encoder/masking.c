#include "data/encoder/masking.h"

#include "text/tokenizer/folder.h"

#include "base/hash.h"
#include "base/rng.h"

#include <string.h>

// Four draws of a position, each in [0, 2^32).
enum { CHOICE, FATE, TOKEN, DRAWS = 4 };

typedef struct drawing {
    uint32_t key[2];
    int64_t row;
} drawing;

static drawing begin(const tr_masker *m, int64_t epoch, int64_t row) {
    const uint64_t numbers[] = {m->seed, (uint64_t)epoch};
    uint64_t key = tr__hash_more(tr__hash_text("data.masks"), numbers, sizeof numbers);
    return (drawing){{(uint32_t)key, (uint32_t)(key >> 32)}, row};
}

static void draw(const drawing *d, int64_t position, uint32_t out[DRAWS]) {
    const uint32_t counter[] = {(uint32_t)position, (uint32_t)(position >> 32),
                                (uint32_t)d->row, (uint32_t)(d->row >> 32)};
    tr__philox(counter, d->key, TR_PHILOX_ROUNDS, out);
}

static double share(uint32_t drawn) {
    return (double)drawn * 0x1p-32;
}

// What stands in the place of a chosen token.
static int32_t replace(const tr_masker *m, int32_t id, const uint32_t draws[DRAWS]) {
    double fate = share(draws[FATE]);
    if (fate < m->how.mask) {
        return m->mask;
    }
    return fate < m->how.mask + m->how.random
               ? (int32_t)((uint64_t)draws[TOKEN] * (uint64_t)m->vocabulary >> 32)
               : id;
}

void tr__mask_row(const tr_masker *m, int64_t epoch, int64_t row, int64_t length,
                  int32_t *ids, int32_t *labels) {
    const drawing d = begin(m, epoch, row);
    bool chosen = false; // the word at hand
    for (int64_t i = 0; i < length; i++) {
        uint32_t draws[DRAWS];
        int32_t role = labels[i];
        labels[i] = TR_NO_TARGET;
        if (role == TR_MASK_NEVER) {
            chosen = false;
            continue;
        }
        draw(&d, i, draws);
        if (role == TR_MASK_BEGINS || !m->how.whole_words) {
            chosen = share(draws[CHOICE]) < m->how.probability;
        }
        if (chosen) {
            labels[i] = ids[i];
            ids[i] = replace(m, ids[i], draws);
        }
    }
}

tr_status tr__masker_begin(const tr_data_options *options, const tr_text_tokenizer *by,
                           tr_masker *out, tr_error *err) {
    *out = (tr_masker){.how = options->masking,
                       .vocabulary = tr_tokenizer_vocabulary(by->tokenizer),
                       .seed = options->seed};
    tr_status status = tr__tokenizer_mask(by->tokenizer, by->folder, &out->mask, err);
    return status == TR_OK && out->mask < 0
               ? tr_fail(err, TR_DATA,
                         "data.tokenizer: %s has no token that stands for a masked one "
                         "(mask_token of tokenizer_config.json, \"[MASK]\", "
                         "\"<mask>\"), which task \"masked_lm\" needs",
                         by->file)
               : status;
}
