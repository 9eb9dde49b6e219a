// tranche inspect: which kind of thing a path is, and what is in it.
#include "cli/cli.h"
#include "cli/inspect_data.h"
#include "cli/inspect_samples.h"

#include "base/files.h"
#include "ckpt/folder.h"

#include <tranche/checkpoint.h>

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000 }; // bytes of a safetensors header

static bool has(const char *folder, const char *name) {
    char path[PATH_MAX];
    return tr__path_join(path, sizeof path, folder, name, NULL) == TR_OK &&
           access(path, F_OK) == 0;
}

// Does a file begin as a safetensors file, or is it called one?
static bool is_safetensors(const char *path, int64_t bytes) {
    static const char end[] = ".safetensors";
    unsigned char head[9];
    size_t length = strlen(path);
    if (length >= sizeof end - 1 &&
        strcmp(path + length - (sizeof end - 1), end) == 0) {
        return true;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // it may be a pipe
    bool whole = file >= 0 && pread(file, head, sizeof head, 0) == sizeof head;
    if (file >= 0) {
        close(file);
    }
    uint64_t header = 0;
    for (int i = 0; i < 8 && whole; i++) {
        header |= (uint64_t)head[i] << (8 * i);
    }
    return whole && head[8] == '{' && header <= HEADER_MAX &&
           (int64_t)header <= bytes - 8;
}

// A folder of a model or a run is never taken for one of data, even a damaged one.
static bool is_data(const char *path) {
    static const char *const marks[] = {
        "config.json", "state.json",        "metrics.jsonl",
        "checkpoints", "model.safetensors", "model.safetensors.index.json"};
    char latest[TR_STEP_NAME_MAX];
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    if (!S_ISDIR(info.st_mode)) {
        return !is_safetensors(path, info.st_size);
    }
    if (tr__link_read(path, TR_LINK_LATEST, latest)) {
        return false;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (has(path, marks[i])) {
            return false;
        }
    }
    return true;
}

static tr_status inspect_weights(const char *path, bool json, tr_error *err) {
    tr_inspection *inspection = NULL;
    tr_status status = tr_checkpoint_inspect(path, &inspection, err);
    if (status == TR_OK && json) {
        status = tr_inspection_print_json(inspection, stdout, err);
    } else if (status == TR_OK) {
        tr_inspection_print(inspection, stdout);
    }
    tr_inspection_destroy(inspection);
    return status;
}

int cli_inspect(const cli_command *command, int argc, char **argv) {
    bool json = false;
    int64_t positions = 1024, samples = 0;
    cli_list set = {0};
    tr_error err = {0};
    const char *path = NULL;
    size_t count;
    int exit_status;
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "prints one JSON object"},
        {"--positions", CLI_SOME, &positions, "N",
         "counts a dataset's samples of N positions each (default 1024)"},
        {"--samples", CLI_SOME, &samples, "N",
         "shows the first N samples of a run file as they are trained, with what is "
         "learnt in \xe2\x9f\xa6 \xe2\x9f\xa7"},
        {"--set", CLI_LIST, &set, "KEY.PATH=VALUE",
         "changes one key of the run file, with --samples; may be given again"},
    };
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &path, 1, 1, &count, &exit_status)) {
        return exit_status;
    }
    if (set.count > 0 && samples == 0) {
        tr_fail(&err, TR_USAGE, "--set has no effect without --samples: give both");
        return cli_fail(&err);
    }
    tr_status status = samples > 0
                           ? cli_inspect_samples(path, &set, samples, json, &err)
                       : is_data(path) ? cli_inspect_data(path, positions, json, &err)
                                       : inspect_weights(path, json, &err);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}
