// Processor, threads, limits, memory: as Linux tells of them.
#include "cli/doctor_findings.h"
#include "cli/proc.h"

#include <tranche/types.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT = CLI_PROC_TEXT, SIZE_TEXT = 32 };

static int64_t meminfo(const char *key) {
    char text[TEXT];
    return cli_proc_line("/proc/meminfo", key, text) ? strtoll(text, NULL, 10) << 10
                                                     : -1;
}

// ---- processor

typedef struct plan_text {
    char text[4096];
    size_t used;
} plan_text;

static bool keep(void *to, const char *bytes, size_t count) {
    plan_text *plan = to;
    size_t room = sizeof plan->text - 1 - plan->used;
    size_t kept = count < room ? count : room;
    memcpy(plan->text + plan->used, bytes, kept);
    plan->used += kept;
    plan->text[plan->used] = '\0';
    return true;
}

// What a plan of a small model says of its kernels: "avx512, 2 threads".
static bool find_kernels(char text[TEXT], tr_error *err) {
    static const char words[] = "kernels: ";
    plan_text printed = {.used = 0};
    const tr_sink to = {keep, &printed};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_status status = cli_doctor_run("cpu", &run, err);
    status = status == TR_OK ? tr_run_set(run, "plan_only", "true", err) : status;
    status = status == TR_OK ? tr_run_resolve(run, err) : status;
    status = status == TR_OK ? tr_run_make_plan(run, &plan, err) : status;
    status = status == TR_OK ? tr_run_print_plan(run, plan, &to, err) : status;
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    const char *found = status == TR_OK ? strstr(printed.text, words) : NULL;
    if (found) {
        found += strlen(words);
        snprintf(text, TEXT, "%.*s", (int)strcspn(found, ",\n"), found);
    }
    return found != NULL;
}

static void add_kernels(cli_findings *to) {
    char text[TEXT];
    tr_error err = {0};
    if (!find_kernels(text, &err)) {
        const cli_finding bad = {CLI_SICK, "kernels", "none", "no step can be planned",
                                 err.message};
        cli_findings_add(to, "processor", &bad);
        return;
    }
    bool plain = strncmp(text, "generic", 7) == 0;
    const cli_finding finding = {
        plain ? CLI_NOTE : CLI_HEALTHY, "kernels", text,
        plain ? "training computes without vector instructions, many times slower"
              : "training computes with the best instructions that this processor has",
        plain ? "use a processor with AVX2; in a virtual machine, pass the host's "
                "processor through (-cpu host)"
              : NULL};
    cli_findings_add(to, "processor", &finding);
}

static void add_instructions(cli_findings *to) {
    static const char *const known[] = {"avx2",     "fma",         "f16c",
                                        "avx512f",  "avx512_bf16", "avx512_fp16",
                                        "amx_tile", "avx512_vnni"};
    char line[8192], found[TEXT] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool bf16 = false;
    line[0] = '\0';
    while (file && fgets(line, sizeof line, file) && strncmp(line, "flags", 5) != 0) {
    }
    if (file) {
        fclose(file);
    }
    for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n")) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (strcmp(word, known[i]) == 0) {
                size_t used = strlen(found);
                snprintf(found + used, sizeof found - used, "%s%s", used ? ", " : "",
                         word);
                bf16 = bf16 || strcmp(word, "avx512_bf16") == 0;
            }
        }
    }
    const cli_finding finding = {
        CLI_HEALTHY, "instructions", found[0] ? found : "none of those that are used",
        bf16 ? "products in bf16 are faster here than in f32: \"bf16\": {\"enabled\": "
               "true}"
             : "bf16 saves memory here, and little time",
        NULL};
    cli_findings_add(to, "processor", &finding);
}

void cli_doctor_processor(cli_findings *to) {
    char name[TEXT];
    if (!cli_proc_line("/proc/cpuinfo", "model name", name)) {
        snprintf(name, sizeof name, "not known");
    }
    const cli_finding finding = {CLI_HEALTHY, "name", name, "what computes", NULL};
    cli_findings_add(to, "processor", &finding);
    add_instructions(to);
    add_kernels(to);
}

