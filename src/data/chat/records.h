// Records of instruction data as the ids and the labels that they are trained with,
// the same as TRL's SFTTrainer makes.
//
// A record is a text, a prompt with its completion, or a conversation:
//     {"text": "..."}
//     {"prompt": "...", "completion": "..."}, or both lists of messages
//     {"messages": [{"role": "user", "content": "..."}, ...], "tools": [...]}
//     {"conversations": [{"from": "human", "value": "..."}, ...]}, as ShareGPT has it
// All records of a data set are of one kind.
#ifndef TR_DATA_CHAT_RECORDS_H
#define TR_DATA_CHAT_RECORDS_H

#include "data/chat/chat.h"
#include "data/text/text_tokenizer.h"

typedef enum tr_loss_on {
    TR_LOSS_DEFAULT, // completion where there is one, else all
    TR_LOSS_ALL,
    TR_LOSS_COMPLETION,
    TR_LOSS_ASSISTANT,
} tr_loss_on;

typedef enum tr_record_kind {
    TR_RECORD_NONE, // not known yet
    TR_RECORD_TEXT,
    TR_RECORD_COMPLETION,
    TR_RECORD_CHAT,
    TR_RECORD_CHAT_COMPLETION, // prompt and completion are messages
} tr_record_kind;

typedef struct tr_records {
    tr_data_fields fields;
    tr_loss_on loss_on;
    const tr_text_tokenizer *by;
    bool plain_special;   // special tokens that are written in texts are text
    tr_encoder *encoder;  // of this tokenizer
    const tr_chat *chat;  // NULL: there is none
    const char *no_chat;  // why
    tr_record_kind kind;  // of the records so far
    tr_token_ids ids;     // of the record that was encoded last,
    tr_token_ids labels;  // [ids.count]: the id, or TR_NO_TARGET
    tr_token_ids scratch; // of a part of a text
} tr_records;

// "all", "completion", "assistant"; NULL: the default. TR_USAGE names the nearest.
tr_status tr__loss_on_parse(const char *name, tr_loss_on *loss_on, tr_error *err);
// What the loss is on, in words, once the kind is known.
const char *tr__records_loss(const tr_records *records);
const char *tr__records_kind(tr_record_kind kind); // "conversations"

// To records->ids and records->labels. TR_DATA: the record is none, or of another kind
// than those before. The message says nothing of where the record is.
tr_status tr__record_encode(tr_records *records, const struct json_t *record,
                            tr_error *err);
void tr__records_release(tr_records *records);

#endif
