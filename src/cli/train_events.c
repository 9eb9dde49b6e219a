#include "cli/train_events.h"

#include "cli/json.h"

#include <stdio.h>
#include <time.h>

static double wall_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

json_t *cli_event_of(const char *kind) {
    return json_pack("{s:s, s:f}", "kind", kind, "time", wall_seconds());
}

json_t *cli_event_of_text(const char *kind, const char *text) {
    json_t *event = cli_event_of(kind);
    if (json_object_set_new(event, "text", cli_json_path(text)) != 0) {
        json_decref(event);
        return NULL;
    }
    return event;
}

json_t *cli_event_of_end(int exit_status, const char *error) {
    json_t *event = cli_event_of("end");
    json_t *words = error ? cli_json_path(error) : json_null();
    if (json_object_set_new(event, "exit_status", json_integer(exit_status)) != 0 ||
        json_object_set_new(event, "error", words) != 0) {
        json_decref(event);
        return NULL;
    }
    return event;
}

// Releases the event. Whoever reads the lines may leave: the training goes on.
static void put_event(json_t *event) {
    if (cli_json_line(event, CLI_EVENT_DIGITS, NULL) == TR_OK) {
        putchar('\n');
    }
    fflush(stdout);
}

static void put_text(const char *kind, const char *text) {
    put_event(cli_event_of_text(kind, text));
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
    put_event(cli_event_of_end(exit_status, error));
}
