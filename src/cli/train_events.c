#include "cli/train_events.h"

#include "cli/json.h"

#include <stdio.h>
#include <time.h>

static double wall_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Releases the event. Whoever reads the lines may leave: the training goes on.
static void put_event(json_t *event) {
    enum { DIGITS = 14 }; // of milliseconds since 1970
    if (cli_json_line(event, DIGITS, NULL) == TR_OK) {
        putchar('\n');
    }
    fflush(stdout);
}

static void put_text(const char *kind, const char *text) {
    json_t *value = cli_json_path(text);
    if (value) {
        put_event(json_pack("{s:s, s:f, s:o}", "kind", kind, "time", wall_seconds(),
                            "text", value));
    }
}

void cli_event_say(void *user, tr_message_level level, const char *line) {
    (void)user;
    put_text(level == TR_MESSAGE_WARNING ? "warning" : "note", line);
}

void cli_event_warning(void *user, tr_message_level level, const char *line) {
    if (level == TR_MESSAGE_WARNING) {
        cli_event_say(user, level, line);
    }
}

void cli_event_metrics(void *user, const char *line) {
    (void)user;
    puts(line);
    fflush(stdout);
}

static void show_line(void *user, const char *text) {
    (void)user;
    put_text("note", text);
}

static void pass_over(void *user, const char *text) {
    (void)user;
    (void)text;
}

tr_screen cli_event_screen(bool quiet) {
    return (tr_screen){.line = quiet ? NULL : show_line, .live = pass_over};
}

void cli_event_end(int exit_status, const char *error) {
    json_t *words = error ? cli_json_path(error) : json_null();
    if (words) {
        put_event(json_pack("{s:s, s:f, s:i, s:o}", "kind", "end", "time",
                            wall_seconds(), "exit_status", exit_status, "error",
                            words));
    }
}
