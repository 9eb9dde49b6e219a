// What a model's tokens are to people: bytes, text by a tokenizer, or ids.
#ifndef TR_CLI_SAMPLE_TEXT_H
#define TR_CLI_SAMPLE_TEXT_H

#include "cli/stop_text.h"
#include "report/terminal.h"

#include <tranche/data.h>

enum { CLI_BYTES = 256 }; // a vocabulary of as many tokens is bytes

typedef struct cli_text {
    tr_tokenizer *tokenizer; // NULL: bytes or ids
    int64_t vocabulary;      // of the model
    report_clean to;
    cli_stop stop;        // what ends the text, but for the prompt
    int64_t begin, shown; // tokens: where the text is decoded from; shown so far
    int32_t eos;          // ends a text beside the model's own such tokens; -1: none
    bool chat;            // prompts are whole conversations, which are not shown
} cli_text;

// The tokenizer that is named (NULL: the one of the model's folder `path`, if it has
// one), and the texts that end the text (borrowed).
tr_status cli_text_open(cli_text *text, const char *path, const char *tokenizer,
                        const cli_list *stops, tr_error *err);
void cli_text_close(cli_text *text);
// Are the model's tokens text, by a tokenizer or as bytes? Else they are ids.
bool cli_text_is_text(const cli_text *text);
// Appends the tokens of a prompt. vocabulary: the model's; TR_USAGE: the prompt has a
// token that the model lacks, or texts end a text of ids.
tr_status cli_text_read(cli_text *text, const char *prompt, int64_t vocabulary,
                        tr_token_ids *ids, tr_error *err);
// Shows the prompt and, of tokens [count], those behind it that are not shown yet. A
// character whose bytes are not all there waits, and so does what may be the beginning
// of a text that ends the text; cli_text_end shows it.
// A prompt ends what was shown before.
void cli_text_prompt(cli_text *text, const char *prompt, int64_t count);
tr_status cli_text_show(cli_text *text, const int32_t *tokens, int64_t count,
                        tr_error *err);
void cli_text_end(cli_text *text);

#endif
