#include "cli/init_data.h"

#include <tranche/data.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char *const kind_names[] = {"text", "token ids", "jsonl", "csv", "npy"};

static bool ends_with(const char *path, const char *end) {
    size_t length = strlen(path), of_end = strlen(end);
    return length > of_end && strcasecmp(path + length - of_end, end) == 0;
}

// ---- records

// The first line says of which kind they are.
static tr_status read_first(const char *path, const char *line, size_t length,
                            cli_data *out, tr_error *err) {
    json_error_t problem;
    json_t *record = json_loadb(line, length, 0, &problem);
    bool chats =
        json_object_get(record, "messages") || json_object_get(record, "conversations");
    bool known =
        chats || json_object_get(record, "text") || json_object_get(record, "prompt");
    out->chats = chats;
    json_decref(record);
    return known ? TR_OK
                 : tr_fail(err, TR_DATA,
                           "%.300s: its first line is no record with \"text\", "
                           "\"prompt\" and \"completion\", or \"messages\"",
                           path);
}

static tr_status count_records(const char *path, cli_data *out, tr_error *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    tr_status status = TR_OK;
    FILE *file = fopen(path, "re");
    if (!file) {
        return tr_fail(err, TR_IO, "%.300s: %s", path, strerror(errno));
    }
    while (status == TR_OK && (length = getline(&line, &room, file)) >= 0) {
        bool blank = line[strspn(line, " \t\r\n")] == '\0';
        if (!blank && out->rows == 0) {
            status = read_first(path, line, (size_t)length, out, err);
        }
        out->rows += !blank;
        out->bytes += length;
    }
    free(line);
    fclose(file);
    return status;
}

// ---- others

// Of ids that were not all seen: the usual sizes of vocabularies.
static int64_t vocabulary_of(const tr_survey *s) {
    enum { GPT2 = 50304, MULTIPLE = 64 };
    int64_t largest = s->id_width == 2 ? s->largest_u16 : s->largest_u32;
    int64_t seen = (largest + MULTIPLE) / MULTIPLE * MULTIPLE;
    if (s->looked >= s->bytes) {
        return seen;
    }
    int64_t likely = seen <= GPT2 ? GPT2 : (int64_t)1 << 16;
    while (likely < seen) {
        likely *= 2;
    }
    return likely;
}

static void take_bytes(const tr_survey *s, cli_data *out) {
    int64_t vocabulary = vocabulary_of(s);
    out->id_width = s->id_width;
    out->text = out->text && s->text;
    out->vocabulary = vocabulary > out->vocabulary ? vocabulary : out->vocabulary;
}

// Which of two arrays are the labels: the one of whole numbers, one for each sample.
static tr_status take_array(const char *path, const tr_survey *s, cli_data *out,
                            tr_error *err) {
    bool whole = s->dtype != TR_F32 && s->dtype != TR_F16 && s->dtype != TR_BF16;
    if (s->rank == 1 && whole && !out->labels) {
        out->labels = path;
    } else if (out->features == 0) {
        out->features = s->features;
        out->paths[0] = path;
        out->count = 1;
    } else {
        return tr_fail(err, TR_USAGE,
                       "%.300s: of npy files, name one with the samples [N, ...] and "
                       "one with N whole numbers, the labels",
                       path);
    }
    if (out->rows > 0 && s->rows != out->rows) {
        return tr_fail(err, TR_DATA,
                       "%.300s has %" PRId64 " rows, the file before it %" PRId64, path,
                       s->rows, out->rows);
    }
    out->rows = s->rows;
    return TR_OK;
}

static tr_status take(const char *path, const tr_survey *s, cli_data *out,
                      tr_error *err) {
    out->files += s->files;
    out->bytes += s->bytes;
    switch (s->kind) {
    case TR_SURVEY_NPY:
        return take_array(path, s, out, err);
    case TR_SURVEY_CSV:
        if (out->rows > 0 && s->features != out->features) {
            return tr_fail(err, TR_DATA,
                           "%.300s has %" PRId64
                           " features, the file before it %" PRId64,
                           path, s->features, out->features);
        }
        out->rows += s->rows;
        out->features = s->features;
        out->classes = s->classes > out->classes ? s->classes : out->classes;
        return TR_OK;
    case TR_SURVEY_BYTES:
        break;
    }
    take_bytes(s, out);
    return TR_OK;
}

// ---- all together

static cli_data_kind kind_of(const char *path, const tr_survey *s) {
    return ends_with(path, ".jsonl")     ? CLI_DATA_RECORDS
           : s->kind == TR_SURVEY_CSV    ? CLI_DATA_TABLE
           : s->kind == TR_SURVEY_NPY    ? CLI_DATA_ARRAYS
           : !s->text && s->id_width > 0 ? CLI_DATA_TOKENS
                                         : CLI_DATA_TEXT;
}

static tr_status look_at(const char *path, bool first, cli_data *out, tr_error *err) {
    tr_survey survey = TR_SURVEY_INIT;
    tr_status status = tr_data_survey(path, &survey, err);
    if (status != TR_OK) {
        return status;
    }
    cli_data_kind kind = kind_of(path, &survey);
    if (!first && kind != out->kind) {
        return tr_fail(err, TR_USAGE,
                       "%.300s is %s, and the data before it are %s: a run trains on "
                       "one kind",
                       path, kind_names[kind], kind_names[out->kind]);
    }
    out->kind = kind;
    if (kind == CLI_DATA_RECORDS) {
        out->files++;
        return count_records(path, out, err);
    }
    return take(path, &survey, out, err);
}

// How many classes the labels have: the library reads them.
static tr_status find_classes(cli_data *data, tr_error *err) {
    tr_data_options options = TR_DATA_OPTIONS_INIT;
    tr_dataset *opened = NULL;
    if (!data->labels || data->features == 0) {
        return tr_fail(
            err, TR_USAGE,
            "npy: name two files: one with the samples [N, ...] and one with "
            "N whole numbers, the labels");
    }
    options.format = "npy";
    options.paths = data->paths;
    options.path_count = data->count;
    options.labels = data->labels;
    tr_status status = tr_dataset_open(&options, &opened, NULL, err);
    data->classes = status == TR_OK ? tr_dataset_classes(opened) : 0;
    tr_dataset_destroy(opened);
    return status;
}

tr_status cli_data_look(const char **paths, size_t count, cli_data *out,
                        tr_error *err) {
    tr_status status = TR_OK;
    *out = (cli_data){.paths = paths, .count = count, .text = true};
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = look_at(paths[i], i == 0, out, err);
    }
    if (status == TR_OK && out->kind == CLI_DATA_ARRAYS) {
        status = find_classes(out, err);
    }
    return status;
}
