// What this program works with: MPI and its launcher, a GPU with its driver and
// libraries, what the build has put in.
#include "cli/doctor_findings.h"
#include "report/page.h"

#include <tranche/comm.h>
#include <tranche/extend/target.h>
#include <tranche/types.h>
#include <tranche/version.h>

#include <errno.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT = 512, SIZE_TEXT = 32 };

// ---- ranks

// Is there such a program, by its path or in PATH? `found`: where.
static bool find_program(const char *name, char found[PATH_MAX]) {
    const char *path = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(found, PATH_MAX, "%s", name);
        return access(name, X_OK) == 0;
    }
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        snprintf(found, PATH_MAX, "%.*s/%s", length, path, name);
        if (access(found, X_OK) == 0) {
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

static void add_launcher(cli_findings *to, tr_mpi mpi, const char *mpirun) {
    const char *const open_mpi[] = {mpirun, "mpirun.openmpi", "mpirun"};
    const char *const mpich[] = {mpirun, "mpirun.mpich", "mpiexec.hydra"};
    const char *const *names = mpi == TR_MPI_MPICH ? mpich : open_mpi;
    char found[PATH_MAX] = "";
    bool there = false;
    for (int i = 0; i < 3 && !there; i++) {
        there = names[i] && names[i][0] && find_program(names[i], found);
    }
    const cli_finding finding = {
        there ? CLI_HEALTHY : CLI_NOTE, "launcher", there ? found : "none",
        there ? "tranche train --ranks W starts ranks by it"
              : "--ranks W cannot start ranks",
        there                 ? NULL
        : mpi == TR_MPI_MPICH ? "sudo apt-get install mpich"
                              : "sudo apt-get install openmpi-bin"};
    cli_findings_add(to, "ranks", &finding);
}

static void add_shared_memory(cli_findings *to) {
    enum { LITTLE = 128 << 20 };
    char size[SIZE_TEXT];
    int64_t room = cli_doctor_room("/dev/shm");
    if (room < 0) {
        return;
    }
    bool little = room < LITTLE;
    const cli_finding finding = {
        little ? CLI_NOTE : CLI_HEALTHY, "/dev/shm",
        tr_size_words(room, size, sizeof size),
        little ? "ranks of one machine exchange through it: with so little MPI may fail"
               : "ranks of one machine exchange through it",
        little ? "mount -o remount,size=1G /dev/shm (of a container: --shm-size=1g)"
               : NULL};
    cli_findings_add(to, "ranks", &finding);
}

void cli_doctor_ranks(cli_findings *to) {
    static const char *const names[] = {[TR_MPI_NONE] = "none",
                                        [TR_MPI_OPEN_MPI] = "Open MPI",
                                        [TR_MPI_MPICH] = "MPICH"};
    const char *mpirun = "", *launcher = tr_comm_launcher();
    tr_mpi mpi = tr_comm_mpi(&mpirun);
    bool has = mpi != TR_MPI_NONE;
    const cli_finding finding = {
        has ? CLI_HEALTHY : CLI_NOTE, "MPI", names[mpi],
        has ? "this program can be one of several ranks, on one machine or many"
            : "this program was built without MPI: it trains on one rank alone",
        has ? NULL
            : "sudo apt-get install libopenmpi-dev openmpi-bin && cmake --preset "
              "release -DTRANCHE_MPI=ON && ninja -C build"};
    cli_findings_add(to, "ranks", &finding);
    if (has) {
        add_launcher(to, mpi, mpirun);
        add_shared_memory(to);
    }
    if (launcher) {
        const cli_finding started = {CLI_HEALTHY, "started by", launcher,
                                     "this process is one of several ranks", NULL};
        cli_findings_add(to, "ranks", &started);
    }
}

// ---- GPU

tr_status cli_doctor_run(const char *device, tr_run **out, tr_error *err) {
    static const char text[] =
        "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [8, 8, 8]}, \"data\": "
        "{\"format\": \"random\", \"samples\": 8, \"features\": 8, \"classes\": 8}, "
        "\"steps\": 1, \"train_batch_size\": 8}";
    tr_status status = tr_run_create(out, err);
    status = status == TR_OK ? tr_run_load_text(*out, text, err) : status;
    return status == TR_OK ? tr_run_set(*out, "device", device, err) : status;
}

static bool first_line(const char *path, char text[TEXT]) {
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, TEXT, file);
    if (file) {
        fclose(file);
    }
    text[read ? strcspn(text, "\n") : 0] = '\0';
    return read;
}

