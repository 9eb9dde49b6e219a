// What trains on data: a model of the size that they and this machine are fit for.
#ifndef TR_CLI_INIT_MODEL_H
#define TR_CLI_INIT_MODEL_H

#include "cli/init_data.h"

typedef struct cli_init_choice {
    const char *model; // asked for; NULL: a new one
    // A new model of text: GPT-2's.
    int layers, width, heads;
    int64_t positions; // tokens of a sample
    int64_t samples;   // windows of text or ids, records, rows
    int64_t hidden;    // a new classifier: width of its layer
    int64_t batch, micro_batch;
    int64_t steps, epochs; // one of them; 0: the other
    bool bf16;
    bool validation;
} cli_init_choice;

// Fills in all but `model` and `micro_batch`. TR_USAGE: the data need a model that has
// a tokenizer; TR_DATA: there are too few.
tr_status cli_init_choose(const cli_data *data, cli_init_choice *choice, tr_error *err);
// The text of the run file, which the caller frees. TR_USAGE: a path is no UTF-8;
// TR_MEMORY.
tr_status cli_init_write(const cli_data *data, const cli_init_choice *choice,
                         char **text, tr_error *err);

#endif
