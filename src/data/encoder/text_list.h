// Texts as ids and types, one behind the other.
#ifndef TR_DATA_ENCODER_TEXT_LIST_H
#define TR_DATA_ENCODER_TEXT_LIST_H

#include "data/sources/joined.h"
#include "data/text/text_tokenizer.h"

typedef struct tr_text_list { // zero-initialized: empty
    tr_token_ids ids;         // of all texts
    uint8_t *type;            // [ids.count]
    size_t type_room;
    int64_t *first; // [count + 1] where each text begins
    size_t first_room;
    int32_t *classes; // [count] where texts have a class each
    float *numbers;   // [count * label_count] where they have numbers
    size_t classes_room, numbers_room;
    int64_t count, cut; // texts; those that are longer than a row
} tr_text_list;

// The special tokens around two texts, with their types. Part i stands before token
// part[i].place of them, and its tokens are of type part[i].type.
typedef struct tr_pair_part {
    size_t place;
    int32_t type;
} tr_pair_part;

typedef struct tr_pair_frame { // zero-initialized: not known
    tr_token_ids ids, types;
    tr_pair_part part[2];
} tr_pair_frame;

// How texts are read.
typedef struct tr_text_reading {
    const tr_data_options *options;
    const tr_text_tokenizer *by;
    const tr_joined *files;
    tr_encoder *encoder;
    tr_token_ids ids, types; // of the text that was encoded last
    tr_token_ids frame;      // of masked models: the special tokens around a text
    int words;               // likewise: tr_word_form
    tr_pair_frame *pairs;    // likewise: documents stay whole, and without special
                             // tokens, and the frame of pairs is found; NULL: not so
} tr_text_reading;

// Reads the texts of all files. TR_DATA names file and line.
tr_status tr__text_list_read(tr_text_reading *reading, tr_text_list *list,
                             tr_error *err);
void tr__text_list_release(tr_text_list *list);
int64_t tr__text_list_bytes(const tr_text_list *list);

#endif
