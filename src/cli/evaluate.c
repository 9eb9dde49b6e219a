// tranche evaluate: how well a trained model does on data.
#include "cli/evaluate.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "report/screen.h"
#include "report/terminal.h"
#include "report/work.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_number(const char *name, double value, const char *unit) {
    if (isfinite(value)) {
        printf("%-14s %.6g%s\n", name, value, unit);
    }
}

static void print(const tr_evaluated *r, bool embeds) {
    printf("%-14s %" PRId64 "\n%-14s %" PRId64 "\n", "samples", r->samples,
           embeds ? "texts" : "targets", r->targets);
    print_number("loss", r->loss, "");
    print_number("perplexity", r->perplexity, "");
    print_number("bits per byte", r->bits_per_byte, "");
    print_number("accuracy", 100 * r->accuracy, " %");
    print_number("recall at 1", 100 * r->recall_at_1, " %");
    print_number("recall at 10", 100 * r->recall_at_10, " %");
    print_number("mrr", r->mrr, "");
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
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "samples",
        (json_int_t)r->samples, "targets", (json_int_t)r->targets, "loss",
        cli_json_number(r->loss), "perplexity", cli_json_number(r->perplexity),
        "bits_per_byte", cli_json_number(r->bits_per_byte), "accuracy",
        cli_json_number(r->accuracy), "recall_at_1", cli_json_number(r->recall_at_1),
        "recall_at_10", cli_json_number(r->recall_at_10), "mrr",
        cli_json_number(r->mrr), "weights_rounded", r->weights_rounded,
        "planned_peak_bytes", peak);
    tr_status status = cli_json_line(all, 0, err);
    putchar('\n');
    return status;
}

// What is written of what the model says: one of both, or nothing (NULL).
typedef struct wanted {
    const char *logits, *embeddings;
} wanted;

static tr_status begin(const tr_evaluator *e, const wanted *w, cli_output *file,
                       tr_error *err) {
    int64_t width = tr_evaluator_width(e);
    const int64_t logits[] = {tr_evaluator_samples(e), tr_evaluator_positions(e),
                              width};
    const int64_t embeddings[] = {tr_evaluator_texts(e), width};
    const char *path = w->logits ? w->logits : w->embeddings;
    tr_status status = path ? cli_output_open(file, path, err) : TR_OK;
    if (status != TR_OK || !path) {
        return status;
    }
    return w->logits ? cli_npy_begin(file, logits, 3, err)
                     : cli_npy_begin(file, embeddings, 2, err);
}

// Each embedding in its text's place.
static tr_status write_embeddings(const tr_evaluator *e, const cli_output *file,
                                  const tr_predictions *p, tr_error *err) {
    int64_t width = tr_evaluator_width(e);
    tr_status status = TR_OK;
    for (int64_t i = 0; i < p->count * tr_evaluator_positions(e); i++) {
        if (status == TR_OK && p->targets[i] >= 0) {
            status = cli_npy_write_at(file, p->targets[i] * width,
                                      p->logits + i * width, width, err);
        }
    }
    return status;
}

// Has each text of the data its embedding?
static tr_status check_whole(const tr_evaluator *e, tr_error *err) {
    tr_evaluated found = TR_EVALUATED_INIT;
    tr_status status = tr_evaluator_result(e, &found, err);
    if (status != TR_OK || found.targets == tr_evaluator_texts(e)) {
        return status;
    }
    return tr_fail(err, TR_USAGE,
                   "--embeddings writes those of whole data, and the run's validation "
                   "data are a part: give --data PATH");
}

// All samples; what is wanted goes into the file, which is complete or not there.
static tr_status ask(tr_evaluator *e, const wanted *w, tr_error *err) {
    cli_output file = {0};
    int64_t row = tr_evaluator_positions(e) * tr_evaluator_width(e);
    tr_predictions p = {.size = sizeof(tr_predictions), .count = 1};
    report_screen drawn;
    const tr_screen screen = report_screen_on(&drawn, stderr, true);
    report_work progress = report_work_begin(&screen, "evaluating");
    tr_status status = begin(e, w, &file, err);
    while (status == TR_OK && p.count > 0) {
        report_work_tell(&progress, p.first + p.count, tr_evaluator_samples(e));
        status = tr_evaluator_next(e, &p, err);
        if (status == TR_OK && w->logits && p.count > 0) {
            status = cli_npy_write(&file, p.logits, p.count * row, err);
        } else if (status == TR_OK && w->embeddings) {
            status = write_embeddings(e, &file, &p, err);
        }
    }
    report_work_end(&progress);
    if (status == TR_OK && w->embeddings) {
        status = check_whole(e, err);
    }
    return cli_output_close(&file, status, err);
}

static tr_status check_wanted(const tr_evaluator *e, const wanted *w, tr_error *err) {
    bool embeds = tr_evaluator_model(e)->embedding_width > 0;
    if (w->logits && embeds) {
        return tr_fail(err, TR_USAGE,
                       "--logits: the model gives embeddings of texts; --embeddings "
                       "FILE.npy writes them");
    }
    if (w->embeddings && !embeds) {
        return tr_fail(err, TR_USAGE,
                       "--embeddings: a model of type %s gives logits; --logits "
                       "FILE.npy writes them",
                       tr_evaluator_model(e)->type);
    }
    return TR_OK;
}

static tr_status evaluate(tr_evaluator *e, const wanted *w, bool json, tr_error *err) {
    tr_status status = check_wanted(e, w, err);
    status = status == TR_OK ? ask(e, w, err) : status;
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
    print(&result, tr_evaluator_texts(e) > 0);
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
    wanted w = {NULL, NULL};
    bool plan = false;
    int exit_status;
    const cli_option options[] = {
        {"--data", CLI_LIST, &asked.data, "PATH",
         "files, folders or globs (default: the run's validation data)"},
        {"--format", CLI_TEXT, &asked.format, "FORMAT",
         "format of the data, in place of data.format"},
        {"--base", CLI_TEXT, &asked.base, "DIR",
         "of an adapter: its base, where that has moved"},
        {"--set", CLI_LIST, &asked.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
        {"--logits", CLI_TEXT, &w.logits, "FILE.npy",
         "writes the logits: [samples, positions, vocabulary] f32"},
        {"--embeddings", CLI_TEXT, &w.embeddings, "FILE.npy",
         "writes the embeddings of texts: [texts, width] f32"},
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
    if (w.logits && w.embeddings) {
        tr_fail(&err, TR_USAGE,
                "a model gives logits or embeddings: leave out --logits or "
                "--embeddings");
        return cli_fail(&err);
    }
    if (plan && (w.logits || w.embeddings)) {
        tr_fail(&err, TR_USAGE, "--plan computes nothing: leave out --plan or %s",
                w.logits ? "--logits" : "--embeddings");
        return cli_fail(&err);
    }
    tr_status status = tr_evaluator_create(&how, &e, &err);
    if (status == TR_OK) {
        status =
            plan ? print_plan(e, asked.json, &err) : evaluate(e, &w, asked.json, &err);
    }
    tr_evaluator_destroy(e);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}
