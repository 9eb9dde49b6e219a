#include "cli/files.h"
#include "cli/init_data.h"
#include "cli/init_model.h"
#include "cli/run_options.h"
#include "report/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATA_MAX = 64 };

// ---- does it train here?

static tr_status make_plan(const char *text, tr_run **run, tr_plan **plan,
                           tr_error *err) {
    tr_status status = tr_run_create(run, err);
    if (status == TR_OK) {
        status = tr_run_load_text(*run, text, err);
    }
    if (status == TR_OK) {
        status = tr_run_set(*run, "choose_device", "true", err);
    }
    if (status == TR_OK) {
        status = tr_run_set(*run, "plan_only", "true", err);
    }
    if (status == TR_OK) {
        status = tr_run_resolve(*run, err);
    }
    if (status == TR_OK) {
        status = tr_run_make_plan(*run, plan, err);
    }
    return status == TR_OK ? tr_run_check_memory(*run, *plan, err) : status;
}

typedef struct made {
    char *text; // of the run file
    tr_run *run;
    tr_plan *plan;
} made;

static void clear(made *of) {
    tr_plan_destroy(of->plan);
    tr_run_destroy(of->run);
    free(of->text);
    *of = (made){0};
}

// With micro-batches as large as this machine has memory for.
static tr_status make(const cli_data *data, cli_init_choice *choice, made *out,
                      tr_error *err) {
    tr_status status = TR_BUDGET;
    for (choice->micro_batch = choice->batch; status == TR_BUDGET;
         choice->micro_batch /= 2) {
        clear(out);
        status = cli_init_write(data, choice, &out->text, err);
        if (status == TR_OK) {
            status = make_plan(out->text, &out->run, &out->plan, err);
        }
        if (choice->micro_batch == 1) {
            break;
        }
    }
    return status;
}

// ---- the file

// Whoever sends standard output on, to a file or another program, wants the run file
// there.
static bool is_sent_on(void) {
    return !isatty(STDOUT_FILENO);
}

static tr_status write_file(const char *path, const char *text, tr_error *err) {
    cli_output out;
    if (!path) {
        fputs(text, stdout);
        return TR_OK; // cli_end looks whether it was written
    }
    if (access(path, F_OK) == 0) {
        return tr_fail(err, TR_USAGE,
                       "%.300s is there already: give the run file another name with "
                       "--out",
                       path);
    }
    tr_status status = cli_output_open(&out, path, err);
    if (status == TR_OK) {
        fputs(text, out.to);
    }
    return cli_output_close(&out, status, err);
}

// path: NULL: standard output.
static void say(const char *path, const made *of) {
    char size[32];
    FILE *to = path ? stdout : stderr;
    const tr_ledger *ledger = tr_plan_ledger(of->plan);
    int64_t bytes = ledger->total[TR_SPACE_DEVICE] + ledger->total[TR_SPACE_HOST] +
                    TR_PROCESS_BYTES;
    report_print_name(to, path ? path : "standard output");
    fprintf(to, ": %lld parameters, %lld steps, in %s of memory\n",
            (long long)tr_plan_parameters(of->plan), (long long)tr_run_steps(of->run),
            tr_size_words(bytes, size, sizeof size));
    if (path) {
        fputs("next: tranche train ", to);
        report_print_name(to, path);
        fputc('\n', to);
    }
}

static tr_status init(const char **paths, size_t count, cli_init_choice *choice,
                      const char *out, tr_error *err) {
    cli_data data;
    made of = {0};
    tr_status status = cli_data_look(paths, count, &data, err);
    if (status == TR_OK) {
        status = cli_init_choose(&data, choice, err);
    }
    if (status == TR_OK) {
        status = make(&data, choice, &of, err);
    }
    if (status == TR_OK) {
        status = write_file(out, of.text, err);
    }
    if (status == TR_OK) {
        say(out, &of);
    }
    clear(&of);
    return status;
}

int cli_init(const cli_command *command, int argc, char **argv) {
    const char *paths[DATA_MAX], *out = NULL;
    cli_init_choice choice = {0};
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--out", CLI_TEXT, &out, "FILE.json",
         "the run file that is written; - is standard output (default: run.json on a "
         "terminal, else standard output)"},
        {"--model", CLI_TEXT, &choice.model, "DIR|NAME",
         "trains an adapter of this model, with its tokenizer, in place of a new "
         "model"},
    };
    cli_operands operands = {paths, 1, DATA_MAX, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    if (!out) {
        out = is_sent_on() ? "-" : "run.json";
    }
    if (strcmp(out, "-") == 0) {
        out = NULL;
    }
    if (init(paths, operands.count, &choice, out, &err) != TR_OK) {
        return cli_fail(&err);
    }
    return cli_end(TR_OK);
}
