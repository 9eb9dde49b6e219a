#include "comm/mpi_check.h"

#include <mpi.h>

tr_status tr__mpi_check(int code, const char *call, tr_error *err) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) {
        return TR_OK;
    }
    MPI_Error_string(code, text, &length);
    return tr_fail(err, TR_COMM, "%s: %s", call, text);
}