// What a run on "cuda" says, up to its own advice.
static bool can_use_gpu(char why[TEXT]) {
    tr_error err = {0};
    tr_run *run = NULL;
    tr_status status = cli_doctor_run("cuda", &run, &err);
    status = status == TR_OK ? tr_run_set(run, "computes_here", "true", &err) : status;
    status = status == TR_OK ? tr_run_resolve(run, &err) : status;
    tr_run_destroy(run);
    const char *begin = strstr(err.message, "but "), *end;
    begin = begin ? begin + strlen("but ") : err.message;
    end = strstr(begin, "; set device");
    snprintf(why, TEXT, "%.*s", end ? (int)(end - begin) : TEXT - 1, begin);
    return status == TR_OK;
}

static const char *advice_of(const char *why) {
    return strstr(why, "built without CUDA")
               ? "cmake --preset release -DTRANCHE_CUDA=ON && ninja -C build (needs "
                 "nvcc)"
           : strstr(why, "driver") ? "sudo apt-get install nvidia-driver; then restart"
           : strstr(why, "cublasLt")
               ? "sudo apt-get install libcublas-13-0, or add the "
                 "folder of CUDA's libraries to LD_LIBRARY_PATH"
               : "nvidia-smi";
}

// Whether it is of use, a plan says.
static void add_attention(cli_findings *to) {
    char found[SIZE_TEXT] = "none";
    const char *why = NULL;
    int version = tr_attention_version(&why);
    if (version > 0) {
        snprintf(found, sizeof found, "%d.%d", version / 100, version % 100);
    }
    const cli_finding finding = {
        CLI_HEALTHY, "cuDNN", found,
        version > 0 ? "a plan for a GPU of sm_90 takes attention in 16 bits from it if "
                      "execution.attention knows this version"
                    : why,
        NULL};
    cli_findings_add(to, "GPU", &finding);
}

void cli_doctor_gpu(cli_findings *to) {
    char driver[TEXT], why[TEXT];
    bool has_driver = first_line("/proc/driver/nvidia/version", driver);
    bool has_device = access("/dev/nvidiactl", F_OK) == 0;
    const cli_finding finding = {
        CLI_HEALTHY, "driver", has_driver ? driver : "none",
        has_driver   ? "NVIDIA's driver is loaded"
        : has_device ? "there is a device, and no driver tells of itself"
                     : "this machine shows no NVIDIA GPU: training computes on the "
                       "processor",
        NULL};
    cli_findings_add(to, "GPU", &finding);
    bool can = can_use_gpu(why);
    bool could = has_driver || has_device;
    const cli_finding use = {can || !could ? CLI_HEALTHY : CLI_NOTE, "device \"cuda\"",
                             can ? "can be used" : "cannot be used",
                             can ? "runs whose file leaves the device open train on it"
                                 : why,
                             can || !could ? NULL : advice_of(why)};
    cli_findings_add(to, "GPU", &use);
    add_attention(to);
}

// ---- libraries

static void add_uring(cli_findings *to) {
    struct io_uring_params params = {0};
    long ring = syscall(SYS_io_uring_setup, 4, &params);
    int problem = ring < 0 ? errno : 0;
    if (ring >= 0) {
        close((int)ring);
    }
    const cli_finding finding = {
        problem ? CLI_NOTE : CLI_HEALTHY, "io_uring",
        problem ? strerror(problem) : "permitted",
        problem
            ? "NVMe is read and written by threads instead, which takes more of the "
              "processor"
            : "NVMe is read and written by it",
        problem ? "sudo sysctl kernel.io_uring_disabled=0 (of a container: allow it in "
                  "the seccomp profile)"
                : NULL};
    cli_findings_add(to, "libraries", &finding);
}

void cli_doctor_libraries(cli_findings *to) {
    bool charts = page_has_charts();
    const cli_finding version = {CLI_HEALTHY, "Tranche", tr_version(),
                                 "of program and library", NULL};
    const cli_finding finding = {
        charts ? CLI_HEALTHY : CLI_NOTE, "dygraphs",
        charts ? "built in" : "not built in",
        charts ? "tranche report draws charts"
               : "tranche report has a picture in place of charts",
        charts ? NULL
               : "sudo apt-get install libjs-dygraphs && cmake --preset release && "
                 "ninja -C build"};
    cli_findings_add(to, "libraries", &version);
    cli_findings_add(to, "libraries", &finding);
    add_uring(to);
}
