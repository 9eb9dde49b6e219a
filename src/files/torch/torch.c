#include "files/torch/torch.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/torch/inside.h"

#include <string.h>
#include <unistd.h>

static const char pickle_name[] = "data.pkl";
enum { PICKLE_MOST = 64 << 20 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values of the file are copied as they are");

// All entries are in one folder, which is named after the file that was saved first.
static tr_status find_folder(tr_torch_file *file, const tr_zip_entry **pickle,
                             tr_error *err) {
    for (size_t i = 0; i < file->zip.count && !file->folder; i++) {
        const tr_zip_entry *entry = &file->zip.entry[i];
        const char *slash = strchr(entry->name, '/');
        if (!slash || strcmp(slash + 1, pickle_name) != 0) {
            continue;
        }
        size_t bytes = (size_t)(slash - entry->name);
        *pickle = entry;
        file->folder = tr__calloc(bytes + 1, 1);
        if (!file->folder) {
            return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
        }
        memcpy(file->folder, entry->name, bytes);
    }
    return file->folder ? TR_OK
                        : tr_fail(err, TR_IO,
                                  "%s: has no data.pkl: it is no file of torch.save's",
                                  file->zip.path);
}

static tr_status check_order(const tr_torch_file *file, tr_error *err) {
    char order[3] = "";
    char *name = tr__format("%s/byteorder", file->folder);
    if (!name) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    const tr_zip_entry *entry = tr__zip_find(&file->zip, name);
    tr_status status = TR_OK;
    tr__free(name);
    if (entry && entry->bytes >= (int64_t)sizeof order) {
        status = tr__pread(file->zip.file, file->zip.path, order, sizeof order,
                           entry->offset, err);
    }
    return status == TR_OK && memcmp(order, "big", sizeof order) == 0
               ? tr_fail(err, TR_IO,
                         "%s: was saved on a big-endian machine, and is read on "
                         "little-endian ones alone",
                         file->zip.path)
               : status;
}

static tr_status read_pickle(tr_torch_file *file, const tr_zip_entry *entry,
                             tr_error *err) {
    if (entry->bytes > PICKLE_MOST) {
        return tr_fail(err, TR_IO, "%s: its pickle has more than %d MiB",
                       file->zip.path, PICKLE_MOST >> 20);
    }
    unsigned char *text = tr__calloc((size_t)entry->bytes + 1, 1);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", file->zip.path);
    }
    tr_status status = tr__pread(file->zip.file, file->zip.path, text,
                                 (size_t)entry->bytes, entry->offset, err);
    if (status == TR_OK) {
        status = tr__torch_unpickle(file, text, (size_t)entry->bytes, err);
    }
    tr__free(text);
    return status;
}

tr_status tr__torch_open(const char *path, bool verify, tr_torch_file **out,
                         tr_error *err) {
    const tr_zip_entry *pickle = NULL;
    tr_torch_file *file = tr__calloc(1, sizeof *file);
    if (!file) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    tr_status status = tr__zip_open(path, &file->zip, err);
    if (status == TR_OK && verify) {
        status = tr__zip_verify(&file->zip, err);
    }
    status = status == TR_OK ? find_folder(file, &pickle, err) : status;
    status = status == TR_OK ? check_order(file, err) : status;
    status = status == TR_OK ? read_pickle(file, pickle, err) : status;
    if (status != TR_OK) {
        tr__torch_close(file);
        return status;
    }
    close(file->zip.file); // there may be one of each of many ranks
    file->zip.file = -1;
    *out = file;
    return TR_OK;
}

void tr__torch_close(tr_torch_file *file) {
    if (!file) {
        return;
    }
    for (size_t i = 0; i < file->count; i++) {
        tr__free(file->value[i]->text);
        tr__free(file->value[i]->item);
        tr__free(file->value[i]);
    }
    tr__free(file->value);
    tr__free(file->folder);
    tr__zip_close(&file->zip);
    tr__free(file);
}

const tr_torch_value *tr__torch_root(const tr_torch_file *file) {
    return file->root;
}
