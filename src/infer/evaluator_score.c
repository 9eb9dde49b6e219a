// What a prediction comes to beside its target.
#include "infer/evaluator.h"

#include <math.h>

bool tr__evaluator_has_numbers(const tr_evaluator *e) {
    return e->model->label_kind == TR_LABELS_SET ||
           e->model->label_kind == TR_LABELS_VALUE;
}

// A text's numbers, one by one.
static void score_numbers(tr_evaluator *e, const float *logits, const float *targets) {
    for (int64_t v = 0; v < e->width; v++) {
        double x = logits[v], t = targets[v];
        bool value = e->model->label_kind == TR_LABELS_VALUE;
        e->loss +=
            value ? (x - t) * (x - t) : (x < 0 ? 0 : x) - x * t + log1p(exp(-fabs(x)));
        e->count += 1;
        e->correct += (x > 0) == (t > 0.5);
    }
}

static void score_row(tr_evaluator *e, const float *logits, int32_t target) {
    double total = 0;
    int64_t classes = e->width, best = 0;
    for (int64_t v = 1; v < classes; v++) {
        best = logits[v] > logits[best] ? v : best;
    }
    for (int64_t v = 0; v < classes; v++) {
        total += exp((double)logits[v] - (double)logits[best]);
    }
    e->loss += log(total) + (double)logits[best] - (double)logits[target];
    e->count += 1;
    e->correct += best == target;
}

void tr__evaluator_score(tr_evaluator *e, const float *logits, int64_t i) {
    if (tr__evaluator_has_numbers(e)) {
        score_numbers(e, logits, e->numbers + i * e->width);
    } else {
        score_row(e, logits, e->targets[i]);
    }
}