// ---- threads

// Bits of the mask of cores that this process may run on: "ff,ffffffff".
static int cores_here(void) {
    char mask[TEXT];
    int cores = 0;
    bool known = cli_proc_line("/proc/self/status", "Cpus_allowed:", mask);
    for (const char *c = mask; known && *c; c++) {
        const char digit[] = {*c, '\0'};
        for (long bits = strtol(digit, NULL, 16); bits > 0; bits >>= 1) {
            cores += bits & 1;
        }
    }
    return cores > 0 ? cores : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

// Cores' worth of time that the control group gives; 0: as many as there are.
static double quota(void) {
    double most = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    bool limited = file && fscanf(file, "%lf %lf", &most, &period) == 2 && period > 0;
    if (file) {
        fclose(file);
    }
    return limited ? most / period : 0;
}

static void add_cores(cli_findings *to, int cores) {
    char value[TEXT], mend[TEXT];
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    double share = quota();
    bool less = share > 0 && share < cores;
    snprintf(value, sizeof value, "%d of %ld", cores, all);
    snprintf(mend, sizeof mend, "tranche train ... --threads %d",
             share > 1 ? (int)share : 1);
    const cli_finding finding = {
        less ? CLI_NOTE : CLI_HEALTHY, "cores", value,
        less ? "the control group gives less time than these cores have: more threads "
               "than that wait for each other"
        : cores < all ? "this process may run on these alone (taskset, or a launcher)"
                      : "each rank computes with as many threads, where its work is "
                        "large enough",
        less ? mend : NULL};
    cli_findings_add(to, "threads", &finding);
}

static void add_load(cli_findings *to, int cores) {
    double load = 0;
    char value[TEXT];
    if (getloadavg(&load, 1) != 1) {
        return;
    }
    bool busy = load > cores * 0.5;
    snprintf(value, sizeof value, "%.1f in the last minute", load);
    const cli_finding finding = {
        busy ? CLI_NOTE : CLI_HEALTHY, "load", value,
        busy ? "other processes use the cores: steps take longer, and measurements of "
               "this machine are off"
             : "the cores are free",
        busy ? "top" : NULL};
    cli_findings_add(to, "threads", &finding);
}

static void add_threads_limit(cli_findings *to, int cores) {
    const char *threads = getenv("OMP_NUM_THREADS");
    bool less = threads && atoi(threads) < cores;
    const cli_finding finding = {
        less ? CLI_NOTE : CLI_HEALTHY, "OMP_NUM_THREADS", threads ? threads : "not set",
        less ? "OpenMP is held to fewer threads than there are cores"
             : "OpenMP may use all cores",
        less ? "unset OMP_NUM_THREADS" : NULL};
    cli_findings_add(to, "threads", &finding);
}

void cli_doctor_threads(cli_findings *to) {
    int cores = cores_here();
    add_cores(to, cores);
    add_load(to, cores);
    add_threads_limit(to, cores);
}

// ---- limits

typedef struct limit {
    int which;
    bool bytes;
    rlim_t enough;
    const char *name, *good, *less, *mend;
} limit;

static void add_limit(cli_findings *to, const limit *of) {
    struct rlimit is;
    char value[TEXT], size[SIZE_TEXT];
    if (getrlimit((__rlimit_resource_t)of->which, &is) != 0) {
        return;
    }
    bool open = is.rlim_cur == RLIM_INFINITY;
    if (open) {
        snprintf(value, sizeof value, "unlimited");
    } else if (of->bytes) {
        int64_t bytes = is.rlim_cur < INT64_MAX ? (int64_t)is.rlim_cur : INT64_MAX;
        snprintf(value, sizeof value, "%s", tr_size_words(bytes, size, sizeof size));
    } else {
        snprintf(value, sizeof value, "%llu", (unsigned long long)is.rlim_cur);
    }
    bool less = !open && is.rlim_cur < of->enough;
    const cli_finding finding = {less ? CLI_NOTE : CLI_HEALTHY, of->name, value,
                                 less ? of->less : of->good, less ? of->mend : NULL};
    cli_findings_add(to, "limits", &finding);
}

void cli_doctor_limits(cli_findings *to) {
    static const limit all[] = {
        {RLIMIT_AS, true, RLIM_INFINITY, "address space",
         "memory is bounded by the machine alone",
         "a plan that needs more addresses than this fails when its memory is taken",
         "ulimit -v unlimited"},
        {RLIMIT_FSIZE, true, RLIM_INFINITY, "size of files",
         "checkpoints may be as large as the disk has room",
         "a checkpoint that is larger ends the run; checkpoint.shard_bytes cuts it",
         "ulimit -f unlimited"},
        {RLIMIT_NOFILE, false, 1024, "open files",
         "enough for data of many files, shards and ranks",
         "data of many files, or many ranks, may need more", "ulimit -n 4096"},
        {RLIMIT_MEMLOCK, true, (rlim_t)64 << 20, "locked memory",
         "enough for NVMe by io_uring and for pinned memory",
         "NVMe is read and written in smaller parts, and GPUs copy more slowly",
         "ulimit -l unlimited"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        add_limit(to, &all[i]);
    }
}

// ---- memory

// A number of bytes in a file of the control group; -1: it has no limit.
static int64_t group_bytes(const char *path) {
    long long bytes = -1;
    FILE *file = fopen(path, "re");
    bool found = file && fscanf(file, "%lld", &bytes) == 1 && bytes > 0;
    if (file) {
        fclose(file);
    }
    return found && bytes < INT64_MAX / 2 ? bytes : -1;
}

static void add_group(cli_findings *to, int64_t all) {
    char size[SIZE_TEXT];
    int64_t most = group_bytes("/sys/fs/cgroup/memory.max");
    if (most < 0) {
        most = group_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    }
    bool less = most > 0 && most < all;
    const cli_finding finding = {
        less ? CLI_NOTE : CLI_HEALTHY, "control group",
        less ? tr_size_words(most, size, sizeof size) : "no limit below the machine's",
        less ? "plans are held to this, in place of the machine's memory"
             : "all of the machine's memory may be planned",
        less ? "raise the memory limit of the container, if there is more to have"
             : NULL};
    cli_findings_add(to, "memory", &finding);
}

void cli_doctor_memory(cli_findings *to) {
    enum { LEAST = 512 << 20 };
    char all_text[SIZE_TEXT], free_text[SIZE_TEXT], value[TEXT], mend[TEXT];
    int64_t all = meminfo("MemTotal"), there = meminfo("MemAvailable");
    if (all < 0 || there < 0) {
        return;
    }
    snprintf(value, sizeof value, "%s, of which %s are available",
             tr_size_words(all, all_text, sizeof all_text),
             tr_size_words(there, free_text, sizeof free_text));
    snprintf(mend, sizeof mend, "ps aux --sort=-rss | head");
    bool little = there < LEAST, half = there < all / 2;
    const cli_finding finding = {
        little ? CLI_SICK
        : half ? CLI_NOTE
               : CLI_HEALTHY,
        "memory", value,
        half ? "other processes have more than half of it: a plan for all of it would "
               "swap, or be killed; \"memory\" in the run file bounds a run"
             : "\"memory\" in the run file bounds a run; without it a plan takes what "
               "it needs",
        half ? mend : NULL};
    cli_findings_add(to, "memory", &finding);
    add_group(to, all);
    int64_t swap = meminfo("SwapTotal"), unused = meminfo("SwapFree");
    bool swaps = swap > 0 && swap - unused > swap / 4;
    const cli_finding swapped = {
        swaps ? CLI_NOTE : CLI_HEALTHY, "swap",
        swap > 0 ? tr_size_words(swap, all_text, sizeof all_text) : "none",
        swaps ? "much of it is in use: what lies there is slow to come back"
              : "no plan counts on it",
        swaps ? "swapoff -a && swapon -a" : NULL};
    cli_findings_add(to, "memory", &swapped);
}
