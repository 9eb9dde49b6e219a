// Asks a trained language model of bytes: its loss on a text, and how the text goes on.
//     ask FOLDER TEXT-FILE PROMPT
#include <tranche.h>

#include <stdio.h>

enum { ADDED = 40, LENGTH = 256 };

static tr_status evaluate(const char *folder, const char *file, tr_error *err) {
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    tr_evaluated result;
    options.path = folder;
    options.data = &file;
    options.data_count = 1;
    tr_status status = tr_evaluate(&options, &result, err);
    if (status == TR_OK) {
        printf("loss %.4f on %lld targets, %.3f bits a byte\n", result.loss,
               (long long)result.targets, result.bits_per_byte);
    }
    return status;
}

static tr_status go_on(const char *folder, const char *prompt, tr_error *err) {
    tr_sampler *sampler = NULL;
    int32_t text[LENGTH + ADDED];
    int64_t count = 0;
    for (; count < LENGTH && prompt[count]; count++) {
        text[count] = (unsigned char)prompt[count];
    }
    tr_status status = tr_sampler_create(folder, LENGTH, 0, &sampler, err);
    printf("%s", prompt);
    for (int i = 0; i < ADDED && status == TR_OK; i++) {
        const float *logits = NULL; // [vocabulary] of the token after the text
        status = tr_sampler_logits(sampler, text, count, &logits, err);
        if (status == TR_OK) {
            int64_t vocabulary = tr_sampler_vocabulary(sampler);
            text[count] = tr_sample_draw(logits, vocabulary, 0.8, 1, (uint64_t)i);
            putchar(text[count++]);
        }
    }
    putchar('\n');
    tr_sampler_destroy(sampler);
    return status;
}

int main(int argc, char **argv) {
    tr_error err = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: ask FOLDER TEXT-FILE PROMPT\n");
        return tr_status_exit(TR_USAGE);
    }
    tr_status status = evaluate(argv[1], argv[2], &err);
    if (status == TR_OK) {
        status = go_on(argv[1], argv[3], &err);
    }
    if (status != TR_OK) {
        fprintf(stderr, "ask: %s\n", err.message);
    }
    return tr_status_exit(status);
}
