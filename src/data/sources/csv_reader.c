#include "data/sources/csv_reader.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 16,
    RECORD_MAX = 1 << 26, // bytes; more is no table of numbers
    END = -1,
    FAILED = -2,
};

struct tr_csv_reader {
    char *path;
    int file;
    size_t at, have; // in buffer
    int64_t line;    // of the byte at `at`
    char *text;
    size_t text_count, text_capacity;
    size_t *field;
    size_t field_count, field_capacity;
    unsigned char buffer[BUFFER];
};

tr_status tr__csv_reader_open(const char *path, tr_csv_reader **out, tr_error *err) {
    tr_csv_reader *reader = tr__calloc(1, sizeof *reader);
    char *copy = tr__strdup(path);
    if (!reader || !copy) {
        tr__free(reader);
        tr__free(copy);
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    reader->path = copy;
    reader->line = 1;
    reader->file = open(path, O_RDONLY | O_CLOEXEC);
    if (reader->file < 0) {
        tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
        tr__csv_reader_close(reader);
        return TR_DATA;
    }
    *out = reader;
    return TR_OK;
}

void tr__csv_reader_close(tr_csv_reader *reader) {
    if (!reader) {
        return;
    }
    if (reader->file >= 0) {
        close(reader->file);
    }
    tr__free(reader->path);
    tr__free(reader->text);
    tr__free(reader->field);
    tr__free(reader);
}

static bool fill(tr_csv_reader *reader, tr_error *err) {
    ssize_t got;
    do {
        got = read(reader->file, reader->buffer, BUFFER);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        tr_fail(err, TR_IO, "%s: cannot read: %s", reader->path, strerror(errno));
        return false;
    }
    reader->at = 0;
    reader->have = (size_t)got;
    return true;
}

// The next byte without taking it; END, FAILED.
static int peek(tr_csv_reader *reader, tr_error *err) {
    if (reader->at == reader->have && !fill(reader, err)) {
        return FAILED;
    }
    return reader->at < reader->have ? reader->buffer[reader->at] : END;
}

static void take(tr_csv_reader *reader) {
    reader->line += reader->buffer[reader->at] == '\n';
    reader->at++;
}

static tr_status put(tr_csv_reader *reader, char byte, int64_t line, tr_error *err) {
    if (reader->text_count >= RECORD_MAX) {
        return tr_fail(err, TR_DATA,
                       "%s:%lld: a record of more than %d bytes; is a quote missing?",
                       reader->path, (long long)line, RECORD_MAX);
    }
    if (!tr__grow((void **)&reader->text, &reader->text_capacity,
                  reader->text_count + 1, 1)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", reader->path);
    }
    reader->text[reader->text_count++] = byte;
    return TR_OK;
}

static tr_status begin_field(tr_csv_reader *reader, tr_error *err) {
    if (!tr__grow((void **)&reader->field, &reader->field_capacity,
                  reader->field_count + 1, sizeof *reader->field)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", reader->path);
    }
    reader->field[reader->field_count++] = reader->text_count;
    return TR_OK;
}

static tr_status read_plain(tr_csv_reader *reader, int64_t line, tr_error *err) {
    tr_status status = TR_OK;
    bool returned = false; // the byte before
    while (status == TR_OK) {
        int byte = peek(reader, err);
        if (byte == FAILED) {
            return TR_IO;
        }
        if (returned && byte != END && byte != '\n') {
            return tr_fail(err, TR_DATA,
                           "%s:%lld: a carriage return that ends no line; write the "
                           "file with line ends of LF or CRLF",
                           reader->path, (long long)reader->line);
        }
        if (byte == END || byte == ',' || byte == '\n') {
            break;
        }
        returned = byte == '\r';
        if (byte == '\0') {
            return tr_fail(err, TR_DATA, "%s:%lld: a zero byte; this is no text",
                           reader->path, (long long)reader->line);
        }
        take(reader);
        status = put(reader, (char)byte, line, err);
    }
    return status;
}

// After the opening quote. Leaves the reader at what follows the closing one.
static tr_status read_quoted(tr_csv_reader *reader, int64_t line, tr_error *err) {
    tr_status status = TR_OK;
    while (status == TR_OK) {
        int byte = peek(reader, err);
        if (byte == FAILED) {
            return TR_IO;
        }
        if (byte == END || byte == '\0') {
            return tr_fail(err, TR_DATA,
                           "%s:%lld: a quote that is opened in this record is never "
                           "closed",
                           reader->path, (long long)line);
        }
        take(reader);
        if (byte == '"') {
            byte = peek(reader, err);
            if (byte != '"') {
                return byte == FAILED ? TR_IO : TR_OK;
            }
            take(reader);
        }
        status = put(reader, (char)byte, line, err);
    }
    return status;
}

// Ends a field: passes over the return of a CRLF.
static tr_status end_field(tr_csv_reader *reader, bool quoted, int64_t line,
                           tr_error *err) {
    int byte = peek(reader, err);
    bool last = byte == '\n' || byte == END;
    if (byte == FAILED) {
        return TR_IO;
    }
    if (quoted && byte == '\r') {
        take(reader);
        byte = peek(reader, err);
        last = byte == '\n' || byte == END;
    }
    if (quoted && byte != ',' && !last) {
        return byte == FAILED ? TR_IO
                              : tr_fail(err, TR_DATA,
                                        "%s:%lld: text after the closing quote of a "
                                        "field",
                                        reader->path, (long long)reader->line);
    }
    size_t begin = reader->field[reader->field_count - 1];
    if (!quoted && last && reader->text_count > begin &&
        reader->text[reader->text_count - 1] == '\r') {
        reader->text_count--;
    }
    return put(reader, '\0', line, err);
}

// *more: a comma follows.
static tr_status read_field(tr_csv_reader *reader, int64_t line, bool *more,
                            tr_error *err) {
    tr_status status = begin_field(reader, err);
    int byte = status == TR_OK ? peek(reader, err) : FAILED;
    bool quoted = byte == '"';
    if (status != TR_OK || byte == FAILED) {
        return status != TR_OK ? status : TR_IO;
    }
    if (quoted) {
        take(reader);
        status = read_quoted(reader, line, err);
    } else {
        status = read_plain(reader, line, err);
    }
    if (status == TR_OK) {
        status = end_field(reader, quoted, line, err);
    }
    *more = status == TR_OK && peek(reader, err) == ',';
    if (*more) {
        take(reader);
    }
    return status;
}

// Empty lines, and the mark at the start of the file.
static int skip_blank(tr_csv_reader *reader, tr_error *err) {
    int byte = peek(reader, err);
    if (byte == 0xEF && reader->line == 1 && reader->at == 0 && reader->have >= 3 &&
        memcmp(reader->buffer, "\xEF\xBB\xBF", 3) == 0) {
        reader->at = 3;
        byte = peek(reader, err);
    }
    while (byte == '\n' || byte == '\r') {
        take(reader);
        byte = peek(reader, err);
    }
    return byte;
}

tr_status tr__csv_reader_next(tr_csv_reader *reader, tr_csv_record *record, bool *end,
                              tr_error *err) {
    int byte = skip_blank(reader, err);
    if (byte == FAILED) {
        return TR_IO;
    }
    *end = byte == END;
    if (*end) {
        return TR_OK;
    }
    int64_t line = reader->line;
    bool more = true;
    tr_status status = TR_OK;
    reader->text_count = reader->field_count = 0;
    while (status == TR_OK && more) {
        status = read_field(reader, line, &more, err);
    }
    if (status == TR_OK && peek(reader, err) == '\n') {
        take(reader);
    }
    *record = (tr_csv_record){reader->text, reader->field, (int64_t)reader->field_count,
                              line};
    return status;
}
