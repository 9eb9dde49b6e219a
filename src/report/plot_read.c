// metrics.jsonl, line by line.
#include "report/plot_line.h"
#include "report/terminal.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 1 << 16 };

static const char *const keys[PLOT_SERIES] = {
#define PLOT_KEY(name, key) key,
    PLOT_SERIES_LIST(PLOT_KEY)
#undef PLOT_KEY
};

typedef struct reader {
    const char *path;
    bool tolerant;
    plot_run *run;
    plot_hints hints;
    tr_error *err;
} reader;

const char *plot_key(plot_name name) {
    return keys[name];
}

static tr_status bad_line(const reader *r, const char *what) {
    if (!r->tolerant) {
        return tr_fail(r->err, TR_DATA, "%.300s:%" PRId64 ": %s", r->path,
                       r->run->lines, what);
    }
    if (r->run->damaged < PLOT_DAMAGED_MAX) {
        snprintf(r->run->damage[r->run->damaged], PLOT_DAMAGED_TEXT,
                 "%.120s:%" PRId64 ": %.100s", r->path, r->run->lines, what);
    }
    r->run->damaged++;
    return TR_OK;
}

// The value at "a.b"; of [least, mean, most] over ranks the mean. NULL: there is none.
static const json_t *find(const json_t *line, const char *key) {
    char first[32];
    const char *dot = strchr(key, '.');
    if (!dot) {
        return json_object_get(line, key);
    }
    snprintf(first, sizeof first, "%.*s", (int)(dot - key), key);
    const json_t *value = json_object_get(json_object_get(line, first), dot + 1);
    return json_is_array(value) ? json_array_get(value, 1) : value;
}

// null stands for what is not finite.
static tr_status take_value(const reader *r, plot_name name, int64_t step,
                            const json_t *value) {
    char what[96];
    double number = json_number_value(value);
    if (value && !json_is_number(value) && !json_is_null(value)) {
        snprintf(what, sizeof what, "\"%s\" is neither a number nor null", keys[name]);
        return bad_line(r, what);
    }
    if (json_is_number(value) && isfinite(number)) {
        plot_series_add(&r->run->series[name], step, number);
    }
    return TR_OK;
}

static void take_event(plot_run *run, plot_event event, int64_t step, bool is) {
    if (!is) {
        return;
    }
    if (run->mark_count < PLOT_MARKS_MAX) {
        run->marks[run->mark_count++] = (plot_mark){step, event};
    }
    run->events[event]++;
}

static void take_events(plot_run *run, int64_t step, const json_t *line) {
    take_event(run, PLOT_SKIPPED, step, json_is_true(json_object_get(line, "skipped")));
    take_event(run, PLOT_SPIKE, step, json_is_string(json_object_get(line, "spike")));
    take_event(run, PLOT_ROLLBACK, step, json_object_get(line, "rollback_to") != NULL);
}

static tr_status take_object(const reader *r, const json_t *line) {
    const json_t *number = json_object_get(line, "step");
    json_int_t step = json_integer_value(number);
    tr_status status = TR_OK;
    if (!json_is_integer(number) || step < 0) {
        return bad_line(r, "has no \"step\" of 0 or more");
    }
    for (int i = 0; i < PLOT_SERIES && status == TR_OK; i++) {
        status = take_value(r, (plot_name)i, step, find(line, keys[i]));
    }
    take_events(r->run, step, line);
    return status;
}

static void take_scanned(const reader *r, const plot_line *line) {
    for (int i = 0; i < PLOT_SERIES; i++) {
        if (line->has[i]) {
            plot_series_add(&r->run->series[i], line->step, line->value[i]);
        }
    }
    for (int e = 0; e < PLOT_EVENTS; e++) {
        take_event(r->run, (plot_event)e, line->step, line->event[e]);
    }
}

// `whole`: with a line end.
static tr_status take_line(reader *r, const char *text, size_t length, bool whole) {
    json_error_t problem;
    plot_line scanned;
    if (plot_line_scan(text, length, &r->hints, &scanned)) {
        take_scanned(r, &scanned);
        return TR_OK;
    }
    json_t *line = json_loadb(text, length, 0, &problem);
    if (!line && !whole) {
        return TR_OK; // the run is writing it, or was killed while it did
    }
    if (!line) {
        char what[TR_MESSAGE_MAX];
        snprintf(what, sizeof what, "not JSON: %.160s", problem.text);
        return bad_line(r, what);
    }
    tr_status status =
        json_is_object(line) ? take_object(r, line) : bad_line(r, "not a JSON object");
    json_decref(line);
    return status;
}

static void skip_line(FILE *file) {
    int c = 0;
    while (c != '\n' && c != EOF) {
        c = getc(file);
    }
}

