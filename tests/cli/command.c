#include "command.h"

#include "base/clock.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 160, PIECE = 4096, HANGS_AFTER = 120 }; // seconds

// ---- folder and files

int folder_make(void **state) {
    char path[] = "/tmp/tranche-cli-XXXXXX";
    *state = mkdtemp(path) ? strdup(path) : NULL;
    return *state ? setenv("XDG_CACHE_HOME", file_path(state, ".cache"), 1) : -1;
}

int folder_remove(void **state) {
    tr_error err = {0};
    tr_status status = tr__folder_remove(*state, &err);
    free(*state);
    *state = NULL;
    return status == TR_OK ? 0 : -1;
}

const char *file_path(void *const *state, const char *name) {
    static char paths[16][PATH_MAX];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, PATH_MAX, "%s/%s", (const char *)*state, name);
    return path;
}

void file_write(void *const *state, const char *name, const void *data, size_t bytes) {
    FILE *file = fopen(file_path(state, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

void file_text(void *const *state, const char *name, const char *text) {
    file_write(state, name, text, strlen(text));
}

void file_words(void *const *state, const char *name, size_t bytes) {
    static const char sentence[] = "The quick brown fox jumps over the lazy dog.\n";
    char *text = malloc(bytes);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = sentence[i % (sizeof sentence - 1)];
    }
    file_write(state, name, text, bytes);
    free(text);
}

// All that can be read from `file`, to be freed.
static char *read_all(int file, size_t *bytes) {
    char *text = malloc(1);
    size_t length = 0;
    ssize_t got;
    do {
        text = realloc(text, length + PIECE + 1);
        assert_non_null(text);
        got = read(file, text + length, PIECE);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    text[length] = '\0';
    if (bytes) {
        *bytes = length;
    }
    return text;
}

char *file_read(void *const *state, const char *name, size_t *bytes) {
    int file = open(file_path(state, name), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        fail_msg("%s: %s", name, strerror(errno));
    }
    char *text = read_all(file, bytes);
    close(file);
    return text;
}

json_t *file_json(void *const *state, const char *name) {
    json_error_t error;
    json_t *object =
        json_load_file(file_path(state, name), JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        fail_msg("%s:%d: %s", name, error.line, error.text);
    }
    return object;
}

double number_in(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) {
        fail_msg("%s is missing, or no number", name);
    }
    return json_number_value(value);
}

// ---- commands

static void limit(int which, int64_t bytes) {
    if (bytes > 0) {
        struct rlimit most = {(rlim_t)bytes, (rlim_t)bytes};
        setrlimit(which, &most);
    }
}

static void become(void *const *state, const setting *what, int out, int err,
                   const char *const *arguments) {
    const char *all[ARGUMENTS_MAX] = {what->program ? what->program : TR_PROGRAM};
    for (int i = 0; arguments[i] && i + 2 < ARGUMENTS_MAX; i++) {
        all[i + 1] = arguments[i];
    }
    dup2(out, STDOUT_FILENO);
    dup2(what->together ? out : err, STDERR_FILENO);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(in, STDIN_FILENO);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    for (int i = 0; i < 8 && what->environment[i]; i++) {
        putenv(strdup(what->environment[i]));
    }
    limit(RLIMIT_FSIZE, what->file_limit);
    limit(RLIMIT_AS, what->memory_limit);
    if (what->closed) {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
    }
    if (chdir(*state) == 0) {
        execv(all[0], (char *const *)all);
    }
    _exit(127);
}

// Where standard output goes, and where it is read here (-1: nowhere).
static int open_out(void *const *state, const setting *what, int *reading) {
    int ends[2];
    *reading = -1;
    if (what->out) {
        const char *path = *what->out == '/' ? what->out : file_path(state, what->out);
        int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        assert_true(file >= 0);
        return file;
    }
    if (what->terminal) {
        struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)what->columns};
        assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &size), 0);
    } else {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    }
    *reading = ends[0];
    return ends[1];
}

// Reads one of the program's outputs until its end or the time is over.
typedef struct stream {
    int file;
    char *text;
    size_t length;
} stream;

static void drain(stream *s) {
    s->text = realloc(s->text, s->length + PIECE + 1);
    assert_non_null(s->text);
    ssize_t got = read(s->file, s->text + s->length, PIECE);
    if (got > 0) {
        s->length += (size_t)got;
    } else if (got == 0 || errno != EINTR) { // a terminal ends with an error
        close(s->file);
        s->file = -1;
    }
    s->text[s->length] = '\0';
}

