// The ranks of a run: this process alone, the processes that an MPI launcher (mpirun,
// srun) has started, or ranks that exchange by functions of the caller's.
#ifndef TRANCHE_COMM_H
#define TRANCHE_COMM_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_comm tr_comm;

// Joins the ranks that a launcher has started. Without a launcher, this process is the
// only rank, and MPI is not touched. Once per process. Collective. TR_COMM: the
// launcher belongs to another MPI than the program, the program was built without MPI,
// or a rank is missing; the message says what to do. A rank is missing after 300
// seconds, or as many as TRANCHE_START_SECONDS of the environment says (0: no limit).
TR_API tr_status tr_comm_open(tr_comm **out, tr_error *err);

// The functions by which ranks exchange that the caller has started. The ranks may be
// threads of a process, processes with sockets or pipes between them, or users of a
// message library. Begin with TR_COMM_FUNCTIONS_INIT, then set members.
typedef struct tr_comm_functions {
    size_t size;     // of this struct
    int rank, ranks; // this one, 0 .. ranks - 1, and how many there are
    // Sends out [out_bytes] to rank `to`, receives in [in_bytes] from rank `from`, and
    // returns when both are done. The two must make progress at the same time, because
    // the other rank may send before it receives. A side with 0 bytes has no message,
    // and its pointer may be NULL; at least one side has some. The sender and the
    // receiver of a message name the same number of bytes. Messages from one rank to
    // another arrive in the order in which they are sent. `to` and `from` are never
    // this rank; they may be the same rank. Called on the thread that calls the
    // library (but see any_thread), once at a time. An error breaks the comm
    // (tr_comm_abandon). If another rank is gone, the function must return an error, so
    // that no rank waits forever.
    tr_status (*exchange)(void *user, int to, const void *out, size_t out_bytes,
                          int from, void *in, size_t in_bytes, tr_error *err);
    // Called once, when this rank or one of its exchanges has failed. From then on, the
    // exchanges of all other ranks have to end with an error, those that are waiting
    // and all later ones. `error` is what went wrong; its message begins with the rank.
    void (*abandon)(void *user, const tr_error *error);
    // Called by tr_comm_close, last. NULL: nothing to do.
    void (*close)(void *user);
    void *user;
    // 1: `exchange` is called on a thread of the library's, so that ranks exchange
    // while they compute. `abandon` is called on that thread or on the calling one;
    // then an exchange of this rank that is waiting has to end with an error, too. If
    // it has not after two seconds, tr_comm_close leaves the thread as it is, and does
    // not call `close`. 0: both are called on the thread that calls the library, which
    // computes nothing meanwhile.
    int any_thread;
} tr_comm_functions;

#define TR_COMM_FUNCTIONS_INIT                                                         \
    { sizeof(tr_comm_functions), 0, 0, NULL, NULL, NULL, NULL, 0 }

// Makes a comm of the caller's functions; the struct is copied. Results are bit for bit
// those of ranks with MPI. Plans have 8 MiB for the messages of a reduction, and 1 MiB
// with MPI. What ranks have on GPUs is exchanged by way of the host's memory, slice by
// slice, and never by NCCL. A process may have any number of such comms, each used by
// one thread at a time. The program prints the messages of ranks other than 0.
// Collective: the ranks find out which of them share a machine. The comm closes `user`;
// after an error here, `user` stays the caller's. The caller closes *out. TR_USAGE: a
// struct of an unknown size, or functions that are missing. TR_MEMORY; TR_INTERNAL: no
// thread can be started; and the errors of `exchange`.
TR_API tr_status tr_comm_create_callback(const tr_comm_functions *functions,
                                         tr_comm **out, tr_error *err);

// Leaves the ranks. Collective if no error has occurred. After an error
// (tr_comm_abandon, or TR_COMM from any call) it waits for no other rank, and the
// process should end soon: see tr_comm_end. NULL-safe. A process that exits with an
// open comm ends all ranks with TR_COMM.
TR_API void tr_comm_close(tr_comm *comm);

// The last call of a program: it closes `comm`. After an error of the ranks, some of
// them may never end by themselves; then this call makes the launcher end all of them
// with `exit_status`, and does not return. If it returns, the program exits with
// `exit_status`. NULL-safe.
TR_API void tr_comm_end(tr_comm *comm, int exit_status);

TR_API int tr_comm_rank(const tr_comm *comm);  // 0 .. ranks - 1
TR_API int tr_comm_ranks(const tr_comm *comm); // W

// OpenMP threads of each rank: its cores, divided by the number of ranks that may run
// on them. Equal on all ranks: the smallest of theirs.
TR_API int tr_comm_threads(const tr_comm *comm);

// Tells all ranks that this one ends with `error`. Calls of this library in which they
// wait return that error, with "rank R: " before its message. Not collective. With one
// rank it does nothing.
TR_API void tr_comm_abandon(tr_comm *comm, const tr_error *error);

// Whether this rank prints messages for the user: rank 0 does. After an error of the
// ranks it returns true on one rank. If rank 0 has ended or is busy, another rank waits
// for a while and then takes its place. The program should print its message at once
// and call tr_comm_end. `comm` is NULL where tr_comm_open has failed: then rank 0 is
// the one that the launcher numbers so.
TR_API bool tr_comm_speaks(const tr_comm *comm);

// Makes all ranks agree on a status. If every rank brings TR_OK, the result is TR_OK.
// Otherwise all ranks get the status and message of the lowest rank that brings an
// error, with "rank R: " before the message unless all ranks bring the same one.
// `mine`: this rank's error; NULL or one of status TR_OK: none. Collective.
TR_API tr_status tr_comm_agree(tr_comm *comm, const tr_error *mine, tr_error *err);

// The largest of the numbers that the ranks bring; `comm` NULL: this process alone.
// Collective. TR_COMM.
TR_API tr_status tr_comm_most(tr_comm *comm, int64_t mine, int64_t *most,
                              tr_error *err);

// What has started this process as one of several ranks, as its environment tells, in
// words: "mpirun of Open MPI". NULL: nothing has. Not collective.
TR_API const char *tr_comm_launcher(void);

// The MPI that the library was built with.
typedef enum tr_mpi { TR_MPI_NONE, TR_MPI_OPEN_MPI, TR_MPI_MPICH } tr_mpi;

// *mpirun: the program that starts ranks of that MPI, by its path where the library was
// built; "": not known. A constant text. NULL: the caller does not ask.
TR_API tr_mpi tr_comm_mpi(const char **mpirun);

#ifdef __cplusplus
}
#endif
#endif
