#include "cli/predictor.h"

#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 9 };

// A field of csv, in quotes where it needs them.
static void print_field(const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') {
            putchar('"');
        }
        putchar(*text);
    }
    putchar('"');
}

void cli_predictor_head(const cli_predictor *p) {
    static const char *const columns[] = {[TR_LABELS_NONE] = "sample,class",
                                          [TR_LABELS_CLASS] = "sample,label",
                                          [TR_LABELS_SET] = "sample,labels",
                                          [TR_LABELS_VALUE] = "sample"};
    fputs(columns[p->model->label_kind], stdout);
    for (int64_t v = 0; v < p->width; v++) {
        putchar(',');
        if (p->model->label_names) {
            print_field(p->model->label_names[v]);
        } else {
            printf("p%" PRId64, v);
        }
    }
    putchar('\n');
}

// ---- numbers of a row

// Softmax, a probability for each label alone, or values as they are. Returns the
// class.
static int64_t compute(const cli_predictor *p, const float *logits) {
    int64_t best = tr_predict_class(logits, p->width, p->numbers);
    for (int64_t v = 0; v < p->width; v++) {
        if (p->model->label_kind == TR_LABELS_SET) {
            p->numbers[v] = 1 / (1 + exp(-(double)logits[v]));
        } else if (p->model->label_kind == TR_LABELS_VALUE) {
            p->numbers[v] = logits[v];
        }
    }
    return best;
}

// Those of a set are separated by "|".
static void print_labels(const cli_predictor *p, const float *logits) {
    bool some = false;
    for (int64_t v = 0; v < p->width; v++) {
        if (logits[v] > 0) {
            fputs(some ? "|" : "", stdout);
            print_field(p->model->label_names[v]);
            some = true;
        }
    }
}

static void print_row(const cli_predictor *p, int64_t sample, int64_t best,
                      const float *logits) {
    printf("%" PRId64, sample);
    if (p->model->label_kind == TR_LABELS_NONE) {
        printf(",%" PRId64, best);
    } else if (p->model->label_kind == TR_LABELS_CLASS) {
        putchar(',');
        print_field(p->model->label_names[best]);
    } else if (p->model->label_kind == TR_LABELS_SET) {
        putchar(',');
        print_labels(p, logits);
    }
    for (int64_t v = 0; v < p->width; v++) {
        printf(",%.6g", p->numbers[v]);
    }
    putchar('\n');
}

// ---- json

static json_t *label_list(const cli_predictor *p, const float *logits) {
    json_t *list = json_array();
    for (int64_t v = 0; v < p->width; v++) {
        if (logits[v] > 0) {
            json_array_append_new(list, json_string(p->model->label_names[v]));
        }
    }
    return list;
}

static tr_status print_object(const cli_predictor *p, int64_t sample, int64_t best,
                              const float *logits, tr_error *err) {
    tr_label_kind kind = p->model->label_kind;
    json_t *numbers = json_array(), *row = json_object();
    for (int64_t v = 0; v < p->width; v++) {
        json_array_append_new(numbers, cli_json_number(p->numbers[v]));
    }
    json_object_set_new(row, "sample", json_integer(sample));
    if (kind == TR_LABELS_NONE || kind == TR_LABELS_CLASS) {
        json_object_set_new(row, "class", json_integer(best));
    }
    if (kind == TR_LABELS_CLASS) {
        json_object_set_new(row, "label", json_string(p->model->label_names[best]));
    } else if (kind == TR_LABELS_SET) {
        json_object_set_new(row, "labels", label_list(p, logits));
    }
    bool whole =
        json_array_size(numbers) == (size_t)p->width &&
        json_object_set_new(row, kind == TR_LABELS_VALUE ? "values" : "probabilities",
                            numbers) == 0;
    if (!whole) { // no memory on the way
        json_decref(row);
        row = NULL;
    }
    tr_status status = cli_json_line(row, DIGITS, err);
    putchar('\n');
    return status;
}

tr_status cli_predictor_row(const cli_predictor *p, int64_t sample, const float *logits,
                            tr_error *err) {
    int64_t best = compute(p, logits);
    if (p->json) {
        return print_object(p, sample, best, logits, err);
    }
    print_row(p, sample, best, logits);
    return TR_OK;
}
