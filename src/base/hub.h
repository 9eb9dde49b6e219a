// Models in the local cache of Hugging Face, by their names on its hub:
//
//   <cache>/models--ORG--NAME/refs/main              the name of a snapshot (a commit)
//   <cache>/models--ORG--NAME/snapshots/<commit>/    the model's folder
//
// <cache>: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub, as in
// huggingface_hub. Nothing is ever downloaded.
#ifndef TR_BASE_HUB_H
#define TR_BASE_HUB_H

#include <tranche/status.h>

#include <limits.h>
#include <stdbool.h>

// Is it "ORG/NAME", by the hub's rules of names?
bool tr__hub_is_name(const char *text);

// The folder of a model, whatever is in it. folder: [PATH_MAX]; "" where the cache has
// no model of this name, or `name` is none. TR_USAGE: the cache is damaged; the message
// says how to download the model.
tr_status tr__hub_find(const char *name, char *folder, tr_error *err);

// The name of the model whose snapshot the folder is. name: [PATH_MAX]; false: it is
// none of the cache.
bool tr__hub_name_of(const char *folder, char *name);

// Fails with TR_USAGE: what `path` holds of the model is of no use, and how to download
// it again.
tr_status tr__hub_fail_incomplete(const char *name, const char *path, const char *what,
                                  tr_error *err);

#endif
