/* SPDX-License-Identifier: MIT */
/* PURE: what is to be done about a device, from what the files say and what the store has. */
#pragma once

#include <stdbool.h>

/* What the files say of the device. */
enum declared_spec {
        DECLARED_NOT,     /* no file describes it */
        DECLARED_INVALID, /* a file does, with an invalid spec */
        DECLARED_VALID,
        _DECLARED_SPEC_MAX
};

/* What the store has. */
enum declared_record {
        DECLARED_NO_RECORD,
        DECLARED_OF_CLIENT,  /* a client of the API made it */
        DECLARED_DELETING,   /* it is being removed */
        DECLARED_NOT_RECENT, /* the database is an older copy, and the device is left alone */
        DECLARED_OF_FILE,
        _DECLARED_RECORD_MAX
};

/* What became of the file that owns the device (DECLARED_OF_FILE). */
enum declared_owner {
        OWNER_SAME,    /* it is the file that describes the device now */
        OWNER_UNKNOWN, /* it is not known whether it still describes the device */
        OWNER_GONE,    /* it is known that it does not */
        _DECLARED_OWNER_MAX
};

struct declared_view {
        enum declared_spec spec;
        enum declared_record record;
        enum declared_owner owner;
        bool same; /* the valid spec equals that of the record */
};

enum declared_step {
        DECLARED_NOTHING,
        DECLARED_CREATE,
        DECLARED_CHANGE, /* spec or owner */
        DECLARED_KEEP,   /* it is as its file says */
        DECLARED_HOLD,   /* it stays as it is, because its file is invalid or unknown */
        DECLARED_REMOVE, /* if it is not in use */
        DECLARED_REFUSE, /* a client has the name */
        DECLARED_AWAIT,  /* the removal of the device that has the name */
        _DECLARED_STEP_MAX
};

/* Return the step. */
enum declared_step declared_plan(const struct declared_view *view);
