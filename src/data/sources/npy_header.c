#include "data/sources/npy_header.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PREAMBLE_MAX = 12,    // magic, version, 4 bytes of length
    HEADER_MAX = 1 << 16, // bytes; numpy writes about 118
};

// The header is the text of a Python dictionary with three known keys.
typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_spaces(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) {
        c->at++;
    }
}

static bool accept(cursor *c, const char *word) {
    size_t length = strlen(word);
    skip_spaces(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

// 'text' or "text", at most size - 1 bytes, without escapes.
static bool accept_text(cursor *c, char *text, size_t size) {
    skip_spaces(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close || (size_t)(close - c->at) >= size ||
        memchr(c->at, '\\', (size_t)(close - c->at))) {
        return false;
    }
    memcpy(text, c->at, (size_t)(close - c->at));
    text[close - c->at] = '\0';
    c->at = close + 1;
    return true;
}

static bool accept_number(cursor *c, int64_t *value) {
    skip_spaces(c);
    const char *begin = c->at;
    *value = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (!tr__mul_i64(*value, 10, value) ||
            !tr__add_i64(*value, *c->at - '0', value)) {
            return false;
        }
        c->at++;
    }
    return c->at > begin;
}

// (), (3,), (3, 4), (3, 4,)
static bool accept_shape(cursor *c, tr_npy_array *array) {
    if (!accept(c, "(")) {
        return false;
    }
    bool comma = true;
    array->rank = 0;
    while (!accept(c, ")")) {
        if (!comma || array->rank == TR_NPY_RANK_MAX ||
            !accept_number(c, &array->dim[array->rank])) {
            return false;
        }
        array->rank++;
        comma = accept(c, ",");
    }
    return array->rank != 1 || comma; // (3) is a number in Python
}

typedef struct npy_header {
    char descr[32];
    bool fortran;
    tr_npy_array *array;
} npy_header;

static bool accept_value(cursor *c, const char *key, npy_header *header,
                         unsigned *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    int which = 0;
    while (which < 3 && strcmp(key, keys[which]) != 0) {
        which++;
    }
    if (which == 3 || *seen & 1u << which) {
        return false;
    }
    *seen |= 1u << which;
    if (which == 0) {
        return accept_text(c, header->descr, sizeof header->descr);
    }
    if (which == 1) {
        header->fortran = accept(c, "True");
        return header->fortran || accept(c, "False");
    }
    return accept_shape(c, header->array);
}

static bool parse_dictionary(cursor c, npy_header *header) {
    char key[32];
    unsigned seen = 0;
    bool comma = true;
    if (!accept(&c, "{")) {
        return false;
    }
    while (!accept(&c, "}")) {
        if (!comma || !accept_text(&c, key, sizeof key) || !accept(&c, ":") ||
            !accept_value(&c, key, header, &seen)) {
            return false;
        }
        comma = accept(&c, ",");
    }
    skip_spaces(&c);
    return c.at == c.end && seen == 7;
}

static tr_dtype find_dtype(const char *descr) {
    static const struct {
        const char *name;
        tr_dtype dtype;
    } types[] = {{"<f4", TR_F32}, {"<f8", TR_F64}, {"|i1", TR_I8},  {"|u1", TR_U8},
                 {"<i1", TR_I8},  {"<u1", TR_U8},  {"<i2", TR_I16}, {"<u2", TR_U16},
                 {"<i4", TR_I32}, {"<u4", TR_U32}, {"<i8", TR_I64}, {"<u8", TR_U64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(descr, types[i].name) == 0) {
            return types[i].dtype;
        }
    }
    return TR_NONE;
}

static tr_status interpret(const npy_header *header, const char *path, tr_error *err) {
    tr_npy_array *array = header->array;
    array->dtype = find_dtype(header->descr);
    if (array->dtype == TR_NONE) {
        return tr_fail(err, TR_DATA,
                       "%s: elements of type '%s'; save it with "
                       "array.astype('<f4') or, for labels, '<i4'",
                       path, header->descr);
    }
    if (header->fortran && array->rank > 1) {
        return tr_fail(err, TR_DATA,
                       "%s: in Fortran order; save it with numpy.ascontiguousarray",
                       path);
    }
    array->count = 1;
    for (int i = 0; i < array->rank; i++) {
        if (!tr__mul_i64(array->count, array->dim[i], &array->count)) {
            return tr_fail(err, TR_DATA, "%s: a shape too large to count", path);
        }
    }
    return TR_OK;
}

static tr_status check_size(const tr_npy_array *array, int64_t bytes, const char *path,
                            tr_error *err) {
    int64_t need = 0;
    if (!tr__mul_i64(array->count, (int64_t)tr_dtype_bytes(array->dtype), &need) ||
        !tr__add_i64(need, array->offset, &need)) {
        return tr_fail(err, TR_DATA, "%s: a shape too large to count", path);
    }
    if (need == bytes) {
        return TR_OK;
    }
    return tr_fail(err, TR_DATA, "%s: %lld bytes where its header says %lld; %s", path,
                   (long long)bytes, (long long)need,
                   bytes < need ? "the file is cut short, copy it again"
                                : "something follows the array");
}

// The version's length field; 0 when the preamble is not one.
static int64_t header_length(const unsigned char *raw, int *preamble) {
    if (memcmp(raw, "\x93NUMPY", 6) != 0 || raw[6] < 1 || raw[6] > 3 || raw[7] != 0) {
        return 0;
    }
    *preamble = raw[6] == 1 ? 10 : 12;
    int64_t length = raw[8] | raw[9] << 8;
    return raw[6] == 1 ? length
                       : length | (int64_t)raw[10] << 16 | (int64_t)raw[11] << 24;
}

tr_status tr__npy_header_read(int file, const char *path, tr_npy_array *out,
                              tr_error *err) {
    unsigned char raw[PREAMBLE_MAX] = {0};
    struct stat info;
    int preamble = 0;
    *out = (tr_npy_array){0};
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return tr_fail(err, TR_DATA, "%s: not a regular file", path);
    }
    if (info.st_size < PREAMBLE_MAX) {
        return tr_fail(err, TR_DATA, "%s: too short for a .npy file", path);
    }
    tr_status status = tr__pread(file, path, raw, sizeof raw, 0, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t length = header_length(raw, &preamble);
    if (length == 0 || length > HEADER_MAX || preamble + length > info.st_size) {
        return tr_fail(err, TR_DATA,
                       "%s: no .npy file of version 1 to 3, or a damaged one; write it "
                       "with numpy.save",
                       path);
    }
    char *text = tr__calloc((size_t)length, 1);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    npy_header header = {.array = out};
    status = tr__pread(file, path, text, (size_t)length, preamble, err);
    if (status == TR_OK && !parse_dictionary((cursor){text, text + length}, &header)) {
        status = tr_fail(err, TR_DATA,
                         "%s: a .npy header that is no plain array's; write it with "
                         "numpy.save",
                         path);
    }
    tr__free(text);
    out->offset = preamble + length;
    if (status == TR_OK) {
        status = interpret(&header, path, err);
    }
    return status == TR_OK ? check_size(out, info.st_size, path, err) : status;
}

bool tr__npy_is(const char *path) {
    char magic[6] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool same = file >= 0 && pread(file, magic, sizeof magic, 0) == sizeof magic &&
                memcmp(magic, "\x93NUMPY", sizeof magic) == 0;
    if (file >= 0) {
        close(file);
    }
    return same;
}
