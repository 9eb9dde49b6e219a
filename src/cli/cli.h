// The program: thin. The only place that exits.
#ifndef TR_CLI_CLI_H
#define TR_CLI_CLI_H

#include <tranche/plan.h>
#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_kind {
    CLI_FLAG,   // bool
    CLI_TEXT,   // const char *
    CLI_COUNT,  // int64_t, 0 or more
    CLI_SOME,   // int64_t, 1 or more
    CLI_NUMBER, // double
    CLI_LIST,   // cli_list, may be given again
} cli_kind;

enum { CLI_LIST_MAX = 64 };

typedef struct cli_list {
    const char *items[CLI_LIST_MAX];
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; // "--set"
    cli_kind kind;
    void *to;
    // In the help: "KEY.PATH=VALUE". What is in small letters is meant as it stands
    // there, the rest is a placeholder: "auto|never|DIR" (see complete_value.c).
    const char *value;
    const char *doc;
} cli_option;

struct cli_command;

// Reads what options a command has, in place of running it: see cli_read_options.
typedef struct cli_option_reader {
    void (*read)(void *user, const struct cli_command *command,
                 const cli_option *options, size_t count);
    void *user;
} cli_option_reader;

typedef struct cli_command {
    const char *name;
    const char *operands; // "RUN.json", "[RUN.json]", "FILE..."
    const char *doc;
    // Runs with what follows the command's name. Returns an exit status.
    int (*run)(const struct cli_command *command, int argc, char **argv);
    bool computes; // with many threads
    // For --help, lines without indentation: examples, and what it exits with.
    const char *examples, *statuses;
    const cli_option_reader *reader; // NULL, but in cli_read_options
} cli_command;

// Command number `index` of the program, in the order of its help; NULL after the last.
const cli_command *cli_command_at(size_t index);
const cli_command *cli_command_find(const char *name); // NULL: there is none

// What every command has, and what the program has in a command's place.
extern const cli_option cli_option_help;    // --help
extern const cli_option cli_option_version; // --version
extern const char cli_about[];              // what the program does, in a sentence

// What is no option: at [most], of which `count` are there.
typedef struct cli_operands {
    const char **at;
    size_t least, most, count;
} cli_operands;

// Sorts argv into options and operands. Returns false when the command is over: help
// was printed (*exit_status 0), or the usage is wrong and has been said (2).
bool cli_parse(const cli_command *command, const cli_option *options,
               size_t option_count, int argc, char **argv, cli_operands *operands,
               int *exit_status);

// Calls the reader with the options of the command, --help not among them; nothing else
// happens.
void cli_read_options(const cli_command *command, const cli_option_reader *reader);

// Says an error and returns its exit status.
int cli_fail(const tr_error *err);
// The exit status of a command whose product is on standard output: `status` where all
// of it was written; else that is an error, which is said.
int cli_end(tr_status status);

// Warns where a plan that was printed needs more memory than the machine has. what:
// "sampling from this model".
void cli_plan_fits(const tr_plan *plan, const char *what);

int cli_train(const cli_command *command, int argc, char **argv);
int cli_plan(const cli_command *command, int argc, char **argv);
int cli_simulate(const cli_command *command, int argc, char **argv);
int cli_calibrate(const cli_command *command, int argc, char **argv);
int cli_sample(const cli_command *command, int argc, char **argv);
int cli_inspect(const cli_command *command, int argc, char **argv);
int cli_export(const cli_command *command, int argc, char **argv);
int cli_import(const cli_command *command, int argc, char **argv);
int cli_merge(const cli_command *command, int argc, char **argv);
int cli_diff(const cli_command *command, int argc, char **argv);
int cli_check(const cli_command *command, int argc, char **argv);
int cli_plot(const cli_command *command, int argc, char **argv);
int cli_doctor(const cli_command *command, int argc, char **argv);
int cli_init(const cli_command *command, int argc, char **argv);
int cli_report(const cli_command *command, int argc, char **argv);
int cli_evaluate(const cli_command *command, int argc, char **argv);
int cli_completion(const cli_command *command, int argc, char **argv);
int cli_manual(const cli_command *command, int argc, char **argv);
int cli_tokenize_run(const cli_command *command, int argc, char **argv);
int cli_predict(const cli_command *command, int argc, char **argv);

#endif
