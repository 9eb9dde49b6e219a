#include "base/text.h"
#include "cli/cli.h"
#include "cli/process.h"

#include <tranche/comm.h>

#include <stdio.h>
#include <string.h>

static const cli_command commands[] = {
    {"train", "RUN.json", "Trains what the run file describes.", cli_train, true},
    {"plan", "RUN.json",
     "Prints the plan of one step and its memory; takes none of it.", cli_plan, false},
    {"sample", "DIR", "Writes text with a trained model.", cli_sample, true},
    {"inspect", "PATH",
     "Tells what is in a checkpoint, a safetensors file or a dataset.", cli_inspect,
     false},
    {"diff", "A B", "Compares two checkpoints tensor by tensor; exit 1 if they differ.",
     cli_diff, false},
    {"simulate", "RUN.json",
     "How long the plan's step takes on this machine or one of a file.", cli_simulate,
     true},
    {"check", "RUN.json",
     "One step in several cuts and precisions; exit 1 if they differ.", cli_check,
     true},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *to) {
    fprintf(to,
            "usage: tranche COMMAND ...\n"
            "Trains neural networks at any effective batch size in the memory that is "
            "there.\n\n");
    for (int i = 0; i < COMMANDS; i++) {
        fprintf(to, "    %-9s %-9s  %s\n", commands[i].name, commands[i].operands,
                commands[i].doc);
    }
    fprintf(to, "\n    --help               this text\n"
                "    --version            the program's version\n\n"
                "tranche COMMAND --help tells its options.\n");
}

static int unknown(const char *word) {
    const char *names[COMMANDS + 2] = {[COMMANDS] = "--help", "--version"};
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
    }
    const char *nearest = tr__nearest(word, names, COMMANDS + 2);
    char shown[CLI_WORD_MAX + 4];
    if (tr_comm_speaks(NULL)) {
        fprintf(stderr, "tranche: unknown command %s", cli_word(word, shown));
        fprintf(stderr, nearest ? "; did you mean %s?\n" : "; see tranche --help\n",
                nearest);
    }
    return tr_status_exit(TR_USAGE);
}

int main(int argc, char **argv) {
    cli_guard_streams();
    if (argc < 2) {
        print_usage(stderr);
        return tr_status_exit(TR_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return cli_end(TR_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tranche %s\n", TR_VERSION);
        return cli_end(TR_OK);
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            if (commands[i].computes) {
                cli_prepare_process(argv);
            }
            return commands[i].run(&commands[i], argc - 2, argv + 2);
        }
    }
    return unknown(argv[1]);
}
