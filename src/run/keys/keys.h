// The tables of a run file's keys, in the order in which run.json shows them.
#ifndef TR_RUN_KEYS_KEYS_H
#define TR_RUN_KEYS_KEYS_H

#include "config/keys.h"
#include "run/idle.h"
#include "run/settings.h"

extern const tr_key_table tr__keys_run;       // model, batch, length, execution, memory
extern const tr_key_table tr__keys_data;      // data
extern const tr_key_table tr__keys_optimizer; // optimizer, those of each type, clipping
extern const tr_key_table tr__keys_scheduler; // scheduler
extern const tr_key_table tr__keys_batch;     // what follows the batch; the spike guard
extern const tr_key_table tr__keys_precision; // fp16, bf16, data types
extern const tr_key_table tr__keys_zero;      // ZeRO, recomputation
extern const tr_key_table tr__keys_deepspeed; // the rest of DeepSpeed's keys
extern const tr_key_table tr__keys_call;      // what only the caller says

extern const tr_key_name tr__key_names[]; // what others call them; the last has no name

enum { TR_KEY_TABLES = 9 };
extern const tr_key_table *const tr__key_tables[TR_KEY_TABLES];

// The field of tr_settings that a key's value goes into.
#define SETTING(field)                                                                 \
    .offset = offsetof(tr_settings, field), .size = sizeof((tr_settings *)NULL)->field

// Upper bounds of the tables, named for what they bound.
#define TR_KEY_COUNT_MAX   0x1p31 // samples, steps of accumulation
#define TR_KEY_SLICES_MAX  16     // slices of the vocabulary
#define TR_KEY_PADDING_MAX 65536  // of the vocabulary
#define TR_KEY_LOGITS_MAX  65536  // MiB of logits
#define TR_KEY_STEPS_MAX   0x1p40 // optimizer steps
#define TR_KEY_BYTES_MAX   0x1p53 // of memory

#endif