// The user makes the window of the terminal another width.
static void resize(const setting *what, const stream *out, bool *resized) {
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)what->later_columns};
    if (what->later_columns > 0 && !*resized && out->file >= 0 &&
        strstr(out->text, "loss")) {
        assert_int_equal(ioctl(out->file, TIOCSWINSZ, &size), 0);
        *resized = true;
    }
}

static bool listen(const setting *what, stream streams[2], double until) {
    bool resized = false;
    while (streams[0].file >= 0 || streams[1].file >= 0) {
        struct pollfd files[2] = {{.fd = streams[0].file, .events = POLLIN},
                                  {.fd = streams[1].file, .events = POLLIN}};
        double left = until - tr__seconds();
        if (left <= 0) {
            return false;
        }
        if (poll(files, 2, (int)(left * 1e3) + 1) <= 0) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (streams[i].file >= 0 && files[i].revents) {
                drain(&streams[i]);
            }
        }
        resize(what, &streams[0], &resized);
    }
    return true;
}

outcome run_with(void *const *state, const setting *what,
                 const char *const *arguments) {
    static const setting usual;
    what = what ? what : &usual;
    int reading, err[2], status = 0;
    int out = open_out(state, what, &reading);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        become(state, what, out, err[1], arguments);
    }
    close(out);
    close(err[1]);
    stream streams[2] = {{.file = reading}, {.file = err[0]}};
    streams[0].text = calloc(1, 1);
    streams[1].text = calloc(1, 1);
    bool ended = listen(what, streams, tr__seconds() + HANGS_AFTER);
    if (!ended) {
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return (outcome){.status = !ended              ? -1
                               : WIFEXITED(status) ? WEXITSTATUS(status)
                                                   : 1000 + WTERMSIG(status),
                     .out = streams[0].text,
                     .err = streams[1].text};
}

outcome run(void *const *state, const char *const *arguments) {
    return run_with(state, NULL, arguments);
}

void outcome_free(outcome *o) {
    free(o->out);
    free(o->err);
    *o = (outcome){0};
}

// ---- what is expected

static void show(const char *const *arguments, const outcome *o) {
    print_error("tranche");
    for (int i = 0; arguments[i]; i++) {
        print_error(" %.200s", arguments[i]);
    }
    print_error("\nstatus %d\n%.2000s%.2000s\n", o->status, o->out, o->err);
}

char *succeed(void *const *state, const char *const *arguments) {
    outcome o = run(state, arguments);
    if (o.status != 0) {
        show(arguments, &o);
        fail_msg("status %d", o.status);
    }
    free(o.err);
    return o.out;
}

json_t *succeed_json(void *const *state, const char *const *arguments) {
    json_error_t error;
    char *text = succeed(state, arguments);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        fail_msg("%d: %s\n%s", error.line, error.text, text);
    }
    free(text);
    return object;
}

// Lines of `text` that are messages of the program: "tranche: ...", "tranche CMD: ...".
static int messages(const char *text) {
    int count = 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, "tranche", 7) == 0;
    }
    return count;
}

static bool is_plain(const char *text) {
    for (const char *c = text; *c; c++) {
        if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

void fail_with(void *const *state, const setting *what, const char *const *arguments,
               int status, const char *const *words) {
    outcome o = run_with(state, what, arguments);
    const char *missing = NULL;
    for (int i = 0; i < WORDS_MAX && words[i] && !missing; i++) {
        missing = strstr(o.err, words[i]) ? NULL : words[i];
    }
    size_t length = strlen(o.err);
    bool one = messages(o.err) == 1 && length > 0 && o.err[length - 1] == '\n';
    if (o.status != status || missing || !one || !is_plain(o.err)) {
        show(arguments, &o);
        fail_msg("status %d, wanted %d; %d messages; %s%s", o.status, status,
                 messages(o.err), missing ? "missing: " : "", missing ? missing : "");
    }
    outcome_free(&o);
}

void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) {
        fail_msg("\"%s\" is not in:\n%s", words, text);
    }
}

void assert_same_file(void *const *state, const char *a, const char *b) {
    size_t bytes_a, bytes_b;
    char *text_a = file_read(state, a, &bytes_a),
         *text_b = file_read(state, b, &bytes_b);
    assert_int_equal(bytes_a, bytes_b);
    assert_memory_equal(text_a, text_b, bytes_a);
    free(text_a);
    free(text_b);
}
