// tranche evaluate: how well a trained model does on data.
#include "cli/evaluate.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "report/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_number(const char *name, double value, const char *unit) {
    if (isfinite(value)) {
        printf("%-14s %.6g%s\n", name, value, unit);
    }
}

static void print(const tr_evaluated *r) {
    printf("%-14s %" PRId64 "\n%-14s %" PRId64 "\n", "samples", r->samples, "targets",
           r->targets);
    print_number("loss", r->loss, "");
    print_number("perplexity", r->perplexity, "");
    print_number("bits per byte", r->bits_per_byte, "");
    print_number("accuracy", 100 * r->accuracy, " %");
    if (r->weights_rounded) {
        printf("%-14s %s\n", "weights",
               "rounded to bf16 (checkpoint.dtype): the loss is near that of the run");
    }
}

static tr_status print_json(const tr_evaluated *r, const tr_ledger *ledger,
                            tr_error *err) {
    json_t *peak =
        json_pack("{s:I, s:I}", "device", (json_int_t)ledger->total[TR_SPACE_DEVICE],
                  "host", (json_int_t)ledger->total[TR_SPACE_HOST]);
    json_t *all = json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:o}", "samples", (json_int_t)r->samples,
        "targets", (json_int_t)r->targets, "loss", cli_json_number(r->loss),
        "perplexity", cli_json_number(r->perplexity), "bits_per_byte",
        cli_json_number(r->bits_per_byte), "accuracy", cli_json_number(r->accuracy),
        "weights_rounded", r->weights_rounded, "planned_peak_bytes", peak);
    tr_status status = cli_json_line(all, 0, err);
    putchar('\n');
    return status;
}

// All samples; the logits go into the file, which is complete or not there.
static tr_status ask(tr_evaluator *e, const char *logits, tr_error *err) {
    cli_output file = {0};
    int64_t row = tr_evaluator_positions(e) * tr_evaluator_model(e)->classes;
    const int64_t shape[3] = {tr_evaluator_samples(e), tr_evaluator_positions(e),
                              tr_evaluator_model(e)->classes};
    tr_predictions predictions = {.size = sizeof(tr_predictions), .count = 1};
    tr_status status = logits ? cli_output_open(&file, logits, err) : TR_OK;
    if (status == TR_OK && logits) {
        status = cli_npy_begin(&file, shape, err);
    }
    while (status == TR_OK && predictions.count > 0) {
        status = tr_evaluator_next(e, &predictions, err);
        if (status == TR_OK && logits && predictions.count > 0) {
            status =
                cli_npy_write(&file, predictions.logits, predictions.count * row, err);
        }
    }
    return cli_output_close(&file, status, err);
}

static tr_status evaluate(tr_evaluator *e, const char *logits, bool json,
                          tr_error *err) {
    tr_status status = ask(e, logits, err);
    if (status != TR_OK) {
        return status;
    }
    tr_evaluated result = TR_EVALUATED_INIT;
    status = tr_evaluator_result(e, &result, err);
    if (status != TR_OK) {
        return status;
    }
    if (json) {
        return print_json(&result, tr_plan_ledger(tr_evaluator_plan(e)), err);
    }
    print(&result);
    return TR_OK;
}

static tr_status print_plan(const tr_evaluator *e, bool json, tr_error *err) {
    const tr_plan *plan = tr_evaluator_plan(e);
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    tr_status status =
        json ? tr_plan_print_json(plan, &to, err) : tr_plan_print(plan, &to, err);
    if (status == TR_OK) {
        cli_plan_fits(plan, "evaluating this model");
    }
    return status;
}

int cli_evaluate(const cli_command *command, int argc, char **argv) {
    cli_ask asked = {0};
    tr_error err = {0};
    tr_evaluator *e = NULL;
    const char *logits = NULL;
    bool plan = false;
    int exit_status;
    const cli_option options[] = {
        {"--data", CLI_LIST, &asked.data, "PATH",
         "files, folders or globs (default: the run's validation data)"},
        {"--format", CLI_TEXT, &asked.format, "F",
         "format of the data, in place of data.format"},
        {"--set", CLI_LIST, &asked.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
        {"--logits", CLI_TEXT, &logits, "FILE.npy",
         "writes the logits: [samples, positions, vocabulary] f32"},
        {"--plan", CLI_FLAG, &plan, NULL,
         "prints the plan of a batch of samples, with its memory, and reads no "
         "weights"},
        {"--json", CLI_FLAG, &asked.json, NULL, "prints one JSON object"},
    };
    cli_operands operands = {&asked.path, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_evaluator_options how = cli_evaluator_options(&asked);
    how.plan_only = plan;
    if (plan && logits) {
        tr_fail(&err, TR_USAGE,
                "--plan computes no logits: leave out --plan or --logits");
        return cli_fail(&err);
    }
    tr_status status = tr_evaluator_create(&how, &e, &err);
    if (status == TR_OK) {
        status = plan ? print_plan(e, asked.json, &err)
                      : evaluate(e, logits, asked.json, &err);
    }
    tr_evaluator_destroy(e);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}
