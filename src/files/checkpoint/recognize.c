// Whether a path is something that holds weights, or data.
#include "base/files.h"
#include "files/checkpoint/folder.h"
#include "files/gguf/gguf.h"

#include <tranche/checkpoint.h>

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000 }; // bytes of a safetensors header

static bool has(const char *folder, const char *name) {
    char path[PATH_MAX];
    return tr__path_join(path, sizeof path, folder, name, NULL) == TR_OK &&
           access(path, F_OK) == 0;
}

// Does a file begin as a safetensors file, or is it called one?
static bool is_safetensors(const char *path, int64_t bytes) {
    static const char end[] = ".safetensors";
    unsigned char head[9];
    size_t length = strlen(path);
    if (length >= sizeof end - 1 &&
        strcmp(path + length - (sizeof end - 1), end) == 0) {
        return true;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // it may be a pipe
    bool whole = file >= 0 && pread(file, head, sizeof head, 0) == sizeof head;
    if (file >= 0) {
        close(file);
    }
    uint64_t header = 0;
    for (int i = 0; i < 8 && whole; i++) {
        header |= (uint64_t)head[i] << (8 * i);
    }
    return whole && head[8] == '{' && header <= HEADER_MAX &&
           (int64_t)header <= bytes - 8;
}

static bool is_folder_of_weights(const char *path) {
    static const char *const marks[] = {"config.json",
                                        "state.json",
                                        "metrics.jsonl",
                                        "checkpoints",
                                        "adapter_config.json",
                                        "model.safetensors",
                                        "model.safetensors.index.json"};
    char latest[TR_STEP_NAME_MAX];
    bool found = tr__link_read(path, TR_LINK_LATEST, latest);
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !found; i++) {
        found = has(path, marks[i]);
    }
    return found;
}

bool tr_checkpoint_recognize(const char *path) {
    struct stat info;
    if (!path || stat(path, &info) != 0) {
        return false;
    }
    return S_ISDIR(info.st_mode)
               ? is_folder_of_weights(path)
               : is_safetensors(path, info.st_size) || tr__gguf_is(path);
}
