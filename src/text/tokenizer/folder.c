#include "text/tokenizer/folder.h"

#include "base/files.h"
#include "base/hub.h"
#include "base/memory.h"
#include "text/tokenizer/node.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20 };

static const char name[] = "tokenizer.json";

static tr_status copy_path(char *dst, const char *path, tr_error *err) {
    size_t length = strlen(path);
    if (length >= PATH_MAX) {
        return tr_fail(err, TR_IO, "%.300s: path too long", path);
    }
    memcpy(dst, path, length + 1);
    return TR_OK;
}

// "folder/tokenizer.json" looks like a name on the hub, and is none.
static bool may_be_model(const char *text) {
    size_t length = strlen(text), end = strlen(".json");
    return tr__hub_is_name(text) &&
           (length < end || strcmp(text + length - end, ".json") != 0);
}

static tr_status locate_model(const char *model, char *place, tr_error *err) {
    char file[PATH_MAX];
    tr_status status = tr__hub_find(model, place, err);
    if (status == TR_OK && !place[0]) {
        return tr_fail(
            err, TR_IO,
            "%s: no such file or folder, and the local cache of Hugging Face "
            "does not have it; if it is a model there, download it with: hf "
            "download %s",
            model, model);
    }
    if (status == TR_OK) {
        status = tr__path_join(file, sizeof file, place, name, err);
    }
    if (status == TR_OK && access(file, F_OK) != 0) {
        status = tr__hub_fail_incomplete(model, place, "has no tokenizer.json", err);
    }
    return status;
}

tr_status tr__tokenizer_locate(const char *path, char *place, tr_error *err) {
    bool there = access(path, F_OK) == 0;
    return !there && may_be_model(path) ? locate_model(path, place, err)
                                        : copy_path(place, path, err);
}

tr_status tr__tokenizer_file(const char *path, char *file, tr_error *err) {
    char place[PATH_MAX];
    struct stat info;
    tr_status status = tr__tokenizer_locate(path, place, err);
    if (status != TR_OK) {
        return status;
    }
    return stat(place, &info) == 0 && S_ISDIR(info.st_mode)
               ? tr__path_join(file, PATH_MAX, place, name, err)
               : copy_path(file, place, err);
}

tr_status tr__tokenizer_folder(const char *path, char *folder, tr_error *err) {
    tr_status status = tr__tokenizer_file(path, folder, err);
    if (status != TR_OK) {
        return status;
    }
    char *slash = strrchr(folder, '/');
    bool usual = strcmp(slash ? slash + 1 : folder, name) == 0;
    if (!usual) {
        folder[0] = '\0';
    } else if (!slash) {
        folder[0] = '.';
        folder[1] = '\0';
    } else {
        slash[slash == folder] = '\0';
    }
    return TR_OK;
}

// *root: NULL where there is no such file.
static tr_status read_json(const char *path, size_t flags, json_t **root,
                           tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    *root = NULL;
    if (access(path, F_OK) != 0) {
        return TR_OK;
    }
    tr_status status = tr__file_read(path, FILE_MAX, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *root = json_loadb(text, bytes, JSON_ALLOW_NUL | flags, &problem);
    tr__free(text);
    return *root ? TR_OK
                 : tr_fail(err, TR_DATA, "%s: line %d, column %d: not valid JSON: %s",
                           path, problem.line, problem.column, problem.text);
}

// "<eos>", or {"content": "<eos>", ...}; null and nothing: -1.
static tr_status read_token(const tr_tokenizer *t, const tr_node *node, int32_t *id,
                            tr_error *err) {
    const char *text = NULL;
    size_t bytes = 0;
    tr_node inner =
        json_is_object(node->value) ? tr__node_member(node, "content") : *node;
    if (!node->value) {
        return TR_OK;
    }
    tr_status status = tr__node_text(&inner, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *id = tr_tokenizer_find(t, text);
    return *id >= 0 ? TR_OK
                    : tr__node_fail(&inner, err,
                                    "\"%.100s\" is no token of the "
                                    "tokenizer.json beside it",
                                    text);
}

// A number, or a list of which the first counts.
static tr_status read_id(const tr_tokenizer *t, const tr_node *node, int32_t *id,
                         tr_error *err) {
    int64_t number = -1;
    size_t bytes;
    tr_node one = json_is_array(node->value) ? tr__node_element(node, 0) : *node;
    if (!one.value) {
        return TR_OK;
    }
    tr_status status = tr__node_integer(&one, 0, INT32_MAX, &number, err);
    if (status == TR_OK && tr_tokenizer_token(t, (int32_t)number, &bytes)) {
        *id = (int32_t)number;
    }
    return status;
}

// Where texts are read, numbers do not matter, and one may be of more than 64 bits:
// transformers writes a model_max_length of 10^30.
enum { TEXTS = JSON_DECODE_INT_AS_REAL };

// Where a folder names a token.
typedef struct named_in {
    const char *file, *key;
    tr_status (*read)(const tr_tokenizer *, const tr_node *, int32_t *, tr_error *);
    size_t flags;
} named_in;

// *id: -1: none of the places [count] names it.
static tr_status find_named(const tr_tokenizer *tokenizer, const char *folder,
                            const named_in *places, size_t count, int32_t *id,
                            tr_error *err) {
    tr_status status = TR_OK;
    *id = -1;
    for (size_t i = 0; i < count && folder[0] && *id < 0 && status == TR_OK; i++) {
        char path[PATH_MAX];
        json_t *root = NULL;
        status = tr__path_join(path, sizeof path, folder, places[i].file, err);
        if (status == TR_OK) {
            status = read_json(path, places[i].flags, &root, err);
        }
        if (status == TR_OK && root) {
            tr_node node = {.file = path, .value = root};
            tr_node member = tr__node_member(&node, places[i].key);
            status = places[i].read(tokenizer, &member, id, err);
        }
        json_decref(root);
    }
    return status;
}

tr_status tr__tokenizer_eos(const tr_tokenizer *tokenizer, const char *folder,
                            int32_t *id, tr_error *err) {
    static const named_in places[] = {
        {"tokenizer_config.json", "eos_token", read_token, TEXTS},
        {"special_tokens_map.json", "eos_token", read_token, TEXTS},
        {"config.json", "eos_token_id", read_id, 0}};
    return find_named(tokenizer, folder, places, 3, id, err);
}

tr_status tr__tokenizer_mask(const tr_tokenizer *tokenizer, const char *folder,
                             int32_t *id, tr_error *err) {
    static const named_in places[] = {
        {"tokenizer_config.json", "mask_token", read_token, TEXTS},
        {"special_tokens_map.json", "mask_token", read_token, TEXTS}};
    static const char *const usual[] = {"[MASK]", "<mask>"};
    tr_status status = find_named(tokenizer, folder, places, 2, id, err);
    for (size_t i = 0; i < 2 && *id < 0 && status == TR_OK; i++) {
        *id = tr_tokenizer_find(tokenizer, usual[i]);
    }
    return status;
}
