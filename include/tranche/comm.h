// The ranks of a run: this process alone, or the processes that an MPI launcher
// (mpirun, srun) has started.
#ifndef TRANCHE_COMM_H
#define TRANCHE_COMM_H

#include <tranche/status.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_comm tr_comm;

// Joins the ranks that a launcher has started; without a launcher, this process is the
// only one, and MPI is not touched. Once per process. Collective. TR_COMM: the launcher
// is of another MPI than the program, the program was built without MPI, or a rank is
// missing (for longer than TRANCHE_START_SECONDS of the environment, 300 if not set; 0:
// no limit); the message says what to do.
tr_status tr_comm_open(tr_comm **out, tr_error *err);

// Collective when no error has come up; after one (tr_comm_abandon, or a TR_COMM from
// any call) it waits for nobody, and the process is to end soon: see tr_comm_end.
// NULL-safe. A process that exits with an open comm ends all ranks with TR_COMM.
void tr_comm_close(tr_comm *comm);

// The last call of a program: closes, and after an error of the ranks, which leaves
// some that do not end by themselves, has the launcher end them all, so that its own
// exit status is `exit_status`. Then it does not return; when it does, the program is
// to exit with that status. NULL-safe.
void tr_comm_end(tr_comm *comm, int exit_status);

int tr_comm_rank(const tr_comm *comm);  // 0 .. ranks - 1
int tr_comm_ranks(const tr_comm *comm); // W

// OpenMP threads that each rank has to itself: its cores, shared among the ranks that
// may run on the same ones. The same on every rank (the least of all).
int tr_comm_threads(const tr_comm *comm);

// Tells all ranks that this one ends with `error`: whatever they wait for in a call of
// this library comes back with it, its message led by "rank R: ". Not collective. With
// one rank it does nothing.
void tr_comm_abandon(tr_comm *comm, const tr_error *error);

// Whether this rank tells the user: rank 0. After an error of the ranks it returns true
// on one of them: where rank 0 does not ask, which may be gone or busy, another waits
// for a while and then speaks for it; the program should say its message at once and
// call tr_comm_end. NULL (tr_comm_open has failed): rank 0 as the launcher numbers
// them.
bool tr_comm_speaks(const tr_comm *comm);

// Ranks compare how they fared: TR_OK when all bring TR_OK; else, on all ranks, the
// status and message of the lowest rank that brings another, led by "rank R: " (unless
// all ranks bring the same message). `mine`: NULL or status TR_OK: nothing wrong.
// Collective.
tr_status tr_comm_agree(tr_comm *comm, const tr_error *mine, tr_error *err);

#ifdef __cplusplus
}
#endif
#endif
