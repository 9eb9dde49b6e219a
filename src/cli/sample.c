#include "cli/cli.h"
#include "cli/run_options.h"
#include "cli/sample_text.h"
#include "report/terminal.h"

#include <tranche/sample.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPECIAL = 8,         // tokens that a tokenizer may put around a prompt
    CONVERSATION = 4096, // tokens of a conversation that are seen at once, beside an
                         // answer; no more than the model's positions
};

typedef struct request {
    const char *prompt, *tokenizer, *dtype; // prompt: NULL: not given
    const char *system, *device, *base;     // base: of an adapter, NULL: its own
    int64_t tokens, seed, threads, top_k;
    double temperature, top_p;
    bool ignore_eos, plan, chat;
    cli_list stops;
} request;

// Does the token end the text? In a model of bytes every token is one of the text.
static bool ends(const tr_sampler *sampler, const request *r, const cli_text *text,
                 int32_t token) {
    bool bytes = !text->tokenizer && text->vocabulary == CLI_BYTES;
    bool last = token == text->eos || tr_sampler_ends(sampler, token);
    return !bytes && !r->ignore_eos && last;
}

// Draws token `index` behind ids. *over: it ends the text, and is not added.
static tr_status draw_next(tr_sampler *sampler, const request *r, const cli_text *text,
                           int64_t index, tr_token_ids *ids, bool *over,
                           tr_error *err) {
    int64_t vocabulary = tr_sampler_vocabulary(sampler);
    tr_sampling how = {.size = sizeof how,
                       .temperature = r->temperature,
                       .top_k = r->top_k,
                       .top_p = r->top_p,
                       .seed = (uint64_t)r->seed};
    const float *logits = NULL;
    int32_t token = 0;
    tr_status status =
        tr_sampler_logits(sampler, ids->id, (int64_t)ids->count, &logits, err);
    if (status == TR_OK) {
        status = tr_sample_pick(logits, vocabulary, &how, (uint64_t)index, &token, err);
    }
    *over = status == TR_OK && ends(sampler, r, text, token);
    return status == TR_OK && !*over ? tr_token_ids_add(ids, &token, 1, err) : status;
}