// rest: also takes a last line without an end. *bytes: of lines that were taken, or
// passed over.
static tr_status read_lines(reader *r, FILE *file, bool rest, int64_t *bytes) {
    static char text[LINE_BYTES];
    tr_status status = TR_OK;
    while (status == TR_OK && fgets(text, sizeof text, file)) {
        size_t length = strlen(text);
        bool whole = length > 0 && text[length - 1] == '\n';
        if (!whole && !rest && feof(file)) {
            break;
        }
        r->run->lines++;
        if (!whole && length == LINE_BYTES - 1) {
            status =
                bad_line(r, "a line of over 65,534 bytes; metrics have shorter ones");
            skip_line(file);
        } else if (!whole && !feof(file)) {
            status = bad_line(r, "has a zero byte: this is no text");
        } else {
            status = take_line(r, text, length, whole);
        }
        *bytes = ftello(file);
    }
    if (status == TR_OK && ferror(file)) {
        status =
            tr_fail(r->err, TR_IO, "%.300s: cannot read: %s", r->path, strerror(errno));
    }
    return status;
}

static tr_status locate(const char *path, char *file, size_t size, tr_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return tr_fail(err, TR_IO, "%.300s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        int length = snprintf(file, size, "%s/metrics.jsonl", path);
        return length < (int)size ? TR_OK
                                  : tr_fail(err, TR_IO, "%.300s: path too long", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return tr_fail(err, TR_IO, "%.300s: neither a folder nor a regular file", path);
    }
    snprintf(file, size, "%s", path);
    return TR_OK;
}

static tr_status open_file(const char *path, char file_path[PATH_MAX], FILE **file,
                           tr_error *err) {
    tr_status status = locate(path, file_path, PATH_MAX, err);
    *file = status == TR_OK ? fopen(file_path, "re") : NULL;
    if (status == TR_OK && !*file) {
        return tr_fail(err, TR_IO,
                       "%.300s: %s; give a run's out folder, or a metrics.jsonl",
                       file_path, strerror(errno));
    }
    return status;
}

static void begin(const char *path, plot_run *run) {
    char shown[REPORT_WORD_MAX + 4];
    memset(run, 0, sizeof *run);
    snprintf(run->name, sizeof run->name, "%s", report_word(path, shown));
    for (int i = 0; i < PLOT_SERIES; i++) {
        plot_series_begin(&run->series[i]);
    }
}

static tr_status end(const char *file_path, plot_run *run, tr_status status,
                     tr_error *err) {
    if (status == TR_OK && run->series[PLOT_LOSS].count == 0 &&
        run->series[PLOT_VALIDATION_LOSS].count == 0) {
        status =
            tr_fail(err, TR_DATA, "%.300s: has no step with a loss yet", file_path);
    }
    for (int i = 0; i < PLOT_SERIES; i++) {
        plot_series_smooth(&run->series[i]);
    }
    return status;
}

tr_status plot_read(const char *path, bool tolerant, plot_run *run, tr_error *err) {
    char file_path[PATH_MAX];
    reader r = {file_path, tolerant, run, {{0}}, err};
    FILE *file = NULL;
    int64_t bytes = 0;
    tr_status status = open_file(path, file_path, &file, err);
    if (status != TR_OK) {
        return status;
    }
    begin(path, run);
    status = read_lines(&r, file, true, &bytes);
    fclose(file);
    return end(file_path, run, status, err);
}

// ---- while a run writes

// Does the file have, before the place, what it had when it was read?
static bool is_same(FILE *file, const plot_place *place) {
    char tail[PLOT_TAIL];
    size_t bytes = (size_t)place->tail_bytes;
    return place->bytes > 0 &&
           fseeko(file, (off_t)(place->bytes - place->tail_bytes), SEEK_SET) == 0 &&
           fread(tail, 1, bytes, file) == bytes &&
           memcmp(tail, place->tail, bytes) == 0;
}

static void keep_tail(FILE *file, plot_place *place) {
    int64_t bytes = place->bytes < PLOT_TAIL ? place->bytes : PLOT_TAIL;
    bool there = fseeko(file, (off_t)(place->bytes - bytes), SEEK_SET) == 0 &&
                 fread(place->tail, 1, (size_t)bytes, file) == (size_t)bytes;
    place->tail_bytes = there ? (int)bytes : 0;
}

tr_status plot_read_on(const char *path, plot_run *run, plot_place *place,
                       bool *changed, tr_error *err) {
    char file_path[PATH_MAX];
    reader r = {file_path, true, run, {{0}}, err};
    FILE *file = NULL;
    tr_status status = open_file(path, file_path, &file, err);
    *changed = false;
    if (status != TR_OK) {
        return status;
    }
    if (!is_same(file, place)) {
        *changed = place->bytes > 0;
        *place = (plot_place){0};
        begin(path, run);
    }
    int64_t before = place->bytes;
    fseeko(file, (off_t)before, SEEK_SET);
    clearerr(file);
    status = read_lines(&r, file, false, &place->bytes);
    *changed = *changed || place->bytes > before;
    if (*changed) {
        keep_tail(file, place);
    }
    fclose(file);
    return end(file_path, run, status, err);
}
