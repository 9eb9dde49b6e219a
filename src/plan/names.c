// Names of the public enumerations.
#include <tranche/plan.h>

const char *tr_ledger_name(tr_ledger_category category) {
    static const char *const names[] = {
#define TR_LEDGER_NAME(name) #name,
        TR_LEDGER_LIST(TR_LEDGER_NAME)
#undef TR_LEDGER_NAME
    };
    return (unsigned)category < TR_LEDGER_COUNT ? names[category] : "";
}

const char *tr_space_name(tr_space space) {
    static const char *const names[] = {"device", "host", "nvme"};
    return (unsigned)space < TR_SPACES ? names[space] : "";
}

const char *tr_remake_name(tr_remake one) {
    switch (one) {
    case TR_REMAKE_NORM:
        return "norm";
    case TR_REMAKE_ACTIVATION:
        return "activation";
    case TR_REMAKE_ATTENTION:
        return "attention";
    case TR_REMAKE_RESIDUAL:
        return "residual";
    case TR_REMAKE_PRE_ACTIVATION:
        return "pre_activation";
    case TR_REMAKE_PRODUCT:
        return "product";
    default:
        return "";
    }
}
