// tranche predict: what a classifier says of each sample.
#include "cli/cli.h"
#include "cli/evaluate.h"
#include "cli/json.h"
#include "cli/run_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

tr_evaluator_options cli_evaluator_options(const cli_ask *asked) {
    return (tr_evaluator_options){.size = sizeof(tr_evaluator_options),
                                  .path = asked->path,
                                  .data = asked->data.items,
                                  .data_count = asked->data.count,
                                  .format = asked->format,
                                  .set = asked->set.items,
                                  .set_count = asked->set.count,
                                  .messages = {.write = cli_say}};
}

static void print_head(int64_t classes) {
    printf("sample,class");
    for (int64_t v = 0; v < classes; v++) {
        printf(",p%" PRId64, v);
    }
    putchar('\n');
}

// What is said of one sample.
typedef struct prediction {
    int64_t sample, best;
    const double *probabilities; // [classes]
    int64_t classes;
} prediction;

static tr_status print_row(const prediction *p, tr_error *err) {
    (void)err;
    printf("%" PRId64 ",%" PRId64, p->sample, p->best);
    for (int64_t v = 0; v < p->classes; v++) {
        printf(",%.6g", p->probabilities[v]);
    }
    putchar('\n');
    return TR_OK;
}

static tr_status print_object(const prediction *p, tr_error *err) {
    enum { DIGITS = 9 };
    json_t *list = json_array();
    for (int64_t v = 0; v < p->classes; v++) {
        json_array_append_new(list, cli_json_number(p->probabilities[v]));
    }
    if (json_array_size(list) != (size_t)p->classes) { // no memory on the way
        json_decref(list);
        list = NULL;
    }
    tr_status status =
        cli_json_line(json_pack("{s:I, s:I, s:o}", "sample", (json_int_t)p->sample,
                                "class", (json_int_t)p->best, "probabilities", list),
                      DIGITS, err);
    putchar('\n');
    return status;
}

// In the order of the data.
static tr_status predict(tr_evaluator *e, bool json, double *probabilities,
                         tr_error *err) {
    int64_t classes = tr_evaluator_model(e)->classes;
    tr_predictions predictions = {.size = sizeof(tr_predictions), .count = 1};
    tr_status status = TR_OK;
    if (!json) {
        print_head(classes);
    }
    while (status == TR_OK && predictions.count > 0 && !ferror(stdout)) {
        status = tr_evaluator_next(e, &predictions, err);
        for (int64_t i = 0; i < predictions.count && status == TR_OK; i++) {
            const prediction p = {predictions.first + i,
                                  tr_predict_class(predictions.logits + i * classes,
                                                   classes, probabilities),
                                  probabilities, classes};
            status = (json ? print_object : print_row)(&p, err);
        }
    }
    return status;
}

static tr_status ask(tr_evaluator *e, const char *path, bool json, tr_error *err) {
    const tr_model *model = tr_evaluator_model(e);
    if (tr_evaluator_positions(e) > 1) {
        return tr_fail(err, TR_USAGE,
                       "%.300s: a %s gives logits for every position, not a class for "
                       "each sample: use tranche sample, or tranche evaluate --logits",
                       path, model->type);
    }
    double *probabilities = calloc((size_t)model->classes, sizeof *probabilities);
    tr_status status =
        probabilities ? predict(e, json, probabilities, err)
                      : tr_fail(err, TR_MEMORY, "no memory for %" PRId64 " classes",
                                model->classes);
    free(probabilities);
    return status;
}

int cli_predict(const cli_command *command, int argc, char **argv) {
    cli_ask asked = {0};
    tr_error err = {0};
    tr_evaluator *e = NULL;
    int exit_status;
    const cli_option options[] = {
        {"--data", CLI_LIST, &asked.data, "PATH",
         "files, folders or globs; labels may be missing"},
        {"--format", CLI_TEXT, &asked.format, "F",
         "format of the data, in place of data.format"},
        {"--set", CLI_LIST, &asked.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
        {"--json", CLI_FLAG, &asked.json, NULL,
         "prints a JSON object for each sample, in place of csv"},
    };
    cli_operands operands = {&asked.path, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_evaluator_options how = cli_evaluator_options(&asked);
    how.labels_optional = true;
    tr_status status = tr_evaluator_create(&how, &e, &err);
    if (status == TR_OK) {
        status = ask(e, asked.path, asked.json, &err);
    }
    tr_evaluator_destroy(e);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}
