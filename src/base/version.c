#include <tranche/version.h>

const char *tr_version(void) {
    return TRANCHE_VERSION;
}

int tr_version_number(void) {
    return TRANCHE_VERSION_NUMBER;
}
