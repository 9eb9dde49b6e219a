#include "cli/cli.h"
#include "cli/sample_text.h"
#include "tokenizer/ids.h"

#include <tranche/sample.h>

#include <stdio.h>
#include <string.h>

enum { SPECIAL = 8 }; // tokens that a tokenizer may put around a prompt

typedef struct request {
    const char *prompt, *tokenizer, *dtype;
    int64_t tokens, seed, threads, top_k;
    double temperature, top_p;
    bool ignore_eos, plan;
    cli_list stops;
} request;

// Does the token end the text? In a model of bytes every token is one of the text.
static bool ends(const tr_sampler *sampler, const request *r, const cli_text *text,
                 int32_t token) {
    bool bytes = !text->tokenizer && text->vocabulary == CLI_BYTES;
    return !bytes && !r->ignore_eos && tr_sampler_ends(sampler, token);
}

// Draws token `index` behind ids. *over: it ends the text, and is not added.
static tr_status draw_next(tr_sampler *sampler, const request *r, const cli_text *text,
                           int64_t index, tr_token_ids *ids, bool *over,
                           tr_error *err) {
    int64_t vocabulary = tr_sampler_vocabulary(sampler);
    tr_sampling how = {r->temperature, r->top_k, r->top_p, (uint64_t)r->seed};
    const float *logits = NULL;
    int32_t token = 0;
    tr_status status =
        tr_sampler_logits(sampler, ids->id, (int64_t)ids->count, &logits, err);
    if (status == TR_OK) {
        status = tr_sample_pick(logits, vocabulary, &how, (uint64_t)index, &token, err);
    }
    *over = status == TR_OK && ends(sampler, r, text, token);
    if (status == TR_OK && !*over && !tr__ids_add(ids, &token, 1)) {
        status = tr_fail(err, TR_MEMORY, "no memory for tokens");
    }
    return status;
}

static tr_status generate(tr_sampler *sampler, const request *r, cli_text *text,
                          tr_token_ids *ids, tr_error *err) {
    bool over = false;
    for (int64_t i = 0; i < r->tokens && !over; i++) {
        tr_status status = draw_next(sampler, r, text, i, ids, &over, err);
        if (status == TR_OK) {
            status = cli_text_show(text, ids->id, (int64_t)ids->count, err);
        }
        if (status != TR_OK) {
            return status;
        }
        over = over || text->stop.found || fflush(stdout) != 0; // cli_end says so
    }
    cli_text_end(text);
    putchar('\n');
    return TR_OK;
}

static tr_status print_plans(const tr_sampler *sampler, tr_error *err) {
    const tr_plan *prompt = tr_sampler_prompt_plan(sampler);
    printf("A piece of the prompt:\n\n");
    tr_status status = tr_plan_print(prompt, stdout, err);
    if (status == TR_OK) {
        printf("\nA token:\n\n");
        status = tr_plan_print(tr_sampler_token_plan(sampler), stdout, err);
    }
    if (status == TR_OK) {
        cli_plan_fits(prompt, "sampling from this model");
    }
    return status;
}

static tr_status read_dtype(const char *name, tr_dtype *out, tr_error *err) {
    static const struct {
        const char *name;
        tr_dtype dtype;
    } known[] = {{"f32", TR_F32}, {"bf16", TR_BF16}, {"fp16", TR_F16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].dtype;
            return TR_OK;
        }
    }
    char shown[CLI_WORD_MAX + 4];
    return tr_fail(err, TR_USAGE, "--dtype %s: expected f32, bf16 or fp16",
                   cli_word(name, shown));
}

static tr_status open_sampler(const char *path, const request *r, tr_sampler **out,
                              tr_error *err) {
    tr_sampler_options options = {.path = path,
                                  .length =
                                      (int64_t)strlen(r->prompt) + SPECIAL + r->tokens,
                                  .threads = (int)r->threads,
                                  .plan_only = r->plan};
    tr_status status = read_dtype(r->dtype, &options.compute, err);
    return status == TR_OK ? tr_sampler_open(&options, out, err) : status;
}

static tr_status write_text(tr_sampler *sampler, const request *r, cli_text *text,
                            tr_token_ids *ids, tr_error *err) {
    tr_status status =
        cli_text_read(text, r->prompt, tr_sampler_vocabulary(sampler), ids, err);
    if (status == TR_OK && ids->count == 0) {
        status = tr_fail(err, TR_USAGE, "--prompt: needs at least one token");
    }
    if (status == TR_OK) {
        cli_text_prompt(text, r->prompt, (int64_t)ids->count);
        status = generate(sampler, r, text, ids, err);
    }
    return status;
}

static tr_status sample_text(const char *path, const request *r, cli_text *text,
                             tr_token_ids *ids, tr_error *err) {
    tr_sampler *sampler = NULL;
    tr_status status = open_sampler(path, r, &sampler, err);
    if (status == TR_OK) {
        status = r->plan ? print_plans(sampler, err)
                         : write_text(sampler, r, text, ids, err);
    }
    tr_sampler_destroy(sampler);
    return status;
}

static tr_status sample(const char *path, const request *r, tr_error *err) {
    cli_text text = {0};
    tr_token_ids ids = {0};
    tr_status status = cli_text_open(&text, path, r->tokenizer, &r->stops, err);
    if (status == TR_OK) {
        status = sample_text(path, r, &text, &ids, err);
    }
    tr_token_ids_release(&ids);
    cli_text_close(&text);
    return status;
}

int cli_sample(const cli_command *command, int argc, char **argv) {
    request r = {.prompt = "\n",
                 .dtype = "f32",
                 .tokens = 200,
                 .temperature = 0.8,
                 .top_p = 1,
                 .seed = 1};
    tr_error err = {0};
    const char *path = NULL;
    size_t count;
    int exit_status;
    const cli_option options[] = {
        {"--prompt", CLI_TEXT, &r.prompt, "TEXT",
         "what to continue (default: a new line)"},
        {"--tokenizer", CLI_TEXT, &r.tokenizer, "DIR|FILE|NAME",
         "tokenizer.json of the model (default: its folder's, if it has one)"},
        {"--tokens", CLI_COUNT, &r.tokens, "N",
         "how many tokens to add at most (default 200)"},
        {"--temperature", CLI_NUMBER, &r.temperature, "X",
         "0 takes the likeliest token (default 0.8)"},
        {"--top-k", CLI_SOME, &r.top_k, "K",
         "draws among the K likeliest tokens only (and those that equal the last)"},
        {"--top-p", CLI_NUMBER, &r.top_p, "P",
         "draws among the likeliest tokens only that have P of the probability "
         "together"},
        {"--stop", CLI_LIST, &r.stops, "TEXT",
         "ends before TEXT, which is not shown; may be given again"},
        {"--ignore-eos", CLI_FLAG, &r.ignore_eos, NULL,
         "goes on behind the tokens that end a text (eos_token_id of the folder's "
         "generation_config.json or config.json)"},
        {"--seed", CLI_COUNT, &r.seed, "N", "seed of the random draws (default 1)"},
        {"--dtype", CLI_TEXT, &r.dtype, "TYPE",
         "what the model computes in: f32 (default), bf16 or fp16"},
        {"--plan", CLI_FLAG, &r.plan, NULL,
         "prints the plans of a piece of the prompt and of a token, with their memory, "
         "and reads no weights"},
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
