// The disk of the current folder, where checkpoints go unless a run file says
// otherwise, and the folders of caches.
#include "cli/doctor_findings.h"

#include <tranche/types.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT = 512,
    SIZE_TEXT = 32,
    PIECE = 4 << 20, // bytes of a write
    PIECES = 16,
    ALIGNED = 4096
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct speed {
    double write, read; // bytes a second; 0: not measured
    bool direct;        // the file system has O_DIRECT
    int problem;        // errno; 0: none
} speed;

static bool write_piece(int file, const char *piece) {
    ssize_t wrote = 1;
    for (size_t done = 0; done < PIECE && wrote > 0; done += (size_t)wrote) {
        wrote = write(file, piece + done, PIECE - done);
    }
    return wrote > 0;
}

// All of it, with what the system still holds.
static double write_pieces(int file, const char *piece) {
    double begin = now();
    for (int i = 0; i < PIECES; i++) {
        if (!write_piece(file, piece)) {
            return 0;
        }
    }
    return fdatasync(file) == 0 ? (double)PIECES * PIECE / (now() - begin) : 0;
}

static double read_pieces(int file, char *piece) {
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    double begin = now();
    for (int i = 0; i < PIECES; i++) {
        if (pread(file, piece, PIECE, (off_t)i * PIECE) != PIECE) {
            return 0;
        }
    }
    return (double)PIECES * PIECE / (now() - begin);
}

static speed measure(void) {
    char name[] = "./.tranche-doctor-XXXXXX";
    void *piece = NULL;
    speed is = {0};
    errno = 0;
    int file = mkostemp(name, O_CLOEXEC);
    if (file < 0 || posix_memalign(&piece, ALIGNED, PIECE) != 0) {
        is.problem = errno ? errno : ENOMEM;
    } else {
        memset(piece, 0x5a, PIECE);
        is.write = write_pieces(file, piece);
        is.problem = is.write > 0 ? 0 : errno ? errno : EIO;
        is.read = is.write > 0 ? read_pieces(file, piece) : 0;
        int direct = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
        is.direct = direct >= 0;
        if (direct >= 0) {
            close(direct);
        }
    }
    if (file >= 0) {
        close(file);
        unlink(name);
    }
    free(piece);
    return is;
}

static void add_speed(cli_findings *to, const speed *is) {
    char write[SIZE_TEXT], read[SIZE_TEXT], value[TEXT], meaning[TEXT];
    const double gpt2 = 1.5e9; // bytes of a checkpoint of 124 million parameters
    if (is->problem) {
        snprintf(value, sizeof value, "cannot write here: %s", strerror(is->problem));
        const cli_finding bad = {
            CLI_SICK, "current folder", value,
            "a run whose out folder is here ends before its first step",
            "cd to a folder of yours with room, or give --out"};
        cli_findings_add(to, "disk", &bad);
        return;
    }
    snprintf(value, sizeof value, "%s/s written, %s/s read",
             tr_size_words((int64_t)is->write, write, sizeof write),
             tr_size_words((int64_t)is->read, read, sizeof read));
    snprintf(meaning, sizeof meaning,
             "a checkpoint of GPT-2 124M takes about %.1f s; reading may come from "
             "memory",
             gpt2 / is->write);
    bool slow = is->write < 50e6;
    const cli_finding finding = {slow ? CLI_NOTE : CLI_HEALTHY, "speed", value, meaning,
                                 slow ? "give --out a folder on a faster disk" : NULL};
    cli_findings_add(to, "disk", &finding);
    const cli_finding direct = {
        is->direct ? CLI_HEALTHY : CLI_NOTE, "direct I/O",
        is->direct ? "yes" : "no (O_DIRECT)",
        is->direct ? "states on NVMe (memory.nvme.path) take no page cache here"
                   : "states on NVMe (memory.nvme.path) would take memory for the page "
                     "cache here",
        is->direct ? NULL : "set memory.nvme.path to a folder on ext4 or xfs"};
    cli_findings_add(to, "disk", &direct);
}

int64_t cli_doctor_room(const char *folder) {
    struct statvfs info;
    return statvfs(folder, &info) == 0 ? (int64_t)info.f_bavail * (int64_t)info.f_frsize
                                       : -1;
}

void cli_doctor_disk(cli_findings *to) {
    enum { LITTLE = 1 << 30 };
    char size[SIZE_TEXT];
    int64_t room = cli_doctor_room(".");
    if (room >= 0) {
        bool little = room < LITTLE;
        const cli_finding finding = {
            little ? CLI_NOTE : CLI_HEALTHY, "free space of this folder",
            tr_size_words(room, size, sizeof size),
            little ? "checkpoints may find no room: a run goes on without, and says so"
                   : "checkpoints take 12 bytes a parameter by AdamW, and two are kept",
            little ? "df -h . && du -sh ./* | sort -h" : NULL};
        cli_findings_add(to, "disk", &finding);
    }
    const speed is = measure();
    add_speed(to, &is);
}

// ---- caches

typedef struct cache {
    const char *name, *variable, *below, *fallback, *meaning;
} cache;

// The sum of a folder's files. nftw has no argument for its caller.
static _Thread_local int64_t walked_bytes, walked_files;

static int add_file(const char *path, const struct stat *info, int kind,
                    struct FTW *at) {
    (void)path;
    (void)at;
    if (kind == FTW_F) {
        walked_bytes += (int64_t)info->st_blocks * 512;
        walked_files++;
    }
    return 0;
}

static void place_of(const cache *of, char path[PATH_MAX]) {
    const char *set = getenv(of->variable), *home = getenv("HOME");
    if (set && set[0]) {
        snprintf(path, PATH_MAX, "%s%s", set, of->below);
    } else {
        snprintf(path, PATH_MAX, "%s/%s", home ? home : "", of->fallback);
    }
}

static void add_cache(cli_findings *to, const cache *of) {
    enum { OPEN_FOLDERS = 16 };
    char path[PATH_MAX], value[PATH_MAX + TEXT], size[SIZE_TEXT];
    walked_bytes = walked_files = 0;
    place_of(of, path);
    bool there = nftw(path, add_file, OPEN_FOLDERS, FTW_PHYS) == 0;
    if (there) {
        snprintf(value, sizeof value, "%s: %s in %" PRId64 " files", path,
                 tr_size_words(walked_bytes, size, sizeof size), walked_files);
    } else {
        snprintf(value, sizeof value, "%s: nothing yet", path);
    }
    const cli_finding finding = {CLI_HEALTHY, of->name, value, of->meaning, NULL};
    cli_findings_add(to, "caches", &finding);
}

void cli_doctor_caches(cli_findings *to) {
    static const cache all[] = {
        {"Tranche's", "XDG_CACHE_HOME", "/tranche", ".cache/tranche",
         "token ids of texts, and what was measured of this machine: it may be deleted "
         "at any time, and is made again"},
        {"Hugging Face's", "HF_HOME", "/hub", ".cache/huggingface/hub",
         "models that a run file may name (\"HuggingFaceTB/SmolLM2-135M\"); Tranche "
         "downloads none"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        add_cache(to, &all[i]);
    }
}
