#include "cli/hangup.h"
#include "cli/launch.h"
#include "cli/run_options.h"
#include "cli/train_events.h"
#include "cli/train_history.h"
#include "cli/waiting.h"
#include "report/screen.h"

#include <tranche/comm.h>
#include <tranche/engine.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The number of the first signal that asked for an end; 0: none yet.
static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught) { // the second one ends at once
        _exit(128 + number);
    }
    caught = number;
}

static void watch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i] != SIGHUP || !cli_hangup_was_ignored()) {
            sigaction(numbers[i], &action, NULL);
        }
    }
    cli_hangup_restore();
    // A file over the size limit is an error of the write, which names the file.
    signal(SIGXFSZ, SIG_IGN);
    // Whoever reads the progress may leave; the training goes on.
    signal(SIGPIPE, SIG_IGN);
}

static bool is_caught(void *user) {
    (void)user;
    return caught != 0;
}

// A plan each, and whether anybody has been asked for an end meanwhile.
static tr_status make_plan(const tr_run *run, tr_comm *comm, tr_plan **plan,
                           tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr_run_make_plan(run, plan, &mine);
    if (status == TR_OK && is_caught(NULL)) {
        tr_fail(&mine, TR_INTERRUPTED, "interrupted");
    }
    return tr_comm_agree(comm, &mine, err);
}

// A run each that the ranks resolve together.
static tr_status make_run(const cli_run *asked, const char *file, tr_comm *comm,
                          tr_run **run, tr_error *err) {
    tr_error mine = {0};
    tr_status status = cli_make_run(asked, file, run, &mine);
    if (status == TR_OK) {
        status = tr_run_set(*run, "computes_here", "true", &mine);
    }
    if (status == TR_OK) {
        cli_give(*run, asked, NULL, comm, is_caught, &mine);
    }
    status = tr_comm_agree(comm, &mine, err);
    return status == TR_OK ? tr_run_resolve(*run, err) : status;
}

// What the user wants to be told, beside the run's settings.
typedef struct talk {
    bool quiet, json;
} talk;

// What a launcher gives ranks for a terminal is none: it passes on what they say.
static tr_status train_on_screen(tr_engine *engine, const tr_comm *comm, talk of,
                                 tr_error *err) {
    tr_train_options options = TR_TRAIN_OPTIONS_INIT;
    report_screen screen;
    options.stop = is_caught;
    if (of.json) {
        options.metrics = cli_event_metrics;
        options.screen = cli_event_screen(of.quiet);
    } else if (!of.quiet) {
        options.screen = report_screen_on(&screen, stdout, tr_comm_ranks(comm) == 1);
    }
    return tr_engine_train(engine, &options, err);
}

