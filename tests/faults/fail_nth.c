// A library for LD_PRELOAD that makes the n-th call of a program to the C library fail,
// or kills the program there. A test, or bench/faults.sh, walks n from 1 to the number
// of calls that an undisturbed run makes.
//
//   FAIL_CALLS    which calls count, separated by commas; left out: all of them
//                   memory   malloc, calloc, realloc, strdup, vasprintf
//                   map      mmap
//                   open     open, fopen, opendir
//                   read     read, pread, readlink
//                   write    write, pwrite
//                   sync     fsync
//                   reserve  fallocate, posix_fallocate, ftruncate
//                   rename   rename, renameat2
//                   folder   mkdir, symlink, unlink
//   FAIL_NTH      the call that fails, from 1; 0 or left out: none, calls are counted
//   FAIL_COUNT    how many calls fail from there on; left out: 1; 0: all that follow
//   FAIL_ERRNO    the number that errno gets; left out: ENOMEM for memory and maps, EIO
//                 for the others
//   FAIL_ACT      "fail" (left out), or "kill": SIGKILL before the call
//   FAIL_PATH     of calls on files, only those count whose path holds this text
//   FAIL_PROGRAM  name of the program in which calls count; left out: "tranche".
//                 Processes of other names (launchers) are left alone.
//   FAIL_RANK     of a run on ranks, the rank in which calls count; left out: all
//   FAIL_REPORT   a file to which a line is added for each fault, "failed CALL NUMBER"
//   or
//                 "failed CALL of jansson NUMBER", and at the end of the process "calls
//                 NUMBER"
//
// Only calls that the program itself or jansson makes are counted: what the C library,
// OpenMP, oneDNN and MPI do among themselves would differ from run to run. Threads
// count together, so a number stands for the same call in every run only while one
// thread makes the calls.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc's own, which need no look-up: that would allocate in its turn.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t bytes);

typedef enum group {
    MEMORY,
    MAP,
    OPEN,
    READ,
    WRITE,
    SYNC,
    RESERVE,
    RENAME,
    FOLDER,
    GROUPS
} group;

static const char *const group_names[GROUPS] = {
    "memory", "map", "open", "read", "write", "sync", "reserve", "rename", "folder"};

// The code of an object whose calls count.
typedef struct range {
    uintptr_t begin, end;
    bool jansson; // not the program's own
} range;

enum { RANGES_MAX = 16 };

static struct {
    bool active;
    bool kills;
    unsigned counted; // bits by group
    long nth, most;   // which fail: [nth, most)
    int number;       // of errno; 0: the group's own
    const char *path, *report;
    range ranges[RANGES_MAX];
    size_t range_count;
    pid_t process;
} settings;

static _Atomic long calls;

// ---- settings

static long number_of(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static unsigned groups_of(const char *list) {
    unsigned groups = 0;
    for (int g = 0; g < GROUPS; g++) {
        size_t length = strlen(group_names[g]);
        for (const char *at = list; at && *at;) {
            size_t word = strcspn(at, ",");
            if (word == length && strncmp(at, group_names[g], length) == 0) {
                groups |= 1u << g;
            }
            at += word + (at[word] == ',');
        }
    }
    return list && *list ? groups : (1u << GROUPS) - 1;
}

// The program has no name here; libraries have their path.
static int add_object(struct dl_phdr_info *object, size_t size, void *user) {
    const char *name = object->dlpi_name;
    bool jansson = strstr(name, "/libjansson.so");
    bool counts = !name[0] || jansson || strstr(name, "/libtranche.so");
    (void)size;
    (void)user;
    for (int i = 0; counts && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        bool code = part->p_type == PT_LOAD && part->p_flags & PF_X;
        if (code && settings.range_count < RANGES_MAX) {
            uintptr_t begin = object->dlpi_addr + part->p_vaddr;
            settings.ranges[settings.range_count++] =
                (range){begin, begin + part->p_memsz, jansson};
        }
    }
    return 0;
}

static bool is_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    long wanted = number_of("FAIL_RANK", -1), own = -1;
    for (size_t i = 0; own < 0 && i < sizeof names / sizeof *names; i++) {
        own = number_of(names[i], -1);
    }
    return wanted < 0 || own == wanted;
}

__attribute__((constructor)) static void begin(void) {
    const char *program = getenv("FAIL_PROGRAM"), *act = getenv("FAIL_ACT");
    if (strcmp(program_invocation_short_name, program ? program : "tranche") != 0 ||
        !is_rank()) {
        return;
    }
    long count = number_of("FAIL_COUNT", 1);
    settings.counted = groups_of(getenv("FAIL_CALLS"));
    settings.nth = number_of("FAIL_NTH", 0);
    settings.most = count > 0 ? settings.nth + count : LONG_MAX;
    settings.number = (int)number_of("FAIL_ERRNO", 0);
    settings.kills = act && strcmp(act, "kill") == 0;
    settings.path = getenv("FAIL_PATH");
    settings.report = getenv("FAIL_REPORT");
    settings.process = getpid();
    dl_iterate_phdr(add_object, NULL);
    settings.active = true;
}

// ---- the report, by system calls: these are not to be counted

static void report(const char *text, long number) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %ld\n", text, number);
    long file = settings.report ? syscall(SYS_openat, AT_FDCWD, settings.report,
                                          O_WRONLY | O_CREAT | O_APPEND, 0666)
                                : -1;
    if (file >= 0) {
        syscall(SYS_write, file, line, (size_t)length);
        syscall(SYS_close, file);
    }
}

__attribute__((destructor)) static void end(void) {
    if (settings.active && getpid() == settings.process) {
        settings.active = false;
        report("calls", atomic_load(&calls));
    }
}

