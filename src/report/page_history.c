// What ran in an out folder, by its history.jsonl: when, by which command, of which
// version, on which machine, how it ended, and what it said.
#include "report/markup.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STARTS_MOST = 32, TEXT_MAX = 64 };

static bool is_kind(const json_t *event, const char *kind) {
    const char *is = json_string_value(json_object_get(event, "kind"));
    return is && strcmp(is, kind) == 0;
}

static double time_of(const json_t *event) {
    return json_number_value(json_object_get(event, "time"));
}

static void put_time(double seconds, FILE *to) {
    char text[TEXT_MAX] = "-";
    struct tm parts;
    time_t at = fabs(seconds) < 1e11 ? (time_t)seconds : 0;
    if (at > 0 && gmtime_r(&at, &parts)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    fputs(text, to);
}

static void put_member(const json_t *of, const char *name, FILE *to) {
    const char *text = json_string_value(json_object_get(of, name));
    markup_text(text ? text : "-", to);
}

// As a shell takes it: in quotes where a word has more than names have.
static void put_word(const char *word, FILE *to) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./=:,+-@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        markup_text(word, to);
        return;
    }
    fputs("'", to);
    for (const char *at = word; *at;) {
        size_t bytes = strcspn(at, "'");
        char *part = bytes > 0 ? strndup(at, bytes) : NULL;
        markup_text(part ? part : "'\\''", to);
        free(part);
        at += bytes > 0 ? bytes : 1;
    }
    fputs("'", to);
}

static void put_command(const json_t *words, FILE *to) {
    size_t i;
    const json_t *word;
    json_array_foreach((json_t *)words, i, word) {
        fputs(i > 0 ? " " : "", to);
        put_word(json_is_string(word) ? json_string_value(word) : "?", to);
    }
}

static void put_machine(const json_t *machine, int64_t ranks, FILE *to) {
    json_int_t cores = json_integer_value(json_object_get(machine, "cores"));
    double bytes = json_number_value(json_object_get(machine, "memory_bytes"));
    put_member(machine, "processor", to);
    fprintf(to, ", %lld core%s, %.1f GiB; %lld rank%s", (long long)cores,
            cores == 1 ? "" : "s", bytes / (1 << 30), (long long)ranks,
            ranks == 1 ? "" : "s");
}

static void put_row(const char *name, FILE *to) {
    fprintf(to, "<tr><th scope=\"row\">%s</th><td>", name);
}

static void end_row(FILE *to) {
    fputs("</td></tr>\n", to);
}

// end: NULL: none is recorded.
static void put_end(const json_t *start, const json_t *end, FILE *to) {
    if (!end) {
        fputs("nothing says so: it goes on, or was killed", to);
        return;
    }
    json_int_t status = json_integer_value(json_object_get(end, "exit_status"));
    put_time(time_of(end), to);
    fprintf(to, ", after %.0f s, with status %lld", time_of(end) - time_of(start),
            (long long)status);
    const char *error = json_string_value(json_object_get(end, "error"));
    if (error) {
        fputs(": ", to);
        markup_text(error, to);
    }
}

static void put_lines(const json_t *lines, const char *class, FILE *to) {
    size_t i;
    const json_t *line;
    json_array_foreach((json_t *)lines, i, line) {
        fprintf(to, "<li class=\"%s\">", class);
        markup_text(json_is_string(line) ? json_string_value(line) : "?", to);
        fputs("</li>\n", to);
    }
}

// What it said before its first step, and its warnings from then on: those of events
// [first, end) of the history.
static void put_said(const json_t *history, size_t first, size_t end, FILE *to) {
    const json_t *start = json_array_get(history, first);
    fputs("<details><summary>what it said</summary><ul class=\"said\">\n", to);
    put_lines(json_object_get(start, "said"), "note", to);
    put_lines(json_object_get(start, "warnings"), "warning", to);
    for (size_t i = first + 1; i < end; i++) {
        const json_t *event = json_array_get(history, i);
        if (is_kind(event, "warning")) {
            fputs("<li class=\"warning\">", to);
            put_member(event, "text", to);
            fputs("</li>\n", to);
        }
    }
    fputs("</ul></details>\n", to);
}

// A process: from its start to before that of the next.
static void put_process(const json_t *history, size_t first, size_t end, FILE *to) {
    const json_t *start = json_array_get(history, first), *last = NULL;
    for (size_t i = first + 1; i < end; i++) {
        const json_t *event = json_array_get(history, i);
        last = is_kind(event, "end") ? event : last;
    }
    fputs("<div class=\"scroll\"><table class=\"history\">\n", to);
    put_row("began", to);
    put_time(time_of(start), to);
    end_row(to);
    put_row("ended", to);
    put_end(start, last, to);
    end_row(to);
    put_row("command", to);
    put_command(json_object_get(start, "command"), to);
    end_row(to);
    put_row("folder", to);
    put_member(start, "folder", to);
    end_row(to);
    put_row("version", to);
    put_member(start, "version", to);
    end_row(to);
    put_row("machine", to);
    put_machine(json_object_get(start, "machine"),
                json_integer_value(json_object_get(start, "ranks")), to);
    end_row(to);
    fputs("</table></div>\n", to);
    put_said(history, first, end, to);
}

static size_t next_start(const json_t *history, size_t from) {
    size_t i = from;
    while (i < json_array_size(history) &&
           !is_kind(json_array_get(history, i), "start")) {
        i++;
    }
    return i;
}

static size_t count_starts(const json_t *history) {
    size_t count = 0, all = json_array_size(history);
    for (size_t i = next_start(history, 0); i < all; i = next_start(history, i + 1)) {
        count++;
    }
    return count;
}

void page_history(const page_run *run, FILE *to) {
    size_t starts = count_starts(run->history), all = json_array_size(run->history);
    size_t left_out = starts > STARTS_MOST ? starts - STARTS_MOST : 0, number = 0;
    if (starts == 0) {
        return;
    }
    fputs("<section class=\"run\"><h2>The run: <code>", to);
    markup_text(run->path, to);
    fputs("</code></h2>\n", to);
    if (left_out > 0) {
        fprintf(to, "<p>%zu earlier starts are left out.</p>\n", left_out);
    }
    for (size_t i = next_start(run->history, 0); i < all;) {
        size_t next = next_start(run->history, i + 1);
        if (number++ >= left_out) {
            put_process(run->history, i, next, to);
        }
        i = next;
    }
    fputs("</section>\n", to);
}