static tr_status train(const cli_run *asked, const char *file, talk of, tr_comm *comm,
                       tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_status status = make_run(asked, file, comm, &run, err);
    if (status == TR_OK) {
        status = make_plan(run, comm, &plan, err);
    }
    if (status == TR_OK) {
        status = tr_run_begin(run, plan, err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(run, plan, &engine, err);
    }
    if (status == TR_OK) {
        if (tr_comm_speaks(comm)) {
            cli_history_begin(run, tr_engine_steps_done(engine));
        }
        status = train_on_screen(engine, comm, of, err);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    return status;
}

// The number of the signal that asked for an end, on whichever rank; 0: none did.
static int asked(tr_comm *comm) {
    int64_t most = caught;
    tr_comm_most(comm, caught, &most, NULL);
    return (int)most;
}

// How the user wants what a run says.
static void (*words)(void *user, tr_message_level level, const char *line);

static void say_and_keep(void *user, tr_message_level level, const char *line) {
    cli_history_say(level, line);
    words(user, level, line);
}

static void choose_words(cli_run *run, talk of) {
    words = of.json && of.quiet ? cli_event_warning
            : of.json           ? cli_event_say
            : of.quiet          ? cli_say_warning
                                : cli_say;
    run->say = say_and_keep;
}

// Waits for all ranks, and says so where that takes long.
static tr_status join(tr_comm **comm,
                      void (*say)(void *user, tr_message_level level, const char *line),
                      tr_error *err) {
    cli_waiting waiting;
    bool tells = tr_comm_launcher() && tr_comm_speaks(NULL);
    if (tells) {
        cli_waiting_begin(&waiting, "waiting for all ranks", say);
    }
    tr_status status = tr_comm_open(comm, err);
    if (tells) {
        cli_waiting_end(&waiting);
    }
    return status;
}

// err: NULL: there is none.
static void say_end(int exit_status, const tr_error *err, talk of) {
    if (err) {
        cli_fail(err);
    }
    if (of.json) {
        cli_event_end(exit_status, err ? err->message : NULL);
    }
}

// What the command line says. False: it is over, with *exit_status.
static bool read_command(const cli_command *command, int argc, char **argv,
                         cli_run *run, talk *of, const char **file, int *exit_status) {
    const cli_option options[] = {
        {"--data", CLI_LIST, &run->data, "PATH",
         "data to train on, in place of data.train"},
        {"--model", CLI_TEXT, &run->model, "FILE|DIR|NAME",
         "model to use in place of \"model\""},
        {"--out", CLI_TEXT, &run->out, "DIR",
         "folder for metrics, plan and checkpoints"},
        {"--set", CLI_LIST, &run->set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
        {"--steps", CLI_SOME, &run->steps, "N", "number of optimizer steps of the run"},
        {"--seed", CLI_COUNT, &run->seed, "N",
         "seed of weights, data order and dropout"},
        {"--threads", CLI_SOME, &run->threads, "N",
         "threads of each rank (default: by the work, up to its cores)"},
        {"--ranks", CLI_SOME, &run->ranks, "W",
         "starts this many ranks on this machine, by mpirun"},
        {"--resume", CLI_TEXT, &run->resume, "auto|never|DIR",
         "resumes from the newest checkpoint (auto, the default), from none, or from "
         "DIR"},
        {"--quiet", CLI_FLAG, &of->quiet, NULL,
         "says warnings and errors alone: no progress, and not what the run is"},
        {"--json", CLI_FLAG, &of->json, NULL,
         "writes the lines of metrics.jsonl, and events, to standard output"},
        {"--trace", CLI_TEXT, &run->trace, "FILE",
         "writes a timeline of one step, for ui.perfetto.dev"},
        {"--trace-step", CLI_SOME, &run->trace_step, "N",
         "which step of this process to trace (default: the second)"},
    };
    cli_operands operands = {file, 1, 1, 0};
    return cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                     &operands, exit_status);
}

// Of all ranks, which then part.
static int end(tr_comm *comm, tr_status status, const tr_error *err, talk of) {
    bool good = status == TR_OK || status == TR_INTERRUPTED;
    int number = good ? asked(comm) : 0;
    int exit_status = !good        ? tr_status_exit(status)
                      : number > 0 ? tr_status_exit(TR_INTERRUPTED) + number
                                   : 0;
    cli_history_end(exit_status, good ? NULL : err->message);
    if (tr_comm_speaks(comm)) {
        say_end(exit_status, good ? NULL : err, of);
    }
    tr_comm_end(comm, exit_status);
    return exit_status;
}

int cli_train(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    talk of = {false, false};
    tr_error err = {0};
    const char *file = NULL;
    int exit_status;
    if (!read_command(command, argc, argv, &run, &of, &file, &exit_status)) {
        return exit_status;
    }
    if (cli_must_launch(run.ranks)) {
        return cli_launch(run.ranks, argc, argv);
    }
    watch_signals();
    choose_words(&run, of);
    tr_comm *comm = NULL;
    tr_status status = join(&comm, run.say, &err);
    if (status == TR_OK) {
        watch_signals(); // MPI may have loaded a library with handlers of its own
        status = train(&run, file, of, comm, &err);
    }
    return end(comm, status, &err, of);
}
