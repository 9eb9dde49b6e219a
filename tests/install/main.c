// A program outside the project: built against an installed tree, it uses the library.
#include <tranche/op.h>
#include <tranche/status.h>
#include <tranche/types.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    tr_error err = {0};
    tr_status status = tr_fail(&err, TR_DATA, "row %d", 3);
    if (status != TR_DATA || strcmp(err.message, "row 3") != 0 ||
        strcmp(tr_status_words(status), "data") != 0) {
        return 1;
    }
    if (tr_dtype_bytes(TR_BF16) != 2 || tr_shape_count(TR_SHAPE2(3, 5)) != 15) {
        return 1;
    }
    puts("built against an installed tree");
    return 0;
}
