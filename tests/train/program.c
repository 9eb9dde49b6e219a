#include "program.h"

#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32 };

pid_t program_start(const char *const *arguments, const char *log) {
    const char *all[ARGUMENTS_MAX] = {TR_PROGRAM};
    for (int i = 0; arguments[i]; i++) {
        assert_true(i + 2 < ARGUMENTS_MAX);
        all[i + 1] = arguments[i];
    }
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(file, STDOUT_FILENO);
        dup2(file, STDERR_FILENO);
        execv(TR_PROGRAM, (char *const *)all);
        _exit(127);
    }
    return pid;
}

int program_wait(pid_t pid, struct rusage *usage) {
    int status = 0;
    pid_t got;
    do {
        got = wait4(pid, &status, 0, usage);
    } while (got < 0 && errno == EINTR);
    assert_int_equal(got, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void program_run(const char *const *arguments, const char *log, int expected) {
    int status = program_wait(program_start(arguments, log), NULL);
    if (status != expected) {
        char *text = file_text(log);
        print_error("%s\n", text);
        free(text);
        fail_msg("exit status %d, expected %d", status, expected);
    }
}

char *file_text(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen(path, "rb");
    FILE *memory = open_memstream(&text, &bytes);
    int c;
    while (file && (c = getc(file)) != EOF) {
        putc(c, memory);
    }
    if (file) {
        fclose(file);
    }
    fclose(memory);
    return text;
}

static char *metrics_text(const char *out) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/metrics.jsonl", out);
    return file_text(path);
}

json_t *metrics_read(const char *out) {
    static const char *const differ[] = {"time",
                                         "seconds",
                                         "wait_seconds",
                                         "tokens_per_second",
                                         "epoch_seconds",
                                         "tokens_per_second_per_rank",
                                         "tflops_per_rank",
                                         "mfu",
                                         "mfu_causal",
                                         "hfu",
                                         "hfu_causal"};
    char *text = metrics_text(out), *rest = text, *line;
    json_t *all = json_array();
    while ((line = strsep(&rest, "\n")) && *line) {
        json_error_t error;
        json_t *object = json_loads(line, 0, &error);
        if (!object) {
            fail_msg("%s: %s: %s", out, error.text, line);
        }
        for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
            json_object_del(object, differ[i]);
        }
        json_object_del(json_object_get(object, "peak_bytes"), "process");
        json_array_append_new(all, object);
    }
    free(text);
    return all;
}

int metrics_lines(const char *out) {
    char *text = metrics_text(out);
    int lines = 0;
    for (const char *c = text; *c; c++) {
        lines += *c == '\n';
    }
    free(text);
    return lines;
}
