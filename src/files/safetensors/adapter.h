// Folders of adapters, as PEFT saves them: adapter_config.json, and
// adapter_model.safetensors with a prefix before each name.
#ifndef TR_FILES_SAFETENSORS_ADAPTER_H
#define TR_FILES_SAFETENSORS_ADAPTER_H

#include <tranche/status.h>

#include <jansson.h>
#include <stdbool.h>

#define TR_ADAPTER_CONFIG "adapter_config.json"
// What names begin with in adapter_model.safetensors.
#define TR_ADAPTER_PREFIX "base_model.model."

bool tr__is_adapter_folder(const char *folder);
// The keys of the folder's adapter_config.json. The caller releases *out, and gets the
// file's path, for messages, in path: [PATH_MAX]. TR_IO.
tr_status tr__adapter_keys(const char *folder, char *path, json_t **out, tr_error *err);
// The folder of the base that adapter_config.json names, by its path or by its name on
// Hugging Face's hub. base: [PATH_MAX]. TR_IO: there is no such folder, or the file is
// damaged. TR_USAGE: of the cache (tr__hub_find).
tr_status tr__adapter_base(const char *folder, char *base, tr_error *err);

#endif
