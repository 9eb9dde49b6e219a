// A file of values for each tag, as DeepSpeed's csv_monitor has it: "step,train_loss",
// and a row for each value. Rows end as those of Python's csv do.
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/watch/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROW_MAX = 128 };

// "Train_Samples_train_loss.csv"; freed with tr__free.
static char *file_path(const char *folder, tr_monitor_tag tag) {
    char *path = tr__format("%s/%s.csv", folder, tr__monitor_tags[tag]);
    for (char *c = path ? path + strlen(folder) + 1 : NULL; c && *c; c++) {
        *c = (char)(*c == '/' || *c == ' ' ? '_' : *c);
    }
    return path;
}

static void put_head(tr_monitor_tag tag, char head[ROW_MAX]) {
    snprintf(head, ROW_MAX, "step,%s\r\n", strrchr(tr__monitor_tags[tag], '/') + 1);
}

// Bytes up to the first row that is of a later sample or not whole; -1: this is no such
// file.
static int64_t keep_bytes(FILE *file, const char *head, int64_t samples) {
    char row[ROW_MAX];
    int64_t kept = 0;
    while (fgets(row, sizeof row, file)) {
        long long of = 0;
        size_t length = strlen(row);
        if (kept == 0 && strcmp(row, head) != 0) {
            return strncmp(row, head, length) == 0 ? 0 : -1; // the beginning of one
        }
        if (row[length - 1] != '\n' ||
            (kept > 0 && (sscanf(row, "%lld,", &of) != 1 || of > samples))) {
            break;
        }
        kept += (int64_t)length;
    }
    return kept;
}

static tr_status cut(const char *path, const char *head, int64_t samples,
                     tr_error *err) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT
                   ? TR_OK
                   : tr_fail(err, TR_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    int64_t kept = keep_bytes(file, head, samples);
    fclose(file);
    if (kept < 0) {
        return tr_fail(err, TR_IO,
                       "%s: is no file of csv_monitor; move it away, or set "
                       "csv_monitor.output_path",
                       path);
    }
    if (samples == 0) {
        return unlink(path) == 0 ? TR_OK
                                 : tr_fail(err, TR_IO, "%s: cannot replace: %s", path,
                                           strerror(errno));
    }
    return truncate(path, kept) == 0
               ? TR_OK
               : tr_fail(err, TR_IO, "%s: cannot write: %s", path, strerror(errno));
}

tr_status tr__csv_monitor_open(tr_csv_monitor *to, const char *folder, int64_t samples,
                               tr_error *err) {
    tr_status status = TR_OK;
    *to = (tr_csv_monitor){.folder = tr__strdup(folder), .written = tr__seconds()};
    for (int tag = 0; tag < TR_MONITOR_TAGS; tag++) {
        char head[ROW_MAX], *path = file_path(folder, (tr_monitor_tag)tag);
        to->of[tag].file = -1;
        put_head((tr_monitor_tag)tag, head);
        if (status == TR_OK) {
            status = path && to->folder
                         ? cut(path, head, samples, err)
                         : tr_fail(err, TR_MEMORY, "no memory for a monitor");
        }
        tr__free(path);
    }
    return status;
}

static tr_status flush(tr_csv_monitor *to, int tag, tr_error *err) {
    const char *rows = to->of[tag].rows;
    size_t bytes = to->of[tag].bytes;
    while (bytes > 0) {
        ssize_t wrote = write(to->of[tag].file, rows, bytes);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return tr_fail(err, TR_IO, "%s: cannot write: %s", to->folder,
                           strerror(wrote < 0 ? errno : ENOSPC));
        }
        rows += wrote;
        bytes -= (size_t)wrote;
    }
    to->of[tag].bytes = 0;
    return TR_OK;
}

tr_status tr__csv_monitor_flush(tr_csv_monitor *to, tr_error *err) {
    tr_status status = TR_OK;
    for (int tag = 0; tag < TR_MONITOR_TAGS && status == TR_OK; tag++) {
        status = flush(to, tag, err);
    }
    to->written = tr__seconds();
    return status;
}

static tr_status put_text(tr_csv_monitor *to, tr_monitor_tag tag, const char *text,
                          tr_error *err) {
    size_t bytes = strlen(text);
    tr_status status =
        bytes > TR_CSV_WAIT - to->of[tag].bytes ? flush(to, tag, err) : TR_OK;
    if (status == TR_OK) {
        memcpy(to->of[tag].rows + to->of[tag].bytes, text, bytes);
        to->of[tag].bytes += bytes;
    }
    return status;
}

// A file is made for its first value.
static tr_status open_file(tr_csv_monitor *to, tr_monitor_tag tag, tr_error *err) {
    char head[ROW_MAX], *path = file_path(to->folder, tag);
    int *file = &to->of[tag].file;
    tr_status status =
        path
            ? tr__file_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, file, err)
            : tr_fail(err, TR_MEMORY, "no memory for a monitor");
    tr__free(path);
    if (status == TR_OK && lseek(*file, 0, SEEK_END) == 0) {
        put_head(tag, head);
        status = put_text(to, tag, head, err);
    }
    return status;
}

// As Python prints what is not finite.
static const char *print_value(char *text, double value) {
    if (isfinite(value)) {
        return tr__print_double(text, value);
    }
    return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

tr_status tr__csv_monitor_put(tr_csv_monitor *to, const tr_monitor_value *values,
                              int count, int64_t samples, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < count && status == TR_OK; i++) {
        char row[ROW_MAX], number[TR_DOUBLE_TEXT_MAX];
        if (to->of[values[i].tag].file < 0) {
            status = open_file(to, values[i].tag, err);
        }
        if (status == TR_OK) {
            snprintf(row, sizeof row, "%" PRId64 ",%s\r\n", samples,
                     print_value(number, values[i].value));
            status = put_text(to, values[i].tag, row, err);
        }
    }
    bool late = tr__seconds() - to->written > 1;
    return status == TR_OK && late ? tr__csv_monitor_flush(to, err) : status;
}

void tr__csv_monitor_close(tr_csv_monitor *to) {
    for (int tag = 0; to->folder && tag < TR_MONITOR_TAGS; tag++) {
        if (to->of[tag].file >= 0) {
            close(to->of[tag].file);
        }
    }
    tr__free(to->folder);
    to->folder = NULL;
}
