#include "base/memory.h"
#include "base/terminal.h"
#include "cli/cli.h"

#include <tranche/sample.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

typedef struct request {
    const char *prompt;
    int64_t tokens, seed, threads, top_k;
    double temperature, top_p;
} request;

// A model of bytes takes its prompt as text; others take token ids, as they have no
// tokenizer here.
static bool read_prompt(const request *r, int64_t vocabulary, int32_t *tokens,
                        int64_t *count) {
    const char *at = r->prompt;
    *count = 0;
    if (vocabulary == BYTES) {
        for (; *at; at++) {
            tokens[(*count)++] = (unsigned char)*at;
        }
        return true;
    }
    while (*at) {
        char *end = NULL;
        long long id = strtoll(at, &end, 10);
        if (end == at || id < 0 || id >= vocabulary) {
            return false;
        }
        tokens[(*count)++] = (int32_t)id;
        at = end + strspn(end, " ,\n\t");
    }
    return true;
}

static tr_status generate(tr_sampler *sampler, const request *r, int32_t *tokens,
                          int64_t count, tr_error *err) {
    int64_t vocabulary = tr_sampler_vocabulary(sampler);
    tr_clean_text text = tr__clean_begin(stdout, true);
    tr_sampling how = {r->temperature, r->top_k, r->top_p, (uint64_t)r->seed};
    for (int64_t i = 0; i < r->tokens; i++) {
        const float *logits = NULL;
        int32_t token = 0;
        tr_status status = tr_sampler_logits(sampler, tokens, count, &logits, err);
        if (status == TR_OK) {
            status = tr_sample_pick(logits, vocabulary, &how, (uint64_t)i, &token, err);
        }
        if (status != TR_OK) {
            return status;
        }
        tokens[count++] = token;
        if (vocabulary == BYTES) {
            tr__clean_put(&text, (unsigned char)token);
        } else {
            printf("%s%d", i ? " " : "", (int)token);
        }
        if (fflush(stdout) != 0) { // cli_end says so
            break;
        }
    }
    tr__clean_end(&text);
    putchar('\n');
    return TR_OK;
}

static tr_status sample(const char *path, const request *r, tr_error *err) {
    tr_sampler *sampler = NULL;
    int64_t length = (int64_t)strlen(r->prompt), count = 0;
    int32_t *tokens = tr__calloc((size_t)(length + r->tokens) + 1, sizeof *tokens);
    if (!tokens) {
        return tr_fail(err, TR_MEMORY, "no memory for %lld tokens",
                       (long long)r->tokens);
    }
    tr_status status =
        tr_sampler_create(path, length + r->tokens, (int)r->threads, &sampler, err);
    if (status == TR_OK &&
        !read_prompt(r, tr_sampler_vocabulary(sampler), tokens, &count)) {
        status =
            tr_fail(err, TR_USAGE,
                    "--prompt: this model's vocabulary is not bytes; give token ids "
                    "from 0 to %lld, separated by blanks",
                    (long long)tr_sampler_vocabulary(sampler) - 1);
    }
    if (status == TR_OK && count == 0) {
        status = tr_fail(err, TR_USAGE, "--prompt: needs at least one token");
    }
    if (status == TR_OK) {
        if (tr_sampler_vocabulary(sampler) == BYTES) {
            tr__print_message(stdout, r->prompt);
        }
        status = generate(sampler, r, tokens, count, err);
    }
    tr_sampler_destroy(sampler);
    tr__free(tokens);
    return status;
}

int cli_sample(const cli_command *command, int argc, char **argv) {
    request r = {
        .prompt = "\n", .tokens = 200, .temperature = 0.8, .top_p = 1, .seed = 1};
    tr_error err = {0};
    const char *path = NULL;
    size_t count;
    int exit_status;
    const cli_option options[] = {
        {"--prompt", CLI_TEXT, &r.prompt, "TEXT",
         "what to continue (default: a new line)"},
        {"--tokens", CLI_COUNT, &r.tokens, "N", "how many tokens to add (default 200)"},
        {"--temperature", CLI_NUMBER, &r.temperature, "X",
         "0 takes the likeliest token (default 0.8)"},
        {"--top-k", CLI_SOME, &r.top_k, "K",
         "draws among the K likeliest tokens only (and those that equal the last)"},
        {"--top-p", CLI_NUMBER, &r.top_p, "P",
         "draws among the likeliest tokens only that have P of the probability "
         "together"},
        {"--seed", CLI_COUNT, &r.seed, "N", "seed of the random draws (default 1)"},
        {"--threads", CLI_SOME, &r.threads, "N", "threads (default: the cores)"},
    };
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &path, 1, 1, &count, &exit_status)) {
        return exit_status;
    }
    if (r.tokens > 1 << 24) {
        tr_fail(&err, TR_USAGE, "--tokens: at most %d", 1 << 24);
        return cli_fail(&err);
    }
    if (r.threads > 4096) {
        tr_fail(&err, TR_USAGE, "--threads: at most 4096");
        return cli_fail(&err);
    }
    if (!(r.top_p > 0 && r.top_p <= 1)) {
        tr_fail(&err, TR_USAGE, "--top-p: expected a number above 0 and up to 1");
        return cli_fail(&err);
    }
    return sample(path, &r, &err) == TR_OK ? cli_end(TR_OK) : cli_fail(&err);
}
