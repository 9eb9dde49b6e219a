// ShareGPT's messages, {"from": "human", "value": "..."}, as {"role", "content"}.
#ifndef TR_DATA_CHAT_SHARE_GPT_H
#define TR_DATA_CHAT_SHARE_GPT_H

#include <tranche/status.h>

struct json_t; // jansson's

// *out: the messages themselves where none has "from", else new ones; the caller
// releases it. human is the user, gpt the assistant, tool, observation and
// function_response are tool. TR_DATA: another "from", or messages of both forms.
tr_status tr__share_gpt_messages(const struct json_t *messages, struct json_t **out,
                                 tr_error *err);

#endif
