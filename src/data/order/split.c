#include "data/order/split.h"

#include "data/sources/dataset.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"

enum { PIECE = 64 }; // indices translated at once

typedef struct split_part {
    tr_dataset *whole;
    tr_split_kind kind;
    int64_t samples, held; // of the whole; for validation
    uint64_t seed, stream;
    bool validation;
} split_part;

// Run r of the `held` runs is [run_start(r), run_start(r + 1)).
static int64_t run_start(const split_part *part, int64_t run) {
    return (int64_t)((__int128)run * part->samples / part->held);
}

// The sample of the run that goes to validation.
static int64_t drawn(const split_part *part, int64_t run) {
    int64_t start = run_start(part, run);
    int64_t length = run_start(part, run + 1) - start;
    return start + (int64_t)tr__draw_below((uint64_t)length, (uint64_t)run, part->seed,
                                           part->stream);
}

// Training sample `index`: each run gives all its samples but one, so run r begins with
// training sample run_start(r) - r.
static int64_t spread_train(const split_part *part, int64_t index) {
    int64_t low = 0, high = part->held;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (run_start(part, middle) - middle <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    int64_t sample = index + low;
    return sample >= drawn(part, low) ? sample + 1 : sample;
}

static int64_t translate(const split_part *part, int64_t index) {
    if (part->kind == TR_SPLIT_TAIL) {
        return part->validation ? part->samples - part->held + index : index;
    }
    return part->validation ? drawn(part, index) : spread_train(part, index);
}

static int64_t samples_of(const split_part *part) {
    return part->validation ? part->held : part->samples - part->held;
}

static tr_status read_part(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const split_part *self = user;
    const tr_batch_tensors *tensors = tr_dataset_tensors(self->whole);
    tr_status status = TR_OK;
    for (int64_t done = 0; status == TR_OK && done < count; done += PIECE) {
        void *to[TR_BATCH_TENSORS_MAX];
        int64_t inner[PIECE], here = tr__min_i64(PIECE, count - done);
        for (int64_t i = 0; i < here; i++) {
            int64_t each = samples_of(self), at = index[done + i];
            inner[i] = translate(self, at % each) + at / each * self->samples;
        }
        tr__rows_move(tensors, done, rows, to);
        status = tr_dataset_read(self->whole, inner, here, to, err);
    }
    return status;
}

static void destroy_part(void *user) {
    split_part *self = user;
    tr_dataset_destroy(self->whole);
    tr__free(self);
}

static tr_status create_part(const split_part *model, tr_dataset **out, tr_error *err) {
    split_part *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory to split a dataset");
    }
    *self = *model;
    tr__dataset_retain(self->whole);
    int64_t numbers[] = {self->kind, self->held, (int64_t)self->seed, self->validation};
    const tr_data_identity *whole = tr__dataset_identity(self->whole);
    tr_data_identity identity = {
        .whole = whole->whole,
        .held = self->held,
        .names = tr__hash_more(whole->names, numbers, sizeof numbers),
    };
    int64_t shared = self->validation ? 0 : tr_dataset_bytes(self->whole);
    tr_dataset_source source = {
        .about = tr_dataset_about(self->whole),
        .samples = samples_of(self),
        .tensors = *tr_dataset_tensors(self->whole),
        .vocabulary = tr_dataset_vocabulary(self->whole),
        .classes = tr_dataset_classes(self->whole),
        .hash = tr__hash_more(whole->whole, numbers, sizeof numbers),
        .bytes = shared + (int64_t)sizeof *self,
        .read = read_part,
        .destroy = destroy_part,
        .user = self,
    };
    tr_status status = tr__dataset_create(&source, out, err);
    if (status == TR_OK) {
        tr__dataset_identify(*out, &identity);
        if (tr__dataset_has_chats(self->whole)) {
            tr__dataset_mark_chats(*out);
        }
        if (tr__dataset_has_epochs(self->whole)) {
            tr__dataset_mark_epochs(*out);
        }
        if (tr__dataset_has_weights(self->whole)) {
            tr__dataset_mark_weights(*out);
        }
    }
    return status;
}

tr_status tr__dataset_split(tr_dataset *whole, tr_split_kind kind, int64_t held,
                            uint64_t seed, tr_dataset **train, tr_dataset **validation,
                            tr_error *err) {
    split_part model = {
        .whole = whole,
        .kind = kind,
        .samples = tr_dataset_samples(whole),
        .held = held,
        .seed = seed,
        .stream = tr__hash_text("data.split"),
    };
    tr_status status = create_part(&model, train, err);
    if (status != TR_OK) {
        return status;
    }
    model.validation = true;
    status = create_part(&model, validation, err);
    if (status != TR_OK) {
        tr_dataset_destroy(*train);
        *train = NULL;
    }
    return status;
}
