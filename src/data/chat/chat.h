// A model's chat template: conversations as the text that the model is trained on.
//
// The template is chat_template.jinja beside the tokenizer, else "chat_template" of
// tokenizer_config.json (of several the one called "default"). It sees what
// transformers gives it: messages, tools, add_generation_prompt, the special tokens by
// their names, and what the caller adds.
#ifndef TR_DATA_CHAT_CHAT_H
#define TR_DATA_CHAT_CHAT_H

#include "text/template/jinja.h"

struct json_t; // jansson's

typedef struct tr_chat tr_chat;

// folder: of the tokenizer; "": none. file: a template in place of the folder's; NULL:
// none. now: what strftime_now shows, kept; NULL: an error. TR_DATA: there is no
// template, or it has what is not supported; TR_IO; TR_MEMORY.
tr_status tr__chat_open(const char *folder, const char *file, const struct tm *now,
                        tr_chat **out, tr_error *err);
void tr__chat_close(tr_chat *chat); // NULL-safe
// Of the template and the special tokens.
uint64_t tr__chat_hash(const tr_chat *chat);
// Does the template mark what the assistant says?
bool tr__chat_marks(const tr_chat *chat);

typedef struct tr_conversation {
    const struct json_t *messages; // an array of objects
    const struct json_t *tools;    // an array; NULL: none
    const struct json_t *others;   // an object of further variables; NULL: none
    bool answer;                   // the text ends where the assistant begins
} tr_conversation;

// TR_DATA: a message that is no object, or the template refuses the conversation.
tr_status tr__chat_render(const tr_chat *chat, const tr_conversation *conversation,
                          tr_jinja_rendered *out, tr_error *err);

// The same, with a span for each message of the assistant: as the template marks them,
// else from where the text ends that asks for the message, to where the conversation
// ends that ends with it. TR_DATA: such a text is no part of the whole.
tr_status tr__chat_render_spans(const tr_chat *chat,
                                const tr_conversation *conversation,
                                tr_jinja_rendered *out, tr_error *err);

#endif