// *drawn: how many draws there were before; each has a number of its own.
static tr_status generate(tr_sampler *sampler, const request *r, cli_text *text,
                          int64_t *drawn, tr_token_ids *ids, tr_error *err) {
    bool over = false;
    for (int64_t i = 0; i < r->tokens && !over; i++) {
        tr_status status = draw_next(sampler, r, text, (*drawn)++, ids, &over, err);
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
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    printf("A piece of the prompt:\n\n");
    tr_status status = tr_plan_print(prompt, &to, err);
    if (status == TR_OK) {
        printf("\nA token:\n\n");
        status = tr_plan_print(tr_sampler_token_plan(sampler), &to, err);
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
    char shown[REPORT_WORD_MAX + 4];
    return tr_fail(err, TR_USAGE, "--dtype %s: expected f32, bf16 or fp16",
                   report_word(name, shown));
}

// length: tokens that are seen at once, beside those that are added.
static tr_status open_sampler(const char *path, const request *r, int64_t length,
                              tr_sampler **out, tr_error *err) {
    tr_sampler_options options = TR_SAMPLER_OPTIONS_INIT;
    options.path = path;
    options.length = length + r->tokens;
    options.device = r->device;
    options.base = r->base;
    options.threads = (int)r->threads;
    options.plan_only = r->plan;
    options.messages.write = cli_say;
    tr_status status = read_dtype(r->dtype, &options.compute, err);
    return status == TR_OK ? tr_sampler_open(&options, out, err) : status;
}

static const char *prompt_of(const request *r) {
    return r->prompt ? r->prompt : "\n";
}

static tr_status write_text(tr_sampler *sampler, const request *r, cli_text *text,
                            tr_token_ids *ids, tr_error *err) {
    const char *prompt = prompt_of(r);
    int64_t drawn = 0;
    tr_status status =
        cli_text_read(text, prompt, tr_sampler_vocabulary(sampler), ids, err);
    if (status == TR_OK && ids->count == 0) {
        status = tr_fail(err, TR_USAGE, "--prompt: needs at least one token");
    }
    if (status == TR_OK) {
        cli_text_prompt(text, prompt, (int64_t)ids->count);
        status = generate(sampler, r, text, &drawn, ids, err);
    }
    return status;
}

static tr_status sample_text(const char *path, const request *r, cli_text *text,
                             tr_token_ids *ids, tr_error *err) {
    tr_sampler *sampler = NULL;
    int64_t length = (int64_t)strlen(prompt_of(r)) + SPECIAL;
    tr_status status = open_sampler(path, r, length, &sampler, err);
    if (status == TR_OK) {
        status = r->plan ? print_plans(sampler, err)
                         : write_text(sampler, r, text, ids, err);
    }
    tr_sampler_destroy(sampler);
    return status;
}

// ---- conversations

typedef struct conversation {
    tr_sampler *sampler;
    const request *request;
    tr_dialog *dialog;
    cli_text *text;
    tr_token_ids *ids; // of all of it
    int64_t drawn;
} conversation;

// The answer, up to a text of --stop, is a part of what comes next.
static tr_status keep_answer(conversation *c, size_t begin, tr_error *err) {
    char *answer = NULL;
    size_t bytes = 0;
    tr_status status =
        tr_tokenizer_decode(c->text->tokenizer, c->ids->id + begin,
                            c->ids->count - begin, true, &answer, &bytes, err);
    if (status == TR_OK) {
        bytes = cli_stop_before(&c->text->stop, answer, bytes);
        status = tr_dialog_add(c->dialog, "assistant", answer, bytes, err);
    }
    tr_tokenizer_text_release(answer);
    return status;
}

static tr_status take_turn(conversation *c, const char *said, tr_error *err) {
    const char *text = NULL;
    c->ids->count = 0;
    tr_status status = tr_dialog_add(c->dialog, "user", said, strlen(said), err);
    if (status == TR_OK) {
        status = tr_dialog_prompt(c->dialog, &text, NULL, err);
    }
    if (status == TR_OK) {
        status = cli_text_read(c->text, text, tr_sampler_vocabulary(c->sampler), c->ids,
                               err);
    }
    size_t begin = c->ids->count;
    if (status == TR_OK) {
        cli_text_prompt(c->text, text, (int64_t)begin);
        status = generate(c->sampler, c->request, c->text, &c->drawn, c->ids, err);
    }
    return status == TR_OK ? keep_answer(c, begin, err) : status;
}

// What the user says comes from standard input, a line at a time.
static tr_status talk(conversation *c, tr_error *err) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes = 0;
    bool terminal = isatty(STDIN_FILENO);
    tr_status status = TR_OK;
    while (status == TR_OK) {
        fputs(terminal ? "> " : "", stdout);
        fflush(stdout);
        bytes = getline(&line, &capacity, stdin);
        if (bytes < 0) {
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        status = line[0] ? take_turn(c, line, err) : TR_OK;
    }
    free(line);
    return status;
}

static tr_status open_dialog(conversation *c, const char *path, tr_error *err) {
    const char *system = c->request->system;
    tr_status status = tr_dialog_create(path, c->request->tokenizer, &c->dialog, err);
    if (status == TR_OK && system) {
        status = tr_dialog_add(c->dialog, "system", system, strlen(system), err);
    }
    return status == TR_OK
               ? tr_dialog_eos(c->dialog, c->text->tokenizer, &c->text->eos, err)
               : status;
}

static tr_status converse(const char *path, const request *r, cli_text *text,
                          tr_token_ids *ids, tr_error *err) {
    conversation c = {.request = r, .text = text, .ids = ids};
    text->chat = true;
    if (!text->tokenizer) {
        return tr_fail(
            err, TR_USAGE,
            "--chat: this model has no tokenizer.json; --tokenizer names one");
    }
    tr_status status = open_dialog(&c, path, err);
    if (status == TR_OK) {
        int64_t said = r->prompt ? (int64_t)strlen(r->prompt) : 0;
        status = open_sampler(path, r, CONVERSATION + said, &c.sampler, err);
    }
    if (status == TR_OK) {
        status = r->plan     ? print_plans(c.sampler, err)
                 : r->prompt ? take_turn(&c, r->prompt, err)
                             : talk(&c, err);
    }
    tr_sampler_destroy(c.sampler);
    tr_dialog_destroy(c.dialog);
    return status;
}

static tr_status sample(const char *path, const request *r, tr_error *err) {
    cli_text text = {0};
    tr_token_ids ids = {0};
    tr_status status = cli_text_open(&text, path, r->tokenizer, &r->stops, err);
    if (status == TR_OK) {
        status = r->chat ? converse(path, r, &text, &ids, err)
                         : sample_text(path, r, &text, &ids, err);
    }
    tr_token_ids_release(&ids);
    cli_text_close(&text);
    return status;
}

static tr_status check_request(const request *r, tr_error *err) {
    if (r->tokens > 1 << 24) {
        return tr_fail(err, TR_USAGE, "--tokens: at most %d", 1 << 24);
    }
    if (r->system && !r->chat) {
        return tr_fail(err, TR_USAGE,
                       "--system has no effect without --chat: give both");
    }
    if (r->threads > 4096) {
        return tr_fail(err, TR_USAGE, "--threads: at most 4096");
    }
    if (!(r->top_p > 0 && r->top_p <= 1)) {
        return tr_fail(err, TR_USAGE, "--top-p: expected a number above 0 and up to 1");
    }
    return TR_OK;
}

int cli_sample(const cli_command *command, int argc, char **argv) {
    request r = {
        .dtype = "f32", .tokens = 200, .temperature = 0.8, .top_p = 1, .seed = 1};
    tr_error err = {0};
    const char *path = NULL;
    int exit_status;
    const cli_option options[] = {
        {"--prompt", CLI_TEXT, &r.prompt, "TEXT",
         "the text to continue (default: a new line); with --chat the user's message "
         "(default: each line of standard input is one)"},
        {"--chat", CLI_FLAG, &r.chat, NULL,
         "formats the messages by the model's chat template, and shows the answers "
         "only"},
        {"--system", CLI_TEXT, &r.system, "TEXT",
         "the conversation's system message, with --chat"},
        {"--tokenizer", CLI_TEXT, &r.tokenizer, "DIR|FILE|NAME",
         "tokenizer.json of the model (default: its folder's, if it has one)"},
        {"--tokens", CLI_COUNT, &r.tokens, "N", "adds at most N tokens (default 200)"},
        {"--temperature", CLI_NUMBER, &r.temperature, "X",
         "divides the logits by X; 0 takes the likeliest token (default 0.8)"},
        {"--top-k", CLI_SOME, &r.top_k, "K",
         "draws only among the K likeliest tokens, and those as likely as the last of "
         "these"},
        {"--top-p", CLI_NUMBER, &r.top_p, "P",
         "draws only among the likeliest tokens that together have the probability P"},
        {"--stop", CLI_LIST, &r.stops, "TEXT",
         "ends the sample before TEXT; may be given again"},
        {"--ignore-eos", CLI_FLAG, &r.ignore_eos, NULL,
         "goes on after a token that ends a text (eos_token_id of the folder's "
         "generation_config.json or config.json; with --chat eos_token of its "
         "tokenizer_config.json, too)"},
        {"--seed", CLI_COUNT, &r.seed, "N", "seed of the random draws (default 1)"},
        {"--dtype", CLI_TEXT, &r.dtype, "f32|bf16|fp16",
         "computes in this type (default: f32)"},
        {"--device", CLI_TEXT, &r.device, "cpu|cuda|cuda:N",
         "computes on this device (default: cpu); cuda:1 is the second GPU"},
        {"--base", CLI_TEXT, &r.base, "DIR",
         "of an adapter: its base, where that has moved"},
        {"--plan", CLI_FLAG, &r.plan, NULL,
         "prints the plans of a piece of the prompt and of a token, with their memory, "
         "and reads no weights"},
        {"--threads", CLI_SOME, &r.threads, "N", "threads (default: the cores)"},
    };
    cli_operands operands = {&path, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_status status = check_request(&r, &err);
    status = status == TR_OK ? sample(path, &r, &err) : status;
    return status == TR_OK ? cli_end(TR_OK) : cli_fail(&err);
}
