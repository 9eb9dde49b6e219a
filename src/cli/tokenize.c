// tranche tokenize: files to token ids, and ids to text.
#include "cli/tokenize.h"
#include "cli/cli.h"

#include <tranche/data.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static tr_status check(const cli_tokenize *r, tr_error *err) {
    if (!r->tokenizer) {
        return tr_fail(err, TR_USAGE,
                       "tokenize needs --tokenizer: a folder "
                       "with a tokenizer.json, such a file, or a name on Hugging "
                       "Face's hub");
    }
    if (r->dtype && strcmp(r->dtype, "u16") != 0 && strcmp(r->dtype, "u32") != 0) {
        return tr_fail(err, TR_USAGE, "--dtype: expected u16 or u32");
    }
    if (r->decode && (r->file_count > 0 || r->out)) {
        return tr_fail(err, TR_USAGE,
                       "--decode takes neither FILE nor --out; the text "
                       "goes to standard output");
    }
    if (!r->decode && r->file_count == 0) {
        return tr_fail(err, TR_USAGE, "tokenize needs FILE, or --decode IDS");
    }
    if (r->threads > 4096) {
        return tr_fail(err, TR_USAGE, "--threads: at most 4096");
    }
    return TR_OK;
}

static tr_status tokenize(cli_tokenize *r, tr_error *err) {
    tr_tokenizer *tokenizer = NULL;
    tr_status status = check(r, err);
    if (status == TR_OK) {
        status = tr_tokenizer_load(r->tokenizer, &tokenizer, err);
    }
    if (status == TR_OK) {
        status = r->decode ? cli_tokenize_decode(tokenizer, r, err)
                           : cli_tokenize_encode(tokenizer, r, err);
    }
    tr_tokenizer_destroy(tokenizer);
    return status;
}

int cli_tokenize_run(const cli_command *command, int argc, char **argv) {
    cli_tokenize r = {0};
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--tokenizer", CLI_TEXT, &r.tokenizer, "DIR|FILE|NAME",
         "a tokenizer.json, a folder that has one, or a name on Hugging Face's hub"},
        {"--out", CLI_TEXT, &r.out, "IDS",
         "writes the ids to this file (default: counts them only)"},
        {"--dtype", CLI_TEXT, &r.dtype, "u16|u32",
         "type of the ids (default: u16 where the vocabulary fits)"},
        {"--special", CLI_FLAG, &r.special, NULL,
         "adds the tokens that begin and end a text"},
        {"--plain-special", CLI_FLAG, &r.plain_special, NULL,
         "treats special tokens that stand in the text as text"},
        {"--decode", CLI_TEXT, &r.decode, "IDS", "prints the text of a file of ids"},
        {"--threads", CLI_SOME, &r.threads, "N", "threads (default: the cores)"},
    };
    cli_operands operands = {r.files, 0, CLI_TOKENIZE_FILES_MAX, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    r.file_count = operands.count;
    signal(SIGXFSZ, SIG_IGN); // a write that fails says why
    return tokenize(&r, &err) == TR_OK ? cli_end(TR_OK) : cli_fail(&err);
}
