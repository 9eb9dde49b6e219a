#include "cli/inspect_data.h"

#include "cli/json.h"
#include "report/terminal.h"

#include <tranche/data.h>
#include <tranche/types.h>

#include <inttypes.h>
#include <stdio.h>

static void print_head(const char *path, const tr_survey *s, const char *what) {
    char size[32];
    fputs("path     ", stdout);
    report_print_name(stdout, path);
    printf("\n"
           "dataset  %s: %" PRId64 " file%s, %s (%" PRId64 " bytes)\n",
           what, s->files, s->files == 1 ? "" : "s",
           tr_size_words(s->bytes, size, sizeof size), s->bytes);
    if (s->hidden + s->binary > 0) {
        printf("passed   over %" PRId64 " hidden and %" PRId64 " binary\n", s->hidden,
               s->binary);
    }
}

// Where the bytes may be ids of this width.
static void print_tokens(const tr_survey *s, int width, int64_t largest,
                         int64_t positions) {
    bool known = s->id_width > 0, seen = known && s->id_width == width;
    bool other = known && !seen;
    if (s->text || s->bytes % width != 0 || other || (width == 4 && !seen)) {
        return;
    }
    printf("tokens   {\"format\": \"tokens\", \"dtype\": \"u%d\"}: %" PRId64
           " samples of %" PRId64 " positions, largest id %" PRId64 "%s%s\n",
           8 * width, tr_survey_windows(s, width, positions), positions, largest,
           s->looked < s->bytes ? " so far" : "", seen ? "; they look like it" : "");
}

static void print_bytes(const tr_survey *s, int64_t positions) {
    printf("bytes    {\"format\": \"bytes\"}: %" PRId64 " samples of %" PRId64
           " positions, vocab_size 256\n",
           tr_survey_windows(s, 1, positions), positions);
    print_tokens(s, 2, s->largest_u16, positions);
    print_tokens(s, 4, s->largest_u32, positions);
    if (s->looked < s->bytes) {
        printf("looked   at the first %" PRId64 " bytes\n", s->looked);
    }
}

static void print_npy(const tr_survey *s) {
    printf("array    %s [", tr_dtype_name(s->dtype));
    for (int d = 0; d < s->rank; d++) {
        printf("%s%" PRId64, d ? ", " : "", s->dim[d]);
    }
    printf("]: %" PRId64 " samples, %" PRId64 " values each\n", s->rows, s->features);
    if (s->rank == 1) {
        printf("tokens   not as it is: write the ids alone with "
               "numpy.load(FILE).astype(\"<u2\").tofile(\"train.bin\")\n");
    }
}

static void print(const char *path, const tr_survey *s, int64_t positions) {
    switch (s->kind) {
    case TR_SURVEY_BYTES:
        print_head(path, s, s->text ? "text" : "bytes");
        print_bytes(s, positions);
        break;
    case TR_SURVEY_CSV:
        print_head(path, s, "csv");
        printf("table    %" PRId64 " samples, %" PRId64
               " features, labels in [0, %" PRId64 ") in the last column\n",
               s->rows, s->features, s->classes);
        break;
    case TR_SURVEY_NPY:
        print_head(path, s, "npy");
        print_npy(s);
        break;
    }
}

// ---- JSON

static json_t *bytes_json(const tr_survey *s, int64_t positions) {
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "format", "bytes",
                     "text", s->text, "looked_bytes", (json_int_t)s->looked,
                     "largest_u16", (json_int_t)s->largest_u16, "largest_u32",
                     (json_int_t)s->largest_u32, "token_bits",
                     (json_int_t)s->id_width * 8, "positions", (json_int_t)positions,
                     "samples", (json_int_t)tr_survey_windows(s, 1, positions));
}

static json_t *csv_json(const tr_survey *s) {
    return json_pack("{s:s, s:I, s:I, s:I}", "format", "csv", "samples",
                     (json_int_t)s->rows, "features", (json_int_t)s->features,
                     "classes", (json_int_t)s->classes);
}

static json_t *npy_json(const tr_survey *s) {
    json_t *shape = json_array();
    for (int d = 0; d < s->rank; d++) {
        if (json_array_append_new(shape, json_integer(s->dim[d])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:o, s:I, s:I}", "format", "npy", "dtype",
                     tr_dtype_name(s->dtype), "shape", shape, "samples",
                     (json_int_t)s->rows, "features", (json_int_t)s->features);
}

static tr_status print_json(const char *path, const tr_survey *s, int64_t positions,
                            tr_error *err) {
    json_t *inner = s->kind == TR_SURVEY_BYTES ? bytes_json(s, positions)
                    : s->kind == TR_SURVEY_CSV ? csv_json(s)
                                               : npy_json(s);
    json_t *root = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I}", "path", cli_json_path(path), "kind",
        "dataset", "files", (json_int_t)s->files, "bytes", (json_int_t)s->bytes,
        "hidden", (json_int_t)s->hidden, "binary", (json_int_t)s->binary);
    if (!root || !inner || json_object_update(root, inner) != 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(inner);
    return cli_json_print(root, err);
}

tr_status cli_inspect_data(const char *path, int64_t positions, bool json,
                           tr_error *err) {
    tr_survey survey = TR_SURVEY_INIT;
    tr_status status = tr_data_survey(path, &survey, err);
    if (status == TR_OK && json) {
        status = print_json(path, &survey, positions, err);
    } else if (status == TR_OK) {
        print(path, &survey, positions);
    }
    return status;
}
