#include "precision.h"

#include <stdio.h>

void precision_text(const precision_setting *s, char text[PRECISION_TEXT]) {
    snprintf(text, PRECISION_TEXT,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": %d, \"n_embd\": 32, "
             "\"n_head\": 2, \"n_positions\": %d, \"vocab_size\": %d, "
             "\"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0}, %s, "
             "\"steps\": %d, \"seed\": 3, \"train_batch_size\": %d, "
             "\"train_micro_batch_size_per_gpu\": %d, \"execution\": {\"wave\": %d, "
             "\"reproducible\": %s}, \"activation_checkpointing\": "
             "{\"number_checkpoints\": %d}, \"zero_optimization\": {%s}, "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 2e-3}}, "
             "\"out\": \"%s\"}",
             PRECISION_BLOCKS, PRECISION_LENGTH, PRECISION_TOKENS, s->precision,
             s->steps, PRECISION_BATCH, (int)(s->micro ? s->micro : PRECISION_BATCH),
             (int)(s->wave ? s->wave : 1), s->reproducible ? "true" : "false",
             (int)s->recomputed, s->homes ? s->homes : "", s->out ? s->out : "unused");
}

void precision_open(const precision_setting *s, samples *data, const char *resume,
                    int isa_limit, trial *t) {
    char text[PRECISION_TEXT];
    precision_text(s, text);
    run_options options = {.text = text, .own_train = data->dataset, .resume = resume};
    bool reference = isa_limit == PRECISION_REFERENCE;
    trial_open_kernels(t, &options, reference ? 0 : isa_limit, reference);
}

void precision_run(const precision_setting *s, samples *data, int isa_limit,
                   precision_outcome *o) {
    trial t;
    precision_open(s, data, "never", isa_limit, &t);
    snapshot_take(&o->start, &t);
    trial_steps(&t, s->steps - 1, NULL);
    trial_steps(&t, 1, &o->last);
    snapshot_take(&o->end, &t);
    trial_check_arenas(&t);
    trial_close(&t);
}

void precision_outcome_free(precision_outcome *o) {
    snapshot_free(&o->start);
    snapshot_free(&o->end);
}

void precision_samples(samples *data) {
    samples_tokens(data, 3 * PRECISION_BATCH + 5, PRECISION_LENGTH, PRECISION_TOKENS,
                   5);
}

void precision_assert_same(const precision_setting *settings, int count) {
    samples data;
    precision_outcome first, other;
    precision_samples(&data);
    precision_run(&settings[0], &data, 0, &first);
    for (int i = 1; i < count; i++) {
        precision_run(&settings[i], &data, 0, &other);
        snapshot_assert_same(&other.end, &first.end);
        precision_outcome_free(&other);
    }
    precision_outcome_free(&first);
    samples_free(&data);
}
