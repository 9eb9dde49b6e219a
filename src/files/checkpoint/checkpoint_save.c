#include "base/text.h"
#include "files/checkpoint/checkpoint.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "files/checkpoint/shards.h"
#include "files/checkpoint/shared_file.h"
#include "files/safetensors/adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A file of tensors that is written.
typedef struct saved_file {
    char name[TR_SHARD_NAME_MAX];
    char path[PATH_MAX];
    tr_shared_file shared;
} saved_file;

// A save on its way. Folders, names and the smaller files are rank 0's alone.
typedef struct saving {
    const tr_checkpoint_input *input;
    bool leads;             // rank 0
    bool made;              // the folder that is written is there
    char folder[PATH_MAX];  // <out>/checkpoints
    char partial[PATH_MAX]; // where it is written
    char final[PATH_MAX];
    char replaced[PATH_MAX]; // where an older one of the same step goes
    char name[TR_STEP_NAME_MAX];
    tr_shards weights, states; // the optimizer's states
    saved_file *file;          // [files] those of the weights, then of the states
    int files;
    tr_manifest manifest;
    tr_meter meter;
} saving;

// A folder of the caller's: it is written beside its place.
static tr_status name_beside(saving *save, tr_error *err) {
    const char *path = save->input->folder;
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    int used = snprintf(save->replaced, PATH_MAX, "%.*s.replaced", length, path);
    if (length == 0 || used >= PATH_MAX) {
        return tr_fail(err, TR_IO, "'%.300s': not a usable folder name", path);
    }
    snprintf(save->final, PATH_MAX, "%.*s", length, path);
    snprintf(save->partial, PATH_MAX, "%.*s.partial", length, path);
    const char *slash = strrchr(save->final, '/');
    int parent = slash ? (int)(slash - save->final) : 1;
    snprintf(save->folder, PATH_MAX, "%.*s", parent > 0 ? parent : 1,
             slash ? save->final : ".");
    return TR_OK;
}

static tr_status name_paths(saving *save, tr_error *err) {
    static const size_t size = PATH_MAX;
    char name[TR_STEP_NAME_MAX];
    int64_t step = save->input->state->step;
    if (save->input->folder) {
        return name_beside(save, err);
    }
    tr_status status = tr__checkpoints_path(save->input->out_folder, save->folder, err);
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

static tr_status cut_files(saving *save, tr_error *err) {
    const tr_checkpoint_input *input = save->input;
    tr_shards_input cut = {input->adapter ? TR_FILES_ADAPTER : TR_FILES_MODEL,
                           input->model, input->model_count, input->shard_bytes};
    tr_status status = tr__shards_cut(&cut, &save->weights, err);
    if (status != TR_OK) {
        return status;
    }
    cut.files = TR_FILES_OPTIMIZER;
    cut.pieces = input->optimizer;
    cut.count = input->optimizer_count;
    return tr__shards_cut(&cut, &save->states, err);
}

static tr_status name_file(const saving *save, const tr_shards *shards, int index,
                           saved_file *file, tr_error *err) {
    const size_t *begin = &shards->begin[index];
    tr__shard_name(shards, index, file->name);
    file->shared = (tr_shared_file){.comm = save->input->comm,
                                    .path = file->path,
                                    .tensors = shards->pieces + begin[0],
                                    .count = begin[1] - begin[0],
                                    .source = save->input->source,
                                    .finite = shards->files != TR_FILES_OPTIMIZER};
    return tr__path_join(file->path, PATH_MAX, save->partial, file->name, err);
}

// The files of tensors, the same on all ranks.
static tr_status name_files(saving *save, tr_error *err) {
    tr_status status = cut_files(save, err);
    if (status != TR_OK) {
        return status;
    }
    int weights = save->weights.count, files = weights + save->states.count;
    save->file = tr__calloc((size_t)files, sizeof *save->file);
    if (!save->file) {
        return tr_fail(err, TR_MEMORY, "no memory to write a checkpoint");
    }
    save->files = files;
    for (int f = 0; status == TR_OK && f < files; f++) {
        status = f < weights
                     ? name_file(save, &save->weights, f, &save->file[f], err)
                     : name_file(save, &save->states, f - weights, &save->file[f], err);
    }
    return status;
}

static tr_status move(const char *from, const char *to, tr_error *err) {
    return rename(from, to) == 0 ? TR_OK
                                 : tr_fail(err, TR_IO, "%s: cannot rename to %s: %s",
                                           from, to, strerror(errno));
}

// What a save that failed or was killed may have left.
static tr_status clean_beside(const saving *save, tr_error *err) {
    bool aside = access(save->final, F_OK) != 0 && access(save->replaced, F_OK) == 0;
    tr_status status = aside ? move(save->replaced, save->final, err) : TR_OK;
    return status == TR_OK ? tr__folder_remove(save->partial, err) : status;
}

static tr_status clean(const saving *save, tr_error *err) {
    const char *out = save->input->out_folder;
    if (save->input->folder) {
        return clean_beside(save, err);
    }
    tr_status status = tr__folder_sync(out, err);
    return status == TR_OK ? tr__checkpoint_clean(out, err) : status;
}

static tr_status prepare_folder(saving *save, tr_error *err) {
    tr_status status = tr__folder_create(save->folder, err);
    if (status == TR_OK) {
        status = clean(save, err);
    }
    if (status == TR_OK && mkdir(save->partial, 0777) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot create folder: %s", save->partial,
                         strerror(errno));
    }
    save->made = status == TR_OK;
    return status;
}

