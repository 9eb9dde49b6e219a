// What ends a model that gives texts labels.
#ifndef TR_MODELS_LABEL_HEAD_H
#define TR_MODELS_LABEL_HEAD_H

#include "models/task.h"

typedef struct tr_label_head {
    const char *name; // of its parameters, completed by the unit's prefix
    bool biased;
    int64_t width; // of x
    tr_init init;  // of the weight
} tr_label_head;

// The product of x [B, texts, width] with a row for each label, and the loss of the
// labels' kind. labels: those of tr_batch_labelled.
void tr__label_head(tr_graph *graph, const tr_label_head *head,
                    const tr_task_labels *labels, tr_value x, tr_value targets);

// The loss of embeddings x [B, texts, width].
void tr__embedding_head(tr_graph *graph, const tr_task_settings *task, tr_value x,
                        tr_value targets);

// What ends a decoder that reads whole texts: x [B, S, width], behind its last norm.
// Classification is by a text's last token, as transformers' classes do it.
void tr__text_head(tr_graph *graph, const tr_task_settings *task, tr_value x,
                   tr_init init);

#endif
