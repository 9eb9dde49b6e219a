// Asks a trained language model of bytes: its loss on a text, and how the text goes on.
//     ask FOLDER TEXT-FILE PROMPT
#include "handle.hpp"

#include <cstdio>
#include <string>
#include <vector>

static const int added = 40;
static const int64_t length = 256;

static void evaluate(const char *folder, const char *file) {
    tr_evaluator_options options = TR_EVALUATOR_OPTIONS_INIT;
    tr_evaluated result = TR_EVALUATED_INIT;
    options.path = folder;
    options.data = &file;
    options.data_count = 1;
    call(tr_evaluate, &options, &result);
    std::printf("loss %.4f on %lld targets, %.3f bits a byte\n", result.loss,
                static_cast<long long>(result.targets), result.bits_per_byte);
}

static void go_on(const char *folder, std::string text) {
    auto sampler = make(tr_sampler_destroy, tr_sampler_create, folder, length, 0);
    int64_t vocabulary = tr_sampler_vocabulary(sampler.get());
    for (int i = 0; i < added; i++) {
        std::vector<int32_t> tokens;
        for (unsigned char byte : text) {
            tokens.push_back(byte);
        }
        const float *logits = nullptr; // [vocabulary] of the token after the text
        call(tr_sampler_logits, sampler.get(), tokens.data(), int64_t(tokens.size()),
             &logits);
        text += char(tr_sample_draw(logits, vocabulary, 0.8, 1, uint64_t(i)));
    }
    std::printf("%s\n", text.c_str());
}

int main(int argc, char **argv) try {
    if (argc != 4) {
        std::fprintf(stderr, "usage: ask FOLDER TEXT-FILE PROMPT\n");
        return tr_status_exit(TR_USAGE);
    }
    evaluate(argv[1], argv[2]);
    go_on(argv[1], argv[3]);
    return 0;
} catch (const failure &error) {
    std::fprintf(stderr, "ask: %s\n", error.what());
    return tr_status_exit(error.status);
}