static tr_file_record *add_record(saving *save, const char *name) {
    tr_file_record *record = &save->manifest.file[save->manifest.count++];
    snprintf(record->name, sizeof record->name, "%s", name);
    return record;
}

static tr_status write_bytes(saving *save, const char *name, const void *data,
                             size_t bytes, tr_error *err) {
    char path[PATH_MAX];
    tr_file_record *record = add_record(save, name);
    record->bytes = (int64_t)bytes;
    record->hash = tr__hash(data, bytes);
    tr_status status = tr__path_join(path, sizeof path, save->partial, name, err);
    return status == TR_OK ? tr__file_replace(path, data, bytes, err) : status;
}

static tr_status write_text(saving *save, const char *name, const char *text,
                            tr_error *err) {
    return write_bytes(save, name, text, strlen(text), err);
}

// The folder of a file in one, where it is not there yet.
static tr_status make_folder(const saving *save, const char *name, tr_error *err) {
    char path[PATH_MAX];
    tr_status status = tr__path_join(path, sizeof path, save->partial, name, err);
    char *slash = status == TR_OK && strchr(name, '/') ? strrchr(path, '/') : NULL;
    if (slash) {
        *slash = '\0';
        status = tr__folder_create(path, err);
    }
    return status;
}

static tr_status write_texts(saving *save, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < save->input->text_count && status == TR_OK; i++) {
        const tr_checkpoint_text *one = &save->input->texts[i];
        status = make_folder(save, one->name, err);
        status = status == TR_OK ? write_text(save, one->name, one->text, err) : status;
    }
    return status;
}

static tr_status write_index(saving *save, const tr_shards *shards, tr_error *err) {
    const char *name = tr__files_index(shards->files);
    if (shards->count == 1) {
        return TR_OK;
    }
    char *text = tr__shards_index(shards);
    tr_status status = text ? write_text(save, name, text, err)
                            : tr_fail(err, TR_MEMORY, "no memory for %s", name);
    tr__free(text);
    return status;
}

static tr_status copy_companions(saving *save, tr_error *err) {
    const tr_companions *all = save->input->companions;
    tr_status status = TR_OK;
    for (int i = 0; all && i < all->count && status == TR_OK; i++) {
        tr_file_record *record = add_record(save, all->item[i].name);
        status = tr__companion_copy(all, i, save->partial, record, err);
    }
    return status;
}

// What lies on the disk is read back before it counts: the state, to the byte, the
// files' sizes and the tensors' headers. (Their hashes were taken of what was written,
// or of what was read back where several ranks wrote.)
static tr_status read_back(const saving *save, const char *state, tr_error *err) {
    size_t model = 0, optimizer = 0;
    for (int f = 0; f < save->files; f++) {
        size_t tensors = tr__shared_file_tensors(&save->file[f].shared);
        *(f < save->weights.count ? &model : &optimizer) += tensors;
    }
    tr_checkpoint *back = NULL;
    char *text = NULL;
    tr_status status =
        tr__checkpoint_open(save->partial, TR_VERIFY_SIZES, NULL, &back, err);
    if (status == TR_OK) {
        status = tr__state_encode(&back->state, &back->manifest, &text, err);
    }
    if (status == TR_OK &&
        (strcmp(text, state) != 0 || strcmp(back->config, save->input->config) != 0 ||
         tr__tensor_set_count(back->model) != model ||
         tr__tensor_set_count(back->optimizer) != optimizer)) {
        status = tr_fail(err, TR_IO,
                         "%s: the file differs from what was written: the disk or its "
                         "file system has lost data",
                         save->partial);
    }
    tr__free(text);
    tr__checkpoint_close(back);
    return status;
}

// Last of all: a folder without it is no checkpoint.
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
    if (status == TR_OK) {
        status = read_back(save, text, err);
    }
    tr__free(text);
    return status;
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
        return tr_fail(err, TR_IO,
                       "%s: the new checkpoint needs this name, and what has it is not "
                       "a checkpoint: move it away",
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
    if (status == TR_OK && !save->input->folder) {
        status = tr__link_write(save->folder, TR_LINK_LATEST, save->name, err);
    }
    return status;
}

