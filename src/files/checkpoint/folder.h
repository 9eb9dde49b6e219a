// The checkpoints folder of a run: names, what is there, what may be removed.
//
//   <out>/checkpoints/step-00000100           complete: folders get this name last
//   <out>/checkpoints/step-00000100.partial   being written, or being removed
//   <out>/checkpoints/step-00000100.replaced  the one before, of a step saved again
//   <out>/checkpoints/step-00000100.abandoned  of a branch that the run has left
//   <out>/checkpoints/best                    a symbolic link, as `latest` is
//   <out>/checkpoints/latest                  a symbolic link to one of the first kind
#ifndef TR_FILES_CHECKPOINT_FOLDER_H
#define TR_FILES_CHECKPOINT_FOLDER_H

#include <tranche/status.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_STEP_NAME_MAX = 48 };

typedef enum tr_step_kind {
    TR_STEP_PLAIN,
    TR_STEP_PARTIAL,
    TR_STEP_REPLACED,
    TR_STEP_ABANDONED
} tr_step_kind;

typedef struct tr_step_folder {
    int64_t step;
    tr_step_kind kind;
    char name[TR_STEP_NAME_MAX];
} tr_step_folder;

// <out>/checkpoints to dst: [PATH_MAX], for those who write there: TR_IO where it is a
// symbolic link, which could lead into somebody else's files. (<out> itself may be
// one.)
tr_status tr__checkpoints_path(const char *out_folder, char *dst, tr_error *err);

// dst: [TR_STEP_NAME_MAX].
void tr__step_name(int64_t step, tr_step_kind kind, char *dst);

// The step in a name of ours, -1 when it is none.
int64_t tr__step_number(const char *name);

// The folders of these names in `folder`, by step, then kind; nothing else. `*list` is
// freed with tr__free. A missing folder holds none.
tr_status tr__step_scan(const char *folder, tr_step_folder **list, size_t *count,
                        tr_error *err);

// Removes what an interrupted save or removal left, and finishes an interrupted
// replacement. For the start of a run; nobody else may be saving there.
tr_status tr__checkpoint_clean(const char *out_folder, tr_error *err);

// Removes the checkpoints older than `step` but the newest keep - 1 of them and the
// best (keep < 1: none is removed). Folders without a state.json of ours are left
// alone.
tr_status tr__step_prune(const char *folder, int64_t step, int keep, tr_error *err);

// Removes all checkpoints but that of `step`, later ones too; `*removed`: how many.
tr_status tr__step_clear(const char *folder, int64_t step, int *removed, tr_error *err);

// Gives the checkpoints of steps after `until`, but that of `step`, the names of
// abandoned ones; one that has such a name already gives way. *moved: how many.
tr_status tr__step_abandon(const char *folder, int64_t until, int64_t step, int *moved,
                           tr_error *err);

typedef enum tr_link {
    TR_LINK_LATEST,
    TR_LINK_BEST // of the lowest validation loss: it is not pruned
} tr_link;

// What a link points to, when that is a name of ours and a folder is there: its name to
// dst: [TR_STEP_NAME_MAX].
bool tr__link_read(const char *folder, tr_link link, char *dst);
// Moves a link to `name`, durably, in one step.
tr_status tr__link_write(const char *folder, tr_link link, const char *name,
                         tr_error *err);
// Removes a link that leads nowhere.
void tr__link_tidy(const char *folder, tr_link link);

#endif
