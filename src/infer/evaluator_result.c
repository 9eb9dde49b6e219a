// What an evaluation comes to.
#include "base/arguments.h"
#include "infer/evaluator.h"

#include <math.h>

static tr_status need_evaluated(const tr_evaluated *result, const char *function,
                                tr_error *err) {
    static const tr_sized known = {"tr_evaluated", "TR_EVALUATED_INIT", sizeof *result,
                                   0};
    return tr__need_sized(result, &known, function, err);
}

tr_status tr_evaluator_result(const tr_evaluator *e, tr_evaluated *result,
                              tr_error *err) {
    static const char name[] = "tr_evaluator_result";
    tr_status status = tr__need(e, name, "evaluator", err);
    status = status == TR_OK ? need_evaluated(result, name, err) : status;
    if (status != TR_OK) {
        return status;
    }
    bool embeds = e->model->embedding_width > 0;
    bool values = e->model->label_kind == TR_LABELS_VALUE;
    double loss = embeds ? NAN : e->loss / e->count;
    const tr_retrieved found = e->retrieval && e->executor
                                   ? tr__retrieval_score(e->retrieval, e->next)
                                   : (tr_retrieved){NAN, NAN, NAN};
    const tr_evaluated made = {
        .samples = e->next,
        .targets = (int64_t)e->count,
        .loss = loss,
        .perplexity = tr__evaluator_has_numbers(e) ? NAN : exp(loss),
        .bits_per_byte = e->bytes ? loss / log(2) : NAN,
        .accuracy = embeds || values ? NAN : e->correct / e->count,
        .weights_rounded = e->rounded,
        .recall_at_1 = found.recall_at_1,
        .recall_at_10 = found.recall_at_10,
        .mrr = found.mrr};
    tr__give_sized(result, &made);
    return TR_OK;
}

tr_status tr_evaluate(const tr_evaluator_options *options, tr_evaluated *result,
                      tr_error *err) {
    tr_evaluator *e = NULL;
    tr_predictions predictions = TR_PREDICTIONS_INIT;
    tr_status status = need_evaluated(result, "tr_evaluate", err);
    if (status == TR_OK) {
        status = tr_evaluator_create(options, &e, err);
    }
    do {
        status = status == TR_OK ? tr_evaluator_next(e, &predictions, err) : status;
    } while (status == TR_OK && predictions.count > 0);
    if (status == TR_OK) {
        status = tr_evaluator_result(e, result, err);
    }
    tr_evaluator_destroy(e);
    return status;
}

int64_t tr_predict_class(const float *logits, int64_t classes, double *probabilities) {
    int64_t best = 0;
    double total = 0;
    for (int64_t v = 1; v < classes; v++) {
        best = logits[v] > logits[best] ? v : best;
    }
    for (int64_t v = 0; v < classes; v++) {
        total += exp((double)logits[v] - (double)logits[best]);
    }
    for (int64_t v = 0; v < classes && probabilities; v++) {
        probabilities[v] = exp((double)logits[v] - (double)logits[best]) / total;
    }
    return best;
}