// ---- which calls fail

// The code that a call comes from; NULL: no code whose calls count.
static const range *range_of(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    for (size_t i = 0; i < settings.range_count; i++) {
        if (at >= settings.ranges[i].begin && at < settings.ranges[i].end) {
            return &settings.ranges[i];
        }
    }
    return NULL;
}

// Counts a call. True: it fails, and errno says why.
static bool fails(group g, const char *name, const char *path, const void *caller) {
    if (!settings.active || !(settings.counted >> g & 1)) {
        return false;
    }
    const range *from = range_of(caller);
    if (!from || (path && settings.path && !strstr(path, settings.path))) {
        return false;
    }
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (settings.nth <= 0 || number < settings.nth || number >= settings.most) {
        return false;
    }
    char text[64];
    snprintf(text, sizeof text, "%s %s%s", settings.kills ? "killed" : "failed", name,
             from->jansson ? " of jansson" : "");
    report(text, number);
    if (settings.kills) {
        syscall(SYS_kill, getpid(), SIGKILL);
    }
    int own = g == MEMORY || g == MAP ? ENOMEM : EIO;
    errno = settings.number ? settings.number : own;
    return true;
}

// The same of a call on an open file.
static bool fails_open(group g, const char *name, int file, const void *caller) {
    char link[32], path[PATH_MAX] = "";
    if (settings.active && settings.path) {
        int before = errno;
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        syscall(SYS_readlink, link, path, sizeof path - 1);
        errno = before;
    }
    return fails(g, name, path, caller);
}

#define CALLER __builtin_return_address(0)

// The function that this one stands before.
static void *next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

// ---- memory

void *malloc(size_t bytes) {
    return fails(MEMORY, "malloc", NULL, CALLER) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size) {
    return fails(MEMORY, "calloc", NULL, CALLER) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t bytes) {
    return fails(MEMORY, "realloc", NULL, CALLER) ? NULL
                                                  : __libc_realloc(memory, bytes);
}

char *strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = fails(MEMORY, "strdup", NULL, CALLER) ? NULL : __libc_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int vasprintf(char **text, const char *format, va_list args) {
    int (*real)(char **, const char *, va_list) = next("vasprintf");
    return fails(MEMORY, "vasprintf", NULL, CALLER) ? -1 : real(text, format, args);
}

void *mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset) {
    if (fails(MAP, "mmap", NULL, CALLER)) {
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, file, offset);
}

// ---- files

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (fails(OPEN, "open", path, CALLER)) {
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    FILE *(*real)(const char *, const char *) = next("fopen");
    return fails(OPEN, "fopen", path, CALLER) ? NULL : real(path, mode);
}

DIR *opendir(const char *path) {
    DIR *(*real)(const char *) = next("opendir");
    return fails(OPEN, "opendir", path, CALLER) ? NULL : real(path);
}

ssize_t read(int file, void *data, size_t bytes) {
    ssize_t (*real)(int, void *, size_t) = next("read");
    return fails_open(READ, "read", file, CALLER) ? -1 : real(file, data, bytes);
}

ssize_t pread(int file, void *data, size_t bytes, off_t offset) {
    ssize_t (*real)(int, void *, size_t, off_t) = next("pread");
    return fails_open(READ, "pread", file, CALLER) ? -1
                                                   : real(file, data, bytes, offset);
}

ssize_t readlink(const char *path, char *text, size_t bytes) {
    ssize_t (*real)(const char *, char *, size_t) = next("readlink");
    return fails(READ, "readlink", path, CALLER) ? -1 : real(path, text, bytes);
}

ssize_t write(int file, const void *data, size_t bytes) {
    ssize_t (*real)(int, const void *, size_t) = next("write");
    return fails_open(WRITE, "write", file, CALLER) ? -1 : real(file, data, bytes);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) = next("pwrite");
    return fails_open(WRITE, "pwrite", file, CALLER) ? -1
                                                     : real(file, data, bytes, offset);
}

int fsync(int file) {
    int (*real)(int) = next("fsync");
    return fails_open(SYNC, "fsync", file, CALLER) ? -1 : real(file);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
    int (*real)(int, int, off_t, off_t) = next("fallocate");
    return fails_open(RESERVE, "fallocate", file, CALLER)
               ? -1
               : real(file, mode, offset, bytes);
}

int posix_fallocate(int file, off_t offset, off_t bytes) {
    int (*real)(int, off_t, off_t) = next("posix_fallocate");
    return fails_open(RESERVE, "posix_fallocate", file, CALLER)
               ? errno
               : real(file, offset, bytes);
}

int ftruncate(int file, off_t bytes) {
    int (*real)(int, off_t) = next("ftruncate");
    return fails_open(RESERVE, "ftruncate", file, CALLER) ? -1 : real(file, bytes);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = next("rename");
    return fails(RENAME, "rename", to, CALLER) ? -1 : real(from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned flags) {
    int (*real)(int, const char *, int, const char *, unsigned) = next("renameat2");
    return fails(RENAME, "renameat2", to, CALLER)
               ? -1
               : real(from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    int (*real)(const char *, mode_t) = next("mkdir");
    return fails(FOLDER, "mkdir", path, CALLER) ? -1 : real(path, mode);
}

int symlink(const char *target, const char *path) {
    int (*real)(const char *, const char *) = next("symlink");
    return fails(FOLDER, "symlink", path, CALLER) ? -1 : real(target, path);
}

int unlink(const char *path) {
    int (*real)(const char *) = next("unlink");
    return fails(FOLDER, "unlink", path, CALLER) ? -1 : real(path);
}
