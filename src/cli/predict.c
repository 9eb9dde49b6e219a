// tranche predict: what a classifier, or a model of labels, says of each sample.
#include "cli/cli.h"
#include "cli/evaluate.h"
#include "cli/predictor.h"
#include "cli/run_options.h"
#include "report/screen.h"
#include "report/terminal.h"
#include "report/work.h"

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
                                  .messages = {.write = cli_say},
                                  .base = asked->base};
}

// In the order of the data. On a terminal the rows themselves show how far it is.
static tr_status predict(tr_evaluator *e, const cli_predictor *how, tr_error *err) {
    tr_predictions predictions = {.size = sizeof(tr_predictions), .count = 1};
    tr_status status = TR_OK;
    bool tells = !report_is_terminal(stdout);
    report_screen drawn;
    const tr_screen screen = report_screen_on(&drawn, stderr, true);
    report_work progress = report_work_begin(&screen, "predicting");
    if (!how->json) {
        cli_predictor_head(how);
    }
    while (status == TR_OK && predictions.count > 0 && !ferror(stdout)) {
        if (tells) {
            report_work_tell(&progress, predictions.first + predictions.count,
                             tr_evaluator_samples(e));
        }
        status = tr_evaluator_next(e, &predictions, err);
        for (int64_t i = 0; i < predictions.count && status == TR_OK; i++) {
            status = cli_predictor_row(how, predictions.first + i,
                                       predictions.logits + i * how->width, err);
        }
    }
    report_work_end(&progress);
    return status;
}

static tr_status ask(tr_evaluator *e, const char *path, bool json, tr_error *err) {
    const tr_model *model = tr_evaluator_model(e);
    if (model->embedding_width > 0) {
        return tr_fail(
            err, TR_USAGE,
            "%.300s: the model gives embeddings of texts: use tranche evaluate "
            "--embeddings",
            path);
    }
    if (tr_evaluator_positions(e) > 1 || (model->labels == 0 && !model->classifier)) {
        return tr_fail(err, TR_USAGE,
                       "%.300s: a %s gives logits for every position, not a class for "
                       "each sample: use tranche sample, or tranche evaluate --logits",
                       path, model->type);
    }
    cli_predictor how = {model, tr_evaluator_width(e), json, NULL};
    how.numbers = calloc((size_t)how.width, sizeof *how.numbers);
    tr_status status =
        how.numbers
            ? predict(e, &how, err)
            : tr_fail(err, TR_MEMORY, "no memory for %" PRId64 " classes", how.width);
    free(how.numbers);
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
        {"--format", CLI_TEXT, &asked.format, "FORMAT",
         "format of the data, in place of data.format"},
        {"--base", CLI_TEXT, &asked.base, "DIR",
         "of an adapter: its base, where that has moved"},
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