// What the out folder has beside this checkpoint.
static tr_status tidy_others(const saving *save, tr_error *err) {
    int64_t step = save->input->state->step;
    int removed = 0, moved = 0;
    tr_status status = TR_OK;
    if (save->input->anew) {
        status = tr__step_clear(save->folder, step, &removed, err);
    } else if (save->input->branches) {
        status =
            tr__step_abandon(save->folder, save->input->own_until, step, &moved, err);
    }
    if (status == TR_OK && !save->input->anew) {
        status = tr__step_prune(save->folder, step, save->input->keep, err);
    }
    if (removed > 0) {
        tr__note(save->input->log, "removed %d checkpoint%s of an earlier run", removed,
                 tr__plural(removed));
    }
    tr__link_tidy(save->folder, TR_LINK_BEST); // what it led to may be gone
    if (moved > 0) {
        tr__note(save->input->log,
                 "moved %d checkpoint%s aside that did not lead to this one "
                 "(step-*.abandoned)",
                 moved, tr__plural(moved));
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
    if (status == TR_OK && !save->input->folder) {
        status = tidy_others(save, &err);
    }
    if (status != TR_OK) {
        tr__warn(save->input->log, "an old checkpoint stays: %s", err.message);
    }
}

// ---- what each rank does until the next time that all learn how all fared

static tr_status open_files(saving *save, tr_error *err) {
    tr_status status = TR_OK;
    int64_t own = 0, all = 0;
    for (int f = 0; status == TR_OK && f < save->files; f++) {
        const tr_shared_file *file = &save->file[f].shared;
        status = tr__shared_file_open(&save->file[f].shared, err);
        if (status == TR_OK) {
            own += tr__shared_file_own_bytes(file);
            all += tr__shared_file_bytes(file);
        }
    }
    // What others write, rank 0 reads.
    save->meter.total = own == all ? all : own + all;
    return status;
}

// Makes the folder and reserves the room: a full disk shows before anything is written.
static tr_status prepare(saving *save, tr_error *err) {
    tr_status status = name_paths(save, err);
    if (status == TR_OK) {
        status = name_files(save, err);
    }
    if (status != TR_OK || !save->leads) {
        return status;
    }
    status = prepare_folder(save, err);
    if (status == TR_OK) {
        status = write_text(save, "config.json", save->input->config, err);
    }
    if (status == TR_OK && save->input->adapter) {
        status = write_text(save, TR_ADAPTER_CONFIG, save->input->adapter, err);
    }
    if (status == TR_OK) {
        status = write_index(save, &save->weights, err);
    }
    if (status == TR_OK) {
        status = write_index(save, &save->states, err);
    }
    if (status == TR_OK) {
        status = write_texts(save, err);
    }
    if (status == TR_OK) {
        status = copy_companions(save, err);
    }
    if (status == TR_OK && save->input->bytes) {
        status = write_bytes(save, TR_CALLER_FILE, save->input->bytes,
                             save->input->byte_count, err);
    }
    return status == TR_OK ? open_files(save, err) : status;
}

static tr_status write_tensors(saving *save, tr_error *err) {
    tr_status status = save->leads ? TR_OK : open_files(save, err);
    for (int f = 0; status == TR_OK && f < save->files; f++) {
        status = tr__shared_file_write(&save->file[f].shared, &save->meter, err);
    }
    return status;
}

static tr_status complete(saving *save, tr_error *err) {
    tr_status status = TR_OK;
    for (int f = 0; f < save->files; f++) { // on all ranks, whatever has come before
        tr_status gathered = tr__shared_file_gather(&save->file[f].shared, err);
        status = status == TR_OK ? gathered : status;
    }
    if (status != TR_OK || !save->leads) {
        return status;
    }
    for (int f = 0; status == TR_OK && f < save->files; f++) {
        saved_file *file = &save->file[f];
        tr_file_record *record = add_record(save, file->name);
        status = tr__shared_file_finish(&file->shared, &save->meter, record, err);
    }
    if (status == TR_OK) {
        status = write_state(save, err);
    }
    if (status == TR_OK) {
        status = tr__folder_sync(save->partial, err);
    }
    return status == TR_OK ? publish(save, err) : status;
}

static tr_status together(saving *save, tr_status (*part)(saving *, tr_error *),
                          tr_error *err) {
    tr_error mine = {0};
    tr_status status = part(save, &mine);
    return tr__agree(save->input->comm, status, &mine, err);
}

static void begin(saving *save, const tr_checkpoint_input *input) {
    *save = (saving){.input = input};
    save->leads = tr__comm_leads(input->comm);
    if (save->leads) {
        save->meter.progress = input->progress;
    }
}

static void end(saving *save) {
    for (int f = 0; f < save->files; f++) {
        tr__shared_file_close(&save->file[f].shared);
    }
    tr__free(save->file);
    tr__shards_free(&save->weights);
    tr__shards_free(&save->states);
}

tr_status tr__checkpoint_save(const tr_checkpoint_input *input, tr_error *err) {
    saving save;
    begin(&save, input);
    tr_status status = together(&save, prepare, err);
    if (status == TR_OK) {
        status = together(&save, write_tensors, err);
    }
    if (status == TR_OK) {
        status = together(&save, complete, err);
    }
    end(&save);
    if (status != TR_OK && save.made) {
        tr__folder_remove(save.partial, NULL); // gives its space back
    } else if (save.leads && status == TR_OK) {
        tidy(&save);
    }
    return status;
}
