#include "ckpt/checkpoint.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "ckpt/tensor_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Elements between two reports of progress: 16 MiB of f32.
enum { REPORT_ELEMENTS = 4 << 20 };

// A save on its way.
typedef struct saving {
    const tr_checkpoint_input *input;
    char folder[PATH_MAX];  // <out>/checkpoints
    char partial[PATH_MAX]; // where it is written
    char final[PATH_MAX];
    char replaced[PATH_MAX]; // where an older one of the same step goes
    char name[TR_STEP_NAME_MAX];
    tr_manifest manifest;
    int64_t done, total; // bytes of tensors
} saving;

static tr_status name_paths(saving *save, tr_error *err) {
    static const size_t size = PATH_MAX;
    char name[TR_STEP_NAME_MAX];
    int64_t step = save->input->state->step;
    tr_status status =
        tr__path_join(save->folder, size, save->input->out_folder, "checkpoints", err);
    tr__step_name(step, TR_STEP_PLAIN, save->name);
    if (status == TR_OK) {
        status = tr__path_join(save->final, size, save->folder, save->name, err);
    }
    tr__step_name(step, TR_STEP_PARTIAL, name);
    if (status == TR_OK) {
        status = tr__path_join(save->partial, size, save->folder, name, err);
    }
    tr__step_name(step, TR_STEP_REPLACED, name);
    if (status == TR_OK) {
        status = tr__path_join(save->replaced, size, save->folder, name, err);
    }
    return status;
}

static tr_status prepare_folder(const saving *save, tr_error *err) {
    tr_status status = tr__folder_create(save->folder, err);
    if (status == TR_OK) {
        status = tr__folder_sync(save->input->out_folder, err);
    }
    if (status == TR_OK) { // a save that failed or was killed may have left something
        status = tr__checkpoint_clean(save->input->out_folder, err);
    }
    if (status == TR_OK && mkdir(save->partial, 0777) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot create folder: %s", save->partial,
                         strerror(errno));
    }
    return status;
}

// A file's path in the partial folder, and its record in the manifest.
static tr_status add_record(saving *save, const char *name, char *path,
                            tr_file_record **record, tr_error *err) {
    *record = &save->manifest.file[save->manifest.count++];
    snprintf((*record)->name, sizeof(*record)->name, "%s", name);
    return tr__path_join(path, PATH_MAX, save->partial, name, err);
}

static tr_status write_text(saving *save, const char *name, const char *text,
                            tr_error *err) {
    char path[PATH_MAX];
    tr_file_record *record;
    tr_status status = add_record(save, name, path, &record, err);
    record->bytes = (int64_t)strlen(text);
    record->hash = tr__hash(text, strlen(text));
    return status == TR_OK ? tr__file_replace(path, text, strlen(text), err) : status;
}

static tr_status put_tensor(saving *save, tr_tensor_writer *writer, size_t index,
                            const tr_checkpoint_tensor *tensor, tr_error *err) {
    tr_status status = TR_OK;
    int64_t count = tr_shape_count(tensor->shape);
    const tr_progress *progress = &save->input->progress;
    for (int64_t first = 0; status == TR_OK && first < count;) {
        int64_t now = tr__min_i64(REPORT_ELEMENTS, count - first);
        status =
            tr__tensor_writer_put(writer, index, first, now, tensor->data + first, err);
        first += now;
        save->done += now * (int64_t)sizeof *tensor->data;
        if (status == TR_OK && progress->report) {
            progress->report(progress->user, save->done, save->total);
        }
    }
    return status;
}

static tr_status write_tensors(saving *save, const char *name,
                               const tr_checkpoint_tensor *tensors, size_t count,
                               tr_error *err) {
    char path[PATH_MAX];
    tr_file_record *record;
    tr_tensor_writer *writer = NULL;
    tr_tensor_spec *specs = tr__calloc(count, sizeof *specs);
    tr_status status = add_record(save, name, path, &record, err);
    if (status == TR_OK && !specs) {
        status = tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        specs[i] = (tr_tensor_spec){tensors[i].name, TR_F32, tensors[i].shape};
    }
    if (status == TR_OK) {
        status = tr__tensor_writer_create(path, specs, count, &writer, err);
    }
    for (size_t i = 0; status == TR_OK && i < count; i++) {
        size_t index = tr__tensor_writer_order(writer, i);
        status = put_tensor(save, writer, index, &tensors[index], err);
    }
    if (status == TR_OK) {
        status = tr__tensor_writer_finish(writer, &record->bytes, &record->hash, err);
    }
    tr__tensor_writer_destroy(writer);
    tr__free(specs);
    return status;
}

