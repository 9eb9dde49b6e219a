// Asks a trained language model of bytes: its loss on a text, and how the text goes on.
//     ask FOLDER TEXT-FILE PROMPT
#include "ok.h"

enum { ADDED = 40, LENGTH = 256 };

static void evaluate(const char *folder, const char *file) {
    tr_error err = {0};
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    tr_evaluated result = TR_EVALUATED_INIT;
    options.path = folder;
    options.data = &file;
    options.data_count = 1;
    ok(tr_evaluate(&options, &result, &err), &err);
    printf("loss %.4f on %lld targets, %.3f bits a byte\n", result.loss,
           (long long)result.targets, result.bits_per_byte);
}

static void go_on(const char *folder, const char *prompt) {
    tr_error err = {0};
    tr_sampler *sampler = NULL;
    int32_t text[LENGTH + ADDED];
    int64_t count = 0;
    for (; count < LENGTH && prompt[count]; count++) {
        text[count] = (unsigned char)prompt[count];
    }
    ok(tr_sampler_create(folder, LENGTH, 0, &sampler, &err), &err);
    printf("%s", prompt);
    for (int i = 0; i < ADDED; i++) {
        const float *logits = NULL; // [vocabulary] of the token after the text
        ok(tr_sampler_logits(sampler, text, count, &logits, &err), &err);
        text[count] =
            tr_sample_draw(logits, tr_sampler_vocabulary(sampler), 0.8, 1, (uint64_t)i);
        putchar(text[count++]);
    }
    putchar('\n');
    tr_sampler_destroy(sampler);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: ask FOLDER TEXT-FILE PROMPT\n");
        return tr_status_exit(TR_USAGE);
    }
    evaluate(argv[1], argv[2]);
    go_on(argv[1], argv[3]);
    return 0;
}
