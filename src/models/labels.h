// The labels of texts among the keys of a config.json: id2label, num_labels and
// problem_type, as transformers has them.
#ifndef TR_MODELS_LABELS_H
#define TR_MODELS_LABELS_H

#include "models/fields.h"
#include "models/task.h"

// What the keys say: kind TR_LABELS_NONE where they do not say which, count 0 where
// they do not say how many. The caller releases *out. TR_USAGE.
tr_status tr__labels_read(const tr_model_keys *keys, tr_task_labels *out,
                          tr_error *err);
void tr__labels_release(tr_task_labels *labels);
// `count` names "LABEL_0", ...; false: no memory.
bool tr__labels_number(tr_task_labels *labels, int64_t count);
// A copy. False: no memory.
bool tr__labels_copy(const tr_task_labels *labels, tr_task_labels *out);
// Sets the keys in a config.json. False: no memory.
bool tr__labels_write(const tr_task_labels *labels, json_t *to);

#endif
