// What a model is for, as "task" of a run file names it.
#ifndef TR_MODELS_TASK_H
#define TR_MODELS_TASK_H

#include <tranche/extend/graph.h>

typedef enum tr_model_task {
    TR_TASK_CAUSAL_LM,      // each token from those before it
    TR_TASK_MASKED_LM,      // masked tokens from all others
    TR_TASK_CLASSIFICATION, // a class for each text
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

#endif
