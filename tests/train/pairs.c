#include "pairs.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORDS = 3 };

static const char model[] =
    "{\"model_type\": \"bert\", \"vocab_size\": 150, \"hidden_size\": 16, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 24, "
    "\"max_position_embeddings\": 16, \"hidden_dropout_prob\": 0.1, "
    "\"attention_probs_dropout_prob\": 0.1}";

static void write_text(FILE *to, int64_t record, uint64_t which) {
    static const char *const words[] = {"who",  "it",  "men",  "on", "tide", "a",
                                        "boat", "the", "late", "is", "mud",  "waits"};
    enum { COUNT = sizeof words / sizeof *words };
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t at = tr__draw_below(COUNT, i, which, (uint64_t)record);
        fprintf(to, "%s%s", i > 0 ? " " : "", words[at]);
    }
}

void pairs_write(const char *path, int64_t count) {
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    for (int64_t i = 0; i < count; i++) {
        fprintf(to, "{\"anchor\": \"");
        write_text(to, i, 1);
        fprintf(to, "\", \"positive\": \"");
        write_text(to, i, 2);
        fprintf(to, "\"}\n");
    }
    assert_int_equal(fclose(to), 0);
}

void pairs_text(const pairs_setting *s, char text[PAIRS_TEXT_MAX]) {
    int used =
        snprintf(text, PAIRS_TEXT_MAX,
                 "{\"model\": %s, \"task\": \"contrastive\", \"data\": {\"format\": "
                 "\"jsonl\", \"train\": [\"%s\"], \"max_length\": 6, \"tokenizer\": "
                 "\"" TR_TEST_DATA "/encoders/bert/tokenizer.json\"}, \"contrastive\": "
                 "{\"passes\": %d, \"learned\": true}, \"train_batch_size\": %d, "
                 "\"train_micro_batch_size_per_gpu\": %d, \"steps\": 3, \"seed\": 5, "
                 "%s \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1e-3}}, "
                 "\"out\": \"unused\"}",
                 model, s->records, s->passes, s->batch, s->micro, s->more);
    assert_true(used > 0 && used < PAIRS_TEXT_MAX);
}