static tr_status write_state(saving *save, tr_error *err) {
    char path[PATH_MAX];
    char *text = NULL;
    tr_status status =
        tr__state_encode(save->input->state, &save->manifest, &text, err);
    if (status == TR_OK) {
        status = tr__path_join(path, sizeof path, save->partial, "state.json", err);
    }
    if (status == TR_OK) {
        status = tr__file_replace(path, text, strlen(text), err);
    }
    tr__free(text);
    return status;
}

static tr_status write_files(saving *save, tr_error *err) {
    const tr_checkpoint_input *input = save->input;
    tr_status status = write_text(save, "config.json", input->config, err);
    if (status == TR_OK) {
        status = write_tensors(save, "model.safetensors", input->model,
                               input->model_count, err);
    }
    if (status == TR_OK) {
        status = write_tensors(save, "optimizer.safetensors", input->optimizer,
                               input->optimizer_count, err);
    }
    if (status == TR_OK) {
        status = write_state(save, err);
    }
    return status == TR_OK ? tr__folder_sync(save->partial, err) : status;
}

static tr_status move(const char *from, const char *to, tr_error *err) {
    return rename(from, to) == 0 ? TR_OK
                                 : tr_fail(err, TR_IO, "%s: cannot rename to %s: %s",
                                           from, to, strerror(errno));
}

// Puts the written folder in the place of one of the same step, in one step where the
// file system can: the old one is then under the partial name. Elsewhere (NFS) the old
// one steps aside; were we killed in between, it is found there, and
// tr__checkpoint_clean moves it back.
static tr_status replace(const saving *save, tr_error *err) {
    char state[PATH_MAX];
    tr_status status =
        tr__path_join(state, sizeof state, save->final, "state.json", err);
    if (status != TR_OK) {
        return status;
    }
    if (access(state, F_OK) != 0) {
        return tr_fail(err, TR_IO, "%s: in the way and not a checkpoint: move it away",
                       save->final);
    }
    if (renameat2(AT_FDCWD, save->partial, AT_FDCWD, save->final, RENAME_EXCHANGE) ==
        0) {
        return TR_OK;
    }
    status = move(save->final, save->replaced, err);
    if (status == TR_OK) {
        status = move(save->partial, save->final, err);
        if (status != TR_OK) {
            rename(save->replaced, save->final);
        }
    }
    return status;
}

// Gives the written folder its name, then moves `latest` to it.
static tr_status publish(const saving *save, tr_error *err) {
    struct stat info;
    bool again = lstat(save->final, &info) == 0;
    tr_status status =
        again ? replace(save, err) : move(save->partial, save->final, err);
    if (status == TR_OK) {
        status = tr__folder_sync(save->folder, err);
    }
    if (status == TR_OK) {
        status = tr__latest_write(save->folder, save->name, err);
    }
    return status;
}

// Old checkpoints that cannot be removed do not make the new one fail.
static void tidy(const saving *save) {
    tr_error err = {0};
    tr_status status = tr__folder_remove(save->replaced, &err);
    if (status == TR_OK) {
        status = tr__folder_remove(save->partial, &err);
    }
    if (status == TR_OK) {
        status = tr__step_prune(save->folder, save->input->state->step,
                                save->input->keep, &err);
    }
    if (status != TR_OK) {
        tr__warn(save->input->log, "an old checkpoint stays: %s", err.message);
    }
}

static int64_t total_bytes(const tr_checkpoint_tensor *tensors, size_t count) {
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += tr_shape_count(tensors[i].shape) * (int64_t)sizeof *tensors->data;
    }
    return bytes;
}

tr_status tr__checkpoint_save(const tr_checkpoint_input *input, tr_error *err) {
    saving *save = tr__calloc(1, sizeof *save);
    if (!save) {
        return tr_fail(err, TR_MEMORY, "no memory to save a checkpoint");
    }
    save->input = input;
    save->total = total_bytes(input->model, input->model_count) +
                  total_bytes(input->optimizer, input->optimizer_count);
    tr_status status = name_paths(save, err);
    if (status == TR_OK) {
        status = prepare_folder(save, err);
    }
    if (status == TR_OK) {
        status = write_files(save, err);
        if (status == TR_OK) {
            status = publish(save, err);
        }
        if (status != TR_OK) {
            tr__folder_remove(save->partial, NULL); // gives its space back
        }
    }
    if (status == TR_OK) {
        tidy(save);
    }
    tr__free(save);
    return status;
}
