#include "cli/run_options.h"

#include "report/terminal.h"

#include <stdio.h>

void cli_say(void *user, tr_message_level level, const char *line) {
    (void)user;
    if (level == TR_MESSAGE_WARNING) {
        report_print_colored_line(stderr, REPORT_YELLOW, "warning: ", line);
    } else {
        report_print_line(stderr, "", line);
    }
}

void cli_say_warning(void *user, tr_message_level level, const char *line) {
    if (level == TR_MESSAGE_WARNING) {
        cli_say(user, level, line);
    }
}

static tr_status set_number(tr_run *run, const char *key, int64_t value,
                            tr_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return tr_run_set(run, key, text, err);
}

static tr_status set_texts(tr_run *run, const cli_run *asked, tr_error *err) {
    const struct {
        const char *key, *text;
    } texts[] = {{"model", asked->model},
                 {"out", asked->out},
                 {"resume", asked->resume},
                 {"trace", asked->trace}};
    tr_status status = TR_OK;
    for (size_t i = 0; i < asked->data.count && status == TR_OK; i++) {
        status = tr_run_add_text(run, "data.train", asked->data.items[i], err);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TR_OK; i++) {
        if (texts[i].text) {
            status = tr_run_set_text(run, texts[i].key, texts[i].text, err);
        }
    }
    return status;
}

static tr_status set_numbers(tr_run *run, const cli_run *asked, tr_error *err) {
    const struct {
        const char *key;
        int64_t value;
        bool given;
    } numbers[] = {{"seed", asked->seed, asked->seed >= 0},
                   {"execution.threads", asked->threads, asked->threads > 0},
                   {"steps", asked->steps, asked->steps > 0},
                   {"ranks", asked->ranks, asked->ranks > 0},
                   {"trace_step", asked->trace_step, asked->trace_step > 0}};
    tr_status status = TR_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == TR_OK; i++) {
        if (numbers[i].given) {
            status = set_number(run, numbers[i].key, numbers[i].value, err);
        }
    }
    if (status == TR_OK && asked->steps > 0) { // of the two, the one that counts
        status = tr_run_set(run, "epochs", "null", err);
    }
    return status;
}

// First what --set says, then the options.
static tr_status set_all(tr_run *run, const cli_run *asked, tr_error *err) {
    tr_status status = tr_run_name_source(run, "--set", err);
    for (size_t i = 0; i < asked->set.count && status == TR_OK; i++) {
        status = tr_run_assign(run, asked->set.items[i], err);
    }
    if (status == TR_OK) {
        status = tr_run_name_source(run, "command line", err);
    }
    if (status == TR_OK) {
        status = set_texts(run, asked, err);
    }
    if (status == TR_OK) {
        status = set_numbers(run, asked, err);
    }
    return status == TR_OK ? tr_run_set(run, "choose_device", "true", err) : status;
}

tr_status cli_give(tr_run *run, const cli_run *asked, const tr_machine *machine,
                   struct tr_comm *comm, bool (*stop)(void *user), tr_error *err) {
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    parts.messages.write = asked->say ? asked->say : cli_say;
    parts.machine = machine;
    parts.comm = comm;
    parts.stop = stop;
    return tr_run_give(run, &parts, err);
}

static const char usual[] = "{\"model\": \"gpt2\", \"data\": {\"format\": \"tokens\"}, "
                            "\"train_batch_size\": 8}";

tr_status cli_make_run(const cli_run *asked, const char *file, tr_run **out,
                       tr_error *err) {
    tr_status status = tr_run_create(out, err);
    if (status == TR_OK) {
        status = file ? tr_run_load_file(*out, file, err)
                      : tr_run_load_text(*out, usual, err);
    }
    if (status == TR_OK) {
        status = cli_give(*out, asked, NULL, NULL, NULL, err);
    }
    return status == TR_OK ? set_all(*out, asked, err) : status;
}
