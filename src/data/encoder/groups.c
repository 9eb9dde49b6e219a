#include "data/encoder/groups.h"

#include "data/chat/json_lines.h"
#include "data/text/text_files.h"

enum { NEGATIVE = 2 };

const char *tr__group_field(const tr_data_options *options, int64_t k) {
    static const char *const usual[] = {"anchor", "positive", "negative"};
    const char *const given[] = {options->fields.anchor, options->fields.positive,
                                 options->fields.negative};
    return given[k] ? given[k] : usual[k];
}

tr_status tr__group_survey(const tr_data_options *options, int64_t *texts,
                           tr_error *err) {
    const tr_data_files paths = {.paths = options->paths,
                                 .count = options->path_count,
                                 .paths_key = "data.train",
                                 .leave_out = options->leave_out,
                                 .text = true};
    tr_joined files = {0};
    json_t *record = NULL;
    tr_status status = tr__text_files_open(options, &paths, &files, err);
    if (status == TR_OK) {
        tr_json_lines lines = {.files = &files};
        status = tr__json_lines_next(&lines, &record, err);
        tr__json_lines_close(&lines);
        tr__joined_close(&files);
    }
    *texts = 0;
    for (int64_t k = 0; record && k <= NEGATIVE; k++) {
        bool there = json_object_get(record, tr__group_field(options, k)) != NULL;
        *texts = there && *texts == k ? k + 1 : *texts;
    }
    json_decref(record);
    return status;
}
