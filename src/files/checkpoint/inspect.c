#include <tranche/checkpoint.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "files/checkpoint/checkpoint.h"
#include "files/safetensors/json.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct tr_inspection {
    char *path;
    tr_checkpoint *checkpoint; // NULL: plain weights
    tr_tensor_set *weights;    // the checkpoint's, or own
};

static tr_status open_weights(tr_inspection *inspection, tr_error *err) {
    char state[PATH_MAX];
    tr_status status =
        tr__path_join(state, sizeof state, inspection->path, "state.json", err);
    if (status != TR_OK) {
        return status;
    }
    if (access(state, F_OK) != 0) {
        return tr__tensor_set_open(inspection->path, &inspection->weights, err);
    }
    status = tr__checkpoint_open(inspection->path, TR_VERIFY_SIZES, NULL,
                                 &inspection->checkpoint, err);
    if (status == TR_OK) {
        inspection->weights = inspection->checkpoint->model;
    }
    return status;
}

tr_status tr_checkpoint_inspect(const char *path, tr_inspection **out, tr_error *err) {
    char located[PATH_MAX];
    tr_status status = tr_checkpoint_locate(path, located, sizeof located, err);
    if (status != TR_OK) {
        return status;
    }
    tr_inspection *inspection = tr__calloc(1, sizeof *inspection);
    char *name = tr__strdup(located);
    if (!inspection || !name) {
        tr__free(inspection);
        tr__free(name);
        return tr_fail(err, TR_MEMORY, "no memory to open %s", path);
    }
    inspection->path = name;
    status = open_weights(inspection, err);
    if (status != TR_OK) {
        tr_inspection_destroy(inspection);
        return status;
    }
    *out = inspection;
    return TR_OK;
}

void tr_inspection_destroy(tr_inspection *inspection) {
    if (!inspection) {
        return;
    }
    if (inspection->checkpoint) {
        tr__checkpoint_close(inspection->checkpoint);
    } else {
        tr__tensor_set_close(inspection->weights);
    }
    tr__free(inspection->path);
    tr__free(inspection);
}

size_t tr_inspection_count(const tr_inspection *inspection) {
    return tr__tensor_set_count(inspection->weights);
}

const tr_stored_tensor *tr_inspection_tensor(const tr_inspection *inspection,
                                             size_t i) {
    return tr__tensor_set_at(inspection->weights, i);
}

// ---- text

static void print_set(const char *title, const tr_tensor_set *set, FILE *to) {
    int64_t elements = 0, bytes = 0;
    char size[32];
    fprintf(to, "%s\n", title);
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        char shape[32 * TR_STORED_RANK_MAX] = "[";
        size_t end = 1;
        for (int d = 0; d < tensor->rank; d++) {
            end += (size_t)snprintf(shape + end, sizeof shape - end, "%s%" PRId64,
                                    d ? ", " : "", tensor->dim[d]);
        }
        snprintf(shape + end, sizeof shape - end, "]");
        fputs("  ", to);
        tr__print_name(to, tensor->name, 44);
        fprintf(to, " %-5s %-20s %14" PRId64 " bytes\n", tr_dtype_name(tensor->dtype),
                shape, tensor->bytes);
        elements += tensor->count;
        bytes += tensor->bytes;
    }
    tr__print_size(size, sizeof size, bytes);
    fprintf(to, "  %zu tensor%s, %" PRId64 " element%s, %s\n",
            tr__tensor_set_count(set), tr__plural((int64_t)tr__tensor_set_count(set)),
            elements, tr__plural(elements), size);
}

static void print_state(const tr_checkpoint *checkpoint, FILE *to) {
    const tr_state *state = &checkpoint->state;
    fprintf(to,
            "checkpoint  step %" PRId64 ", updates %" PRId64 ", skipped %" PRId64
            ", epoch %" PRId64 ", next sample %" PRId64 ", seed %" PRIu64
            ", loss scale %g\n",
            state->step, state->update, state->skipped, state->epoch, state->cursor,
            state->seed, state->loss_scale);
    for (int i = 0; i < checkpoint->manifest.count; i++) {
        const tr_file_record *file = &checkpoint->manifest.file[i];
        fputs("  ", to);
        tr__print_name(to, file->name, 44);
        fprintf(to, " %16" PRIx64 " %22" PRId64 " bytes\n", file->hash, file->bytes);
    }
}

static tr_status print_text(const void *of, FILE *to, tr_error *err) {
    const tr_inspection *inspection = of;
    (void)err;
    fputs("path        ", to);
    tr__print_name(to, inspection->path, 0);
    fputc('\n', to);
    if (inspection->checkpoint) {
        print_state(inspection->checkpoint, to);
    }
    print_set("model", inspection->weights, to);
    if (inspection->checkpoint) {
        print_set("optimizer", inspection->checkpoint->optimizer, to);
    }
    return TR_OK;
}

tr_status tr_inspection_print(const tr_inspection *inspection, const tr_sink *to,
                              tr_error *err) {
    return tr__sink_print(to, "tr_inspection_print", print_text, inspection, err);
}

// ---- JSON

static json_t *shape_json(const tr_stored_tensor *tensor) {
    json_t *shape = json_array();
    for (int d = 0; d < tensor->rank; d++) {
        json_array_append_new(shape, json_integer(tensor->dim[d]));
    }
    return shape;
}

static json_t *set_json(const tr_tensor_set *set) {
    json_t *list = json_array();
    int64_t elements = 0, bytes = 0;
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", tensor->name, "dtype",
                            tr_dtype_name(tensor->dtype), "shape", shape_json(tensor),
                            "elements", (json_int_t)tensor->count, "bytes",
                            (json_int_t)tensor->bytes));
        elements += tensor->count;
        bytes += tensor->bytes;
    }
    if (json_array_size(list) != tr__tensor_set_count(set)) { // no memory on the way
        json_decref(list);
        return NULL;
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "tensor_count",
                     (json_int_t)tr__tensor_set_count(set), "elements",
                     (json_int_t)elements, "bytes", (json_int_t)bytes, "tensors", list);
}

static tr_status print_json(const void *of, FILE *to, tr_error *err) {
    const tr_inspection *inspection = of;
    const tr_checkpoint *checkpoint = inspection->checkpoint;
    json_t *metadata = (json_t *)tr__tensor_set_metadata(inspection->weights);
    json_t *root =
        json_pack("{s:o, s:s, s:o, s:O*}", "path", tr__json_path(inspection->path),
                  "kind", checkpoint ? "checkpoint" : "weights", "model",
                  set_json(inspection->weights), "metadata", metadata);
    int failed = !root;
    if (checkpoint) {
        failed |=
            json_object_set_new(root, "optimizer", set_json(checkpoint->optimizer));
        failed |=
            json_object_set_new(root, "state", tr__state_json(&checkpoint->state));
        failed |= json_object_set_new(root, "files",
                                      tr__manifest_json(&checkpoint->manifest));
    }
    if (failed) {
        json_decref(root);
        root = NULL;
    }
    return tr__json_print(root, to, err);
}

tr_status tr_inspection_print_json(const tr_inspection *inspection, const tr_sink *to,
                                   tr_error *err) {
    return tr__sink_print(to, "tr_inspection_print_json", print_json, inspection, err);
}
