// Files of a Hugging Face folder that go with the weights: the tokenizer's, chat
// templates, how to generate. They are copied into every checkpoint as they are.
#ifndef TR_FILES_CHECKPOINT_COMPANIONS_H
#define TR_FILES_CHECKPOINT_COMPANIONS_H

#include "files/checkpoint/state.h"

#include <tranche/status.h>

#include <stdbool.h>

enum { TR_COMPANIONS_MAX = 16 };

// Open from the begin of a run to its end: what happens to their folder meanwhile does
// not keep a checkpoint from being saved.
typedef struct tr_companions { // zero-initialized: none
    int count;
    struct {
        const char *name; // in the checkpoint
        char *path;       // for messages
        int file;
    } item[TR_COMPANIONS_MAX];
} tr_companions;

// Opens those that are there. tokenizer: a folder, or a file that becomes the
// checkpoint's tokenizer.json; NULL: the model's folder has the tokenizer's files, too.
// model: the folder of the model; NULL: none. TR_IO: one cannot be opened.
tr_status tr__companions_open(const char *tokenizer, const char *model,
                              tr_companions *out, tr_error *err);
// Opens `path` as the chat template of the checkpoints, in place of the folder's.
tr_status tr__companions_set_template(tr_companions *companions, const char *path,
                                      tr_error *err);
bool tr__companions_have(const tr_companions *companions, const char *name);
void tr__companions_close(tr_companions *companions);

// Writes companion `index` into a folder, synced, and fills its record.
tr_status tr__companion_copy(const tr_companions *companions, int index,
                             const char *folder, tr_file_record *record, tr_error *err);

#endif
