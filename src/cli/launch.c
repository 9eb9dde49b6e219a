#include "cli/launch.h"

#include "cli/cli.h"
#include "cli/hangup.h"

#include <tranche/comm.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Open MPI's launcher hangs, and ignores signals, where it is asked for a million
// ranks.
enum { WORDS_MAX = 12, RANKS_TEXT = 32, RANKS_MAX = 4096 };

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
enum { ENDS = sizeof ends / sizeof *ends };

static volatile sig_atomic_t child, caught;

bool cli_must_launch(int64_t ranks) {
    return ranks > 1 && !tr_comm_launcher();
}

// Launchers hand SIGUSR1 on to the ranks, which save and end; at SIGTERM they end the
// ranks themselves.
static void hand_on(int number) {
    kill((pid_t)child, caught ? SIGTERM : SIGUSR1);
    caught = caught ? caught : number;
}

// ---- the launcher of the MPI that the library was built with

static bool is_mpich(void) {
    return tr_comm_mpi(NULL) == TR_MPI_MPICH;
}

// Its names, the likeliest first, beside the one that the build has found.
static const char *const *launcher_names(void) {
    static const char *const open_mpi[] = {"mpirun.openmpi", "mpirun", NULL};
    static const char *const mpich[] = {"mpirun.mpich", "mpiexec.hydra", "mpiexec",
                                        NULL};
    return is_mpich() ? mpich : open_mpi;
}

// All ranks are here, and as many as the user wants: not one for each core.
static void add_words(const char **words, const char *ranks) {
    size_t n = 1;
    if (!is_mpich()) {
        words[n++] = "--oversubscribe";
        words[n++] = "--bind-to";
        words[n++] = "none"; // ranks share the cores out among themselves
    }
    words[n++] = "-n";
    words[n++] = ranks;
}

// What Open MPI asks of its user before it starts ranks as root, and its way between
// processes of one machine, which needs no network. Its launcher explains at length
// that a rank has ended with a status: Open MPI 4 can be told not to (its option
// --quiet is an error in Open MPI 5, which cannot).
static void set_environment(void) {
    if (is_mpich()) {
        return;
    }
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
    setenv("OMPI_MCA_orte_execute_quiet", "1", 0);
    setenv("OMPI_MCA_plm", "isolated", 0); // else it looks for ssh
    setenv("OMPI_MCA_oob_tcp_if_include", "lo", 0);
    setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
}

// ---- processes

// The child: becomes the launcher. A terminal's signals go to the parent alone.
static void become(const char **words, const sigset_t *mask) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    set_environment();
    tr_comm_mpi(&words[0]);
    execvp(words[0], (char *const *)words);
    for (const char *const *name = launcher_names(); *name; name++) {
        words[0] = *name;
        execvp(*name, (char *const *)words);
    }
    fprintf(stderr,
            "tranche: --ranks: cannot start %s: %s; install it, or start the ranks by "
            "another launcher, without --ranks\n",
            is_mpich() ? "mpiexec (MPICH)" : "mpirun (Open MPI)", strerror(errno));
    _exit(tr_status_exit(TR_COMM));
}

static int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // What was handed on as SIGUSR1 was another signal.
    bool asked = caught && code >= 128;
    return asked ? tr_status_exit(TR_INTERRUPTED) + caught : code;
}

static int run(const char **words) {
    sigset_t all, before;
    struct sigaction action = {.sa_handler = hand_on, .sa_flags = SA_RESTART};
    sigemptyset(&all);
    for (int i = 0; i < ENDS; i++) {
        sigaddset(&all, ends[i]);
    }
    fflush(NULL);
    cli_hangup_restore();
    sigprocmask(SIG_BLOCK, &all, &before); // until there is a child to hand on to
    pid_t pid = fork();
    if (pid == 0) {
        become(words, &before);
    }
    child = (sig_atomic_t)pid;
    for (int i = 0; i < ENDS && pid > 0; i++) {
        if (ends[i] != SIGHUP || !cli_hangup_was_ignored()) {
            sigaction(ends[i], &action, NULL);
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        tr_error err = {0};
        tr_fail(&err, TR_COMM, "cannot start the ranks: %s", strerror(errno));
        return cli_fail(&err);
    }
    return wait_for(pid);
}

int cli_launch(int64_t ranks, int argc, char **argv) {
    char self[PATH_MAX] = "", count[RANKS_TEXT];
    tr_error err = {0};
    const char **words =
        calloc((size_t)argc + WORDS_MAX, sizeof *words); // NULL at the end
    size_t used = 0;
    if (ranks > RANKS_MAX) {
        free(words);
        tr_fail(&err, TR_USAGE, "--ranks %lld: one machine takes at most %d ranks",
                (long long)ranks, RANKS_MAX);
        return cli_fail(&err);
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!words || length <= 0) {
        free(words);
        tr_fail(&err, TR_MEMORY, "cannot start the ranks: no memory, or no /proc");
        return cli_fail(&err);
    }
    if (tr_comm_mpi(NULL) == TR_MPI_NONE) {
        free(words);
        tr_fail(&err, TR_COMM,
                "--ranks %lld: this program was built without MPI: run it alone, or "
                "build it with -DTRANCHE_MPI=ON",
                (long long)ranks);
        return cli_fail(&err);
    }
    snprintf(count, sizeof count, "%lld", (long long)ranks);
    add_words(words, count);
    for (used = 1; words[used]; used++) {
    }
    words[used++] = self;
    words[used++] = "train";
    for (int i = 0; i < argc; i++) {
        words[used++] = argv[i];
    }
    int exit_status = run(words);
    free(words);
    return exit_status;
}
