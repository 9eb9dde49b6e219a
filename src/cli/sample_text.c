#include "cli/sample_text.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tr_status open_tokenizer(cli_text *text, const char *path, const char *tokenizer,
                                tr_error *err) {
    static const char name[] = "/tokenizer.json";
    char file[PATH_MAX + sizeof name];
    if (tokenizer) {
        return tr_tokenizer_load(tokenizer, &text->tokenizer, err);
    }
    tr_status status = tr_checkpoint_locate(path, file, PATH_MAX, err);
    if (status == TR_OK) {
        memcpy(file + strlen(file), name, sizeof name);
    }
    bool has = status == TR_OK && access(file, F_OK) == 0;
    return has ? tr_tokenizer_load(file, &text->tokenizer, err) : status;
}

tr_status cli_text_open(cli_text *text, const char *path, const char *tokenizer,
                        const cli_list *stops, tr_error *err) {
    *text = (cli_text){.to = report_clean_begin(stdout, true), .eos = -1};
    tr_status status = cli_stop_open(&text->stop, stops, err);
    return status == TR_OK ? open_tokenizer(text, path, tokenizer, err) : status;
}

void cli_text_close(cli_text *text) {
    cli_stop_close(&text->stop);
    tr_tokenizer_destroy(text->tokenizer);
    text->tokenizer = NULL;
}

static tr_status add(tr_token_ids *ids, int32_t id, tr_error *err) {
    return tr_token_ids_add(ids, &id, 1, err);
}

static tr_status read_bytes(const char *prompt, tr_token_ids *ids, tr_error *err) {
    tr_status status = TR_OK;
    for (; *prompt && status == TR_OK; prompt++) {
        status = add(ids, (unsigned char)*prompt, err);
    }
    return status;
}

static tr_status read_ids(const char *prompt, int64_t vocabulary, tr_token_ids *ids,
                          tr_error *err) {
    tr_status status = TR_OK;
    while (*prompt && status == TR_OK) {
        char *end = NULL;
        long long id = strtoll(prompt, &end, 10);
        if (end == prompt || id < 0 || id >= vocabulary) {
            return tr_fail(err, TR_USAGE,
                           "--prompt: this model has no tokenizer.json (--tokenizer "
                           "names one), and its vocabulary is not bytes; give token "
                           "ids from 0 to %lld, separated by blanks",
                           (long long)vocabulary - 1);
        }
        status = add(ids, (int32_t)id, err);
        prompt = end + strspn(end, " ,\n\t");
    }
    return status;
}

static tr_status read_text(const cli_text *text, const char *prompt, tr_token_ids *ids,
                           tr_error *err) {
    const tr_encode_options options = {.size = sizeof(tr_encode_options),
                                       .add_special = !text->chat};
    tr_status status = tr_tokenizer_encode(text->tokenizer, prompt, strlen(prompt),
                                           &options, 1, ids, err);
    for (size_t i = 0; i < ids->count && status == TR_OK; i++) {
        if (ids->id[i] >= text->vocabulary) {
            status = tr_fail(err, TR_USAGE,
                             "--prompt: token %d is not in the model's vocabulary of "
                             "%lld; is this its tokenizer?",
                             (int)ids->id[i], (long long)text->vocabulary);
        }
    }
    return status;
}

bool cli_text_is_text(const cli_text *text) {
    return text->tokenizer || text->vocabulary == CLI_BYTES;
}

tr_status cli_text_read(cli_text *text, const char *prompt, int64_t vocabulary,
                        tr_token_ids *ids, tr_error *err) {
    text->vocabulary = vocabulary;
    if (!cli_text_is_text(text) && text->stop.texts->count > 0) {
        return tr_fail(err, TR_USAGE,
                       "--stop needs text, but this model has no tokenizer.json, so "
                       "its tokens are ids: name one by --tokenizer");
    }
    if (text->tokenizer) {
        return read_text(text, prompt, ids, err);
    }
    return vocabulary == CLI_BYTES ? read_bytes(prompt, ids, err)
                                   : read_ids(prompt, vocabulary, ids, err);
}

void cli_text_prompt(cli_text *text, const char *prompt, int64_t count) {
    if (cli_text_is_text(text) && !text->chat) {
        report_print_message(stdout, prompt);
    }
    text->to = report_clean_begin(stdout, true);
    text->stop.found = false;
    text->stop.count = 0;
    text->begin = text->tokenizer && count > 8 ? count - 8 : 0;
    text->shown = count;
}

static void put(cli_text *text, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        cli_stop_put(&text->stop, (unsigned char)bytes[i], &text->to);
    }
}

static bool ends_open(const char *text, size_t bytes) {
    return bytes >= 3 && memcmp(text + bytes - 3, "\xef\xbf\xbd", 3) == 0;
}

// What the tokens add is the difference of two decodings: what a token is depends on
// those before it.
static tr_status show_text(cli_text *text, const int32_t *tokens, int64_t count,
                           tr_error *err) {
    char *before = NULL, *after = NULL;
    size_t had = 0, have = 0;
    const int32_t *from = tokens + text->begin;
    tr_status status =
        tr_tokenizer_decode(text->tokenizer, from, (size_t)(text->shown - text->begin),
                            true, &before, &had, err);
    if (status == TR_OK) {
        status =
            tr_tokenizer_decode(text->tokenizer, from, (size_t)(count - text->begin),
                                true, &after, &have, err);
    }
    bool waits = status == TR_OK && ends_open(after, have) && count - text->shown < 4;
    if (status == TR_OK && !waits) {
        put(text, after + (had < have ? had : have), have > had ? have - had : 0);
        text->begin = text->shown;
        text->shown = count;
    }
    tr_tokenizer_text_release(before);
    tr_tokenizer_text_release(after);
    return status;
}

tr_status cli_text_show(cli_text *text, const int32_t *tokens, int64_t count,
                        tr_error *err) {
    if (text->tokenizer) {
        return show_text(text, tokens, count, err);
    }
    for (; text->shown < count; text->shown++) {
        if (text->vocabulary == CLI_BYTES) {
            cli_stop_put(&text->stop, (unsigned char)tokens[text->shown], &text->to);
        } else {
            printf("%s%d", text->begin++ > 0 ? " " : "", (int)tokens[text->shown]);
        }
    }
    return TR_OK;
}

void cli_text_end(cli_text *text) {
    cli_stop_end(&text->stop, &text->to);
    report_clean_end(&text->to);
}
