// What a model is for, as "task" of a run file names it.
#ifndef TR_MODELS_TASK_H
#define TR_MODELS_TASK_H

#include <tranche/extend/graph.h>

typedef enum tr_model_task {
    TR_TASK_CAUSAL_LM,      // each token from those before it
    TR_TASK_MASKED_LM,      // masked tokens from all others
    TR_TASK_CLASSIFICATION, // labels for each text
    TR_TASK_CONTRASTIVE,    // an embedding for each text
    TR_TASKS
} tr_model_task;

// "causal_lm", ...; [TR_TASKS]
extern const char *const tr__task_names[TR_TASKS];

// How a text's embedding is made of what its tokens give.
typedef struct tr_embedding_way {
    tr_text_pooling pooling;
    bool normalize; // to length 1
} tr_embedding_way;

// The labels of texts: their kind, how many there are, and their names [count] (NULL:
// they have none).
typedef struct tr_task_labels {
    tr_label_kind kind;
    int64_t count;
    char **names;
} tr_task_labels;

// How embeddings are trained: groups of `texts` (an anchor, its positive and perhaps a
// negative) a sample, `groups` samples a step at most. texts 0: they are not.
typedef struct tr_contrastive_way {
    double temperature;
    bool learned; // the temperature is trained, from that one on
    bool symmetric;
    bool mask_equal; // equal texts are not each other's negatives
    int64_t texts, groups;
} tr_contrastive_way;

// A task, and what it needs to know.
typedef struct tr_task_settings {
    tr_model_task task;
    tr_embedding_way embedding; // contrastive
    tr_contrastive_way contrast;
    tr_task_labels labels; // classification
    double masked; // masked_lm: the share of tokens that are to be told; 0: not known
    bool next_sentence; // masked_lm: does the second span follow the first, too?
} tr_task_settings;

#endif
