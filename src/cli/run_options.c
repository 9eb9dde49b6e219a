#include "cli/run_options.h"

#include "base/terminal.h"

#include <stdio.h>

void cli_say(void *user, tr_message_level level, const char *line) {
    (void)user;
    tr__print_line(stderr, level == TR_MESSAGE_WARNING ? "warning: " : "", line);
}

tr_run_options cli_run_options(const cli_run *run, const char *file) {
    return (tr_run_options){
        .file = file,
        .set = run->set.items,
        .set_count = run->set.count,
        .data = run->data.items,
        .data_count = run->data.count,
        .model = run->model,
        .out = run->out,
        .steps = run->steps,
        .seed = run->seed >= 0 ? &run->seed : NULL,
        .threads = run->threads,
        .resume = run->resume,
        .trace = run->trace,
        .trace_step = run->trace_step,
        .ranks = run->ranks,
        .choose_device = true,
        .messages = {.write = cli_say},
    };
}
