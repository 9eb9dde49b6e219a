#include "comm/launcher.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

// A number >= 0; -1: none.
static int number(const char *name) {
    const char *text = name ? getenv(name) : NULL;
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : -1;
    return text && end != text && *end == '\0' && value >= 0 && value < INT_MAX
               ? (int)value
               : -1;
}

// In the order of asking: a launcher also hands on what was set around it.
static const struct {
    const char *name, *rank, *ranks;
    bool mute;
} launchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false},
    {"mpirun of MPICH or srun --mpi=pmi2", "PMI_RANK", "PMI_SIZE", false},
    {"srun --mpi=pmix", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", false},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true},
};

tr_process_launcher tr__launcher_find(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int rank = number(launchers[i].rank), ranks = number(launchers[i].ranks);
        // Slurm numbers the one task of a batch script too: there only a step counts.
        if (rank >= 0 && (ranks > 0 || !launchers[i].mute)) {
            return (tr_process_launcher){launchers[i].name, rank,
                                         ranks > 0 ? ranks : -1, launchers[i].mute};
        }
    }
    return (tr_process_launcher){.rank = -1, .ranks = -1};
}
