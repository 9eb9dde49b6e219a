#include "cli/cli.h"
#include "cli/process.h"
#include "report/terminal.h"

#include <tranche/comm.h>
#include <tranche/types.h>
#include <tranche/version.h>

#include <stdio.h>
#include <string.h>

static const char usual[] = "0 done; 2 wrong usage; 4 wrong data; 5 files";
static const char asking[] =
    "0 done; 2 wrong usage; 3 more memory than there is; 4 wrong data; 5 weights or\n"
    "files; 7 numbers (the model's logits are not finite)";

static const cli_command commands[] = {
    {"init", "DATA...",
     "Looks at data and at this machine, and writes a run file that trains.", cli_init,
     false,
     "tranche init book.txt\n"
     "tranche init samples.csv --out samples.json\n"
     "tranche init chats.jsonl --model HuggingFaceTB/SmolLM2-135M-Instruct",
     .statuses = "0 done; 2 wrong usage; 3 no plan fits the memory; 4 data that cannot "
                 "be trained "
                 "on;\n"
                 "5 files"},
    {"train", "RUN.json", "Trains the model that a run file describes.", cli_train,
     true,
     "tranche train run.json\n"
     "tranche train run.json --data book.txt --out out/book --steps 2000\n"
     "tranche train ds_config.json --model gpt2 --data text --set seed=1\n"
     "tranche train run.json --ranks 2",
     .statuses =
         "0 done; 2 wrong usage or run file; 3 no plan fits the memory; 4 wrong data;\n"
         "5 checkpoint or other files; 6 ranks; 7 numbers (it diverges); 8 internal;\n"
         "128 + n: signal n (Ctrl-C: 2) ended the run, which saved a checkpoint first: "
         "run\n"
         "the same command again to resume"},
    {"plan", "RUN.json",
     "Prints the plan of one step and its exact memory; allocates none of it.",
     cli_plan, false,
     "tranche plan run.json\n"
     "tranche plan run.json --ranks 8 --set zero_optimization.stage=3\n"
     "tranche plan run.json --ranks 8 --compare --machine "
     "examples/machines/dgx-h100.json",
     .statuses =
         "0 done; 2 wrong usage or run file; 3 no plan fits the memory; 4 wrong data;\n"
         "5 weights or other files"},
    {"sample", "DIR", "Writes text with a trained model.", cli_sample, true,
     "tranche sample out/text --prompt \"Once\" --tokens 300\n"
     "tranche sample out/text --temperature 1 --top-k 50 --top-p 0.95 --seed 7",
     .statuses = asking},
    {"evaluate", "DIR",
     "Computes loss, perplexity and accuracy of a trained model on data.", cli_evaluate,
     true,
     "tranche evaluate out/text\n"
     "tranche evaluate out/text --data held-out.txt --json\n"
     "tranche evaluate gpt2-folder --data ids.bin --format tokens --logits logits.npy",
     .statuses = asking},
    {"predict", "DIR",
     "Prints the class of each sample by a trained classifier, as csv.", cli_predict,
     true,
     "tranche predict out/classifier --data new.csv > classes.csv\n"
     "tranche predict out/digits --data images.npy --json",
     .statuses = asking},
    {"tokenize", "FILE...",
     "Turns text into token ids by a tokenizer.json, and ids into text.",
     cli_tokenize_run, true,
     "tranche tokenize --tokenizer gpt2-folder book.txt --out ids.bin\n"
     "tranche tokenize --tokenizer tokenizer.json texts/\n"
     "tranche tokenize --tokenizer gpt2-folder --decode ids.bin",
     .statuses = "0 done; 2 wrong usage; 4 a damaged or unsupported tokenizer.json, "
                 "wrong data; 5 "
                 "files"},
    {"plot", "OUT...",
     "Draws the curves of runs: in the terminal, or as a picture (SVG).", cli_plot,
     false,
     "tranche plot out/text\n"
     "tranche plot out/lr1 out/lr2 out/lr3 --out curves.svg",
     .statuses = "0 done; 2 wrong usage; 4 a damaged metrics.jsonl; 5 files"},
    {"report", "OUT|RUN.json...",
     "Writes curves, the memory of a step and the settings of runs as one page (HTML).",
     cli_report, false,
     "tranche report out/text\n"
     "tranche report out/lr1 out/lr2 --out lr.html\n"
     "tranche report run.json --out plan.html",
     .statuses = "0 done; 2 wrong usage or run file; 3 no plan fits the memory; 4 "
                 "metrics without "
                 "a\n"
                 "step; 5 files"},
    {"inspect", "PATH",
     "Shows what is in a checkpoint, a safetensors file or a dataset, or the samples "
     "of a run file as they are trained.",
     cli_inspect, false,
     "tranche inspect out/text\n"
     "tranche inspect book.txt --positions 256\n"
     "tranche inspect run.json --samples 3",
     .statuses = usual},
    {"merge", "DIR OUT", "Adds an adapter to its base: writes a Hugging Face folder.",
     cli_merge, false,
     "tranche merge out/lora merged\n"
     "tranche merge adapter-folder merged --base base-folder",
     .statuses = usual},
    {"export", "DIR OUT.gguf",
     "Writes a model, or an adapter, as a GGUF file for llama.cpp.", cli_export, false,
     "tranche export out/text text.gguf\n"
     "tranche export out/chat chat.gguf --type q8_0\n"
     "tranche export out/lora lora.gguf --base base-folder",
     .statuses = "0 done; 2 wrong usage, or a model that GGUF does not know; 4 a "
                 "tokenizer that "
                 "it\n"
                 "does not know; 5 weights or other files"},
    {"import", "FILE.gguf OUT",
     "Makes a Hugging Face folder of the model in a GGUF file.", cli_import, false,
     "tranche import model.gguf model-folder\n"
     "tranche import SmolLM2-135M-Instruct.Q4_1.gguf smollm2",
     .statuses = usual},
    {"diff", "A B", "Compares two checkpoints tensor by tensor; exit 1 if they differ.",
     cli_diff, false,
     "tranche diff out/a out/b\n"
     "tranche diff out/a/checkpoints/step-00000100 out/a --json",
     .statuses = "0 the same bits; 1 they differ; 2 wrong usage; 5 files"},
    {"simulate", "RUN.json",
     "Predicts step time on this machine, or on one described in a file.", cli_simulate,
     true,
     "tranche simulate run.json\n"
     "tranche simulate run.json --ranks 64 --machine examples/machines/dgx-h100.json",
     .statuses =
         "0 done; 2 wrong usage, run file or machine file; 3 no plan fits the memory;\n"
         "4 wrong data; 5 weights or other files"},
    {"calibrate", "[RUN.json]",
     "Measures this machine, and writes the file that simulate --machine takes.",
     cli_calibrate, true,
     "tranche calibrate --out here.json\n"
     "tranche calibrate run.json --ranks 2 >here.json",
     .statuses = "0 done; 2 wrong usage or run file; 4 wrong data; 5 files"},
    {"doctor", "",
     "Says what this machine has for training, what is in the way, and what mends it.",
     cli_doctor, false, "tranche doctor\ntranche doctor --json",
     .statuses = "0 nothing is in the way; 1 something is; 2 wrong usage; 5 files"},
    {"check", "RUN.json",
     "Compares one step in several cuts and precisions; exit 1 if they differ.",
     cli_check, true,
     "tranche check run.json\n"
     "tranche check run.json --tolerance 1e-5 --tensors",
     .statuses = "0 all within the tolerance; 1 they differ; 2 wrong usage or run "
                 "file; 3 no plan\n"
                 "fits the memory; 4 wrong data; 5 weights or other files; 7 numbers"},
    {"completion", "bash|zsh|fish [WORD...]",
     "Prints the script by which a shell completes commands, options, keys and values.",
     cli_completion, false,
     "source <(tranche completion bash)\n"
     "tranche completion zsh >~/.zfunc/_tranche\n"
     "tranche completion fish >~/.config/fish/completions/tranche.fish",
     .statuses = "0 done; 2 wrong usage; 5 files"},
    {"manual", "[PAGE]",
     "Prints a manual page: the program's, a command's, or run-file, of all keys.",
     cli_manual, false,
     "tranche manual train | man -l -\n"
     "tranche manual run-file | man -l -",
     .statuses = "0 done; 2 wrong usage; 5 files"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const char cli_about[] =
    "Trains neural networks at any effective batch size, in whatever memory you have.";
const cli_option cli_option_version = {"--version", CLI_FLAG, NULL, NULL,
                                       "the program's version"};

const cli_command *cli_command_at(size_t index) {
    return index < COMMANDS ? &commands[index] : NULL;
}

const cli_command *cli_command_find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static void print_usage(FILE *to) {
    const cli_option *const own[] = {&cli_option_help, &cli_option_version};
    fprintf(to, "usage: tranche COMMAND ...\n%s\n\n", cli_about);
    for (int i = 0; i < COMMANDS; i++) {
        fprintf(to, "    %-10s %-13s  %s\n", commands[i].name, commands[i].operands,
                commands[i].doc);
    }
    fputc('\n', to);
    for (int i = 0; i < 2; i++) {
        fprintf(to, "    %-24s  %s\n", own[i]->name, own[i]->doc);
    }
    fputs("\ntranche COMMAND --help shows its options and examples.\n", to);
}

static int unknown(const char *word) {
    const char *names[COMMANDS + 2] = {[COMMANDS] = cli_option_help.name,
                                       cli_option_version.name};
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
    }
    const char *nearest = tr_nearest(word, names, COMMANDS + 2);
    char shown[REPORT_WORD_MAX + 4];
    if (tr_comm_speaks(NULL)) {
        fprintf(stderr, "tranche: unknown command %s", report_word(word, shown));
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
    if (strcmp(argv[1], cli_option_help.name) == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return cli_end(TR_OK);
    }
    if (strcmp(argv[1], cli_option_version.name) == 0) {
        printf("tranche %s\n", tr_version());
        return cli_end(TR_OK);
    }
    const cli_command *command = cli_command_find(argv[1]);
    if (!command) {
        return unknown(argv[1]);
    }
    if (command->computes) {
        cli_prepare_process(argv);
    }
    return command->run(command, argc - 2, argv + 2);
}
