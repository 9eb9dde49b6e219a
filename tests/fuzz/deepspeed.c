// A folder that DeepSpeed saved, where one file's pickle is the input: its first byte
// says which file. What is read of it lies in the files.
#include "fuzz.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/deepspeed/deepspeed.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FOLDERS TR_TEST_DATA "/deepspeed"

enum { READ = 64, ARCHIVE = 1 << 16, ENTRIES = 12, VALUES = 128 };

static const char model[] = "mp_rank_00_model_states.pt";
static const struct {
    int stage;
    const char *name; // of the file
    const char *others[4];
} ways[] = {
    {0, model, {NULL}},
    {1,
     "zero_pp_rank_0_mp_rank_00_optim_states.pt",
     {model, "zero_pp_rank_1_mp_rank_00_optim_states.pt"}},
    {3,
     "zero_pp_rank_0_mp_rank_00_model_states.pt",
     {"zero_pp_rank_1_mp_rank_00_model_states.pt",
      "zero_pp_rank_0_mp_rank_00_optim_states.pt",
      "zero_pp_rank_1_mp_rank_00_optim_states.pt"}},
    {3,
     "zero_pp_rank_1_mp_rank_00_optim_states.pt",
     {"zero_pp_rank_0_mp_rank_00_model_states.pt",
      "zero_pp_rank_1_mp_rank_00_model_states.pt",
      "zero_pp_rank_0_mp_rank_00_optim_states.pt"}},
};
enum { WAYS = sizeof ways / sizeof *ways };

// ---- an archive

typedef struct archive {
    unsigned char bytes[ARCHIVE], list[ENTRIES * 80];
    size_t count, listed, entries;
} archive;

static void put(unsigned char *to, size_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(value >> (8 * i));
    }
}

static void add(archive *a, const char *name, const void *data, size_t bytes) {
    size_t length = strlen(name);
    unsigned char *local = a->bytes + a->count, *listed = a->list + a->listed;
    put(local, 0x04034b50, 4);
    put(local + 26, length, 2);
    memcpy(local + 30, name, length);
    memcpy(local + 30 + length, data, bytes);
    put(listed, 0x02014b50, 4);
    put(listed + 20, bytes, 4);
    put(listed + 24, bytes, 4);
    put(listed + 28, length, 2);
    put(listed + 42, a->count, 4);
    memcpy(listed + 46, name, length);
    a->count += 30 + length + bytes;
    a->listed += 46 + length;
    a->entries++;
}

// torch.save's, of a pickle and of some values.
static void pack(archive *a, const uint8_t *pickle, size_t bytes) {
    static const unsigned char values[VALUES];
    memset(a, 0, sizeof *a);
    add(a, "x/data.pkl", pickle, bytes);
    for (int i = 0; i < ENTRIES - 1; i++) {
        char name[16];
        snprintf(name, sizeof name, "x/data/%d", i);
        add(a, name, values, sizeof values);
    }
    memcpy(a->bytes + a->count, a->list, a->listed);
    unsigned char *end = a->bytes + a->count + a->listed;
    put(end, 0x06054b50, 4);
    put(end + 10, a->entries, 2);
    put(end + 12, a->listed, 4);
    put(end + 16, a->count, 4);
    a->count += a->listed + 22;
}

// ---- the folder

static void copy(int way) {
    char from[PATH_MAX];
    tr__folder_remove(fuzz_folder(), NULL);
    tr__folder_create(fuzz_folder(), NULL);
    for (int i = 0; i < 4 && ways[way].others[i]; i++) {
        char *data = NULL;
        size_t bytes = 0;
        snprintf(from, sizeof from, FOLDERS "/stage%d/global_step3/%s", ways[way].stage,
                 ways[way].others[i]);
        fuzz_check(tr__file_read(from, 1 << 20, &data, &bytes, NULL) == TR_OK,
                   "a file of the tests is missing");
        fuzz_file(ways[way].others[i], data, bytes);
        tr__free(data);
    }
}

static bool is_trained(const void *user, const char *name) {
    return strcmp(name, user) != 0;
}

static void read_all(const tr_tensor_set *set) {
    float values[READ];
    for (size_t i = 0; i < tr__tensor_set_count(set); i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(set, i);
        int64_t count = tensor->count < READ ? tensor->count : READ;
        tr_error err = {0};
        fuzz_check(tr__tensor_set_find(set, tensor->name) == tensor,
                   "a tensor that its own name does not find");
        tr_status status = tr__tensor_read_f32(set, tensor, tensor->count - count,
                                               count, values, &err);
        fuzz_check_told(status, &err);
        fuzz_check(status == TR_OK || tensor->dtype != TR_F32,
                   "a tensor that lies in the files and is not read");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static archive a;
    static int last = -1;
    tr_error err = {0};
    tr_deepspeed saved = {0};
    if (size < 1 || size > ARCHIVE / 2) {
        return 0;
    }
    int way = data[0] % WAYS;
    if (way != last) {
        copy(way);
        last = way;
    }
    pack(&a, data + 1, size - 1);
    fuzz_file(ways[way].name, a.bytes, a.count);
    tr_status status = tr__deepspeed_open(fuzz_folder(), false, is_trained,
                                          "layers.0.bias", &saved, &err);
    fuzz_check_told(status, &err);
    fuzz_check(status == TR_OK || status == TR_IO || status == TR_MEMORY,
               "a damaged folder that is none");
    if (status == TR_OK) {
        read_all(saved.tensors);
    }
    tr__deepspeed_close(&saved);
    return 0;
}
