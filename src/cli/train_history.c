#include "cli/train_history.h"

#include "cli/json.h"
#include "cli/proc.h"
#include "cli/run_options.h"
#include "cli/train_events.h"

#include <tranche/version.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SAID_MOST = 200,        // lines
    COMMAND_BYTES = 1 << 16 // of the command line
};

// Of this process.
static struct {
    json_t *said, *warnings; // before the start is written
    char *path;              // of the file, once it is
} history;

// ---- the file

static bool write_all(int file, const char *text, size_t bytes) {
    ssize_t written = write(file, text, bytes);
    if (written >= 0 && (size_t)written < bytes) {
        errno = ENOSPC;
    }
    return written >= 0 && (size_t)written == bytes;
}

// No link is followed, and nothing is written into a pipe or a device.
static bool append_text(const char *path, const char *text, size_t bytes) {
    struct stat info;
    int file =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
             0666);
    bool good = file >= 0 && fstat(file, &info) == 0;
    if (good && !S_ISREG(info.st_mode)) {
        errno = EINVAL;
        good = false;
    }
    good = good && write_all(file, text, bytes);
    if (file >= 0) {
        close(file);
    }
    return good;
}

// Releases the object.
static bool append(const char *path, json_t *object) {
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(CLI_EVENT_DIGITS);
    char *text = json_dumps(object, flags), *line = NULL;
    int bytes = text ? asprintf(&line, "%s\n", text) : -1;
    bool good = bytes > 0 && append_text(path, line, (size_t)bytes);
    if (bytes > 0) {
        free(line);
    }
    free(text);
    json_decref(object);
    return good;
}

// ---- what it consists of

// Of this process, by /proc: its words, each of which ends with a 0.
static json_t *command_line(void) {
    json_t *words = json_array();
    char *text = malloc(COMMAND_BYTES);
    size_t bytes = text ? cli_proc_read("/proc/self/cmdline", text, COMMAND_BYTES) : 0;
    if (bytes > 0) {
        text[bytes - 1] = '\0';
    }
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
        json_array_append_new(words, cli_json_path(text + at));
    }
    free(text);
    return words;
}

static json_t *machine(void) {
    char processor[CLI_PROC_TEXT];
    bool known = cli_proc_line("/proc/cpuinfo", "model name", processor);
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
    return json_pack("{s:o, s:I, s:I}", "processor",
                     known ? cli_json_path(processor) : json_null(), "cores",
                     (json_int_t)cores, "memory_bytes",
                     (json_int_t)pages * sysconf(_SC_PAGESIZE));
}

static json_t *folder(void) {
    char path[PATH_MAX];
    return getcwd(path, sizeof path) ? cli_json_path(path) : json_null();
}

static json_t *lines(json_t **kept) {
    json_t *taken = *kept ? *kept : json_array();
    *kept = NULL;
    return taken;
}

static void keep(json_t **lines_of, const char *line) {
    *lines_of = *lines_of ? *lines_of : json_array();
    if (json_array_size(*lines_of) < SAID_MOST) {
        json_array_append_new(*lines_of, cli_json_path(line));
    }
}

void cli_history_say(tr_message_level level, const char *line) {
    bool warns = level == TR_MESSAGE_WARNING;
    if (!history.path) {
        keep(warns ? &history.warnings : &history.said, line);
    } else if (warns) {
        append(history.path, cli_event_of_text("warning", line));
    }
}

// ---- begin and end

// history.jsonl of the run's out folder; NULL: it has none.
static char *find_path(tr_run *run) {
    const char *value = NULL;
    char *path = NULL;
    json_t *out = tr_run_get(run, "out", &value, NULL, NULL) == TR_OK && value
                      ? json_loads(value, JSON_DECODE_ANY, NULL)
                      : NULL;
    if (json_is_string(out) &&
        asprintf(&path, "%s/history.jsonl", json_string_value(out)) < 0) {
        path = NULL;
    }
    json_decref(out);
    return path;
}

static json_t *start(const tr_run *run, int64_t step) {
    json_t *event = cli_event_of("start");
    json_t *about = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "version", tr_version(), "command",
        command_line(), "folder", folder(), "ranks", (json_int_t)tr_run_ranks(run),
        "step", (json_int_t)step, "machine", machine(), "said", lines(&history.said),
        "warnings", lines(&history.warnings));
    json_object_update(event, about);
    json_decref(about);
    return event;
}

void cli_history_begin(tr_run *run, int64_t step) {
    char *path = find_path(run);
    if (path && !append(path, start(run, step))) {
        char text[PATH_MAX + CLI_PROC_TEXT];
        snprintf(text, sizeof text,
                 "%.4000s: %s; the report will not say what began "
                 "this run",
                 path, strerror(errno));
        cli_say(NULL, TR_MESSAGE_WARNING, text);
        free(path);
        return;
    }
    history.path = path;
}

void cli_history_end(int exit_status, const char *error) {
    if (history.path) {
        append(history.path, cli_event_of_end(exit_status, error));
    }
    json_decref(history.said);
    json_decref(history.warnings);
    free(history.path);
    history.said = history.warnings = NULL;
    history.path = NULL;
}
