// What an evaluator says of itself.
#include "infer/evaluator.h"

const tr_plan *tr_evaluator_plan(const tr_evaluator *e) {
    return e ? e->plan : NULL;
}

const tr_model *tr_evaluator_model(const tr_evaluator *e) {
    return e ? e->model : NULL;
}

int64_t tr_evaluator_samples(const tr_evaluator *e) {
    return e ? e->samples : 0;
}

int64_t tr_evaluator_width(const tr_evaluator *e) {
    return e ? e->width : 0;
}

int64_t tr_evaluator_texts(const tr_evaluator *e) {
    return e && e->model->embedding_width > 0 && e->data ? tr_dataset_classes(e->data)
                                                         : 0;
}

int64_t tr_evaluator_positions(const tr_evaluator *e) {
    return e ? e->positions : 0;
}
