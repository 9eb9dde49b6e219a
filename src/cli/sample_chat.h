// A conversation with a model, as text by the chat template of its folder.
#ifndef TR_CLI_SAMPLE_CHAT_H
#define TR_CLI_SAMPLE_CHAT_H

#include "data/chat.h"

#include <tranche/tokenizer.h>

#include <limits.h>

typedef struct cli_chat {
    tr_chat *chat;
    struct json_t *messages;
    char folder[PATH_MAX]; // of the template
} cli_chat;

// The template beside the tokenizer that is named (NULL: in the model's folder `path`).
// system: its first message; NULL: none. TR_DATA: there is no template, or it has what
// is not supported.
tr_status cli_chat_open(cli_chat *chat, const char *path, const char *tokenizer,
                        const char *system, tr_error *err);
// The token that ends an answer by the template's folder; -1: it names none.
tr_status cli_chat_eos(const cli_chat *chat, const tr_tokenizer *tokenizer,
                       int32_t *eos, tr_error *err);
void cli_chat_close(cli_chat *chat);

// The user says something: the text up to where the answer begins.
tr_status cli_chat_say(cli_chat *chat, const char *said, tr_jinja_rendered *text,
                       tr_error *err);
// The model has answered.
tr_status cli_chat_answer(cli_chat *chat, const char *answer, size_t bytes,
                          tr_error *err);

#endif
