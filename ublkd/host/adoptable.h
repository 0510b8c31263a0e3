/* SPDX-License-Identifier: MIT */
/* Disks and records that a lost or older database knows nothing of, and what came of an adoption: plain data,
 * for the API. */
#pragma once

#include "ublkd/store/device_store.h"
#include "ublkd/host/foreign_disk.h"

enum adopt_verdict {
        ADOPT_POSSIBLE,
        ADOPT_DONE,
        ADOPT_UNCHANGED,  /* it was adopted before */
        ADOPT_UNKNOWN,    /* there is no record of this uid */
        ADOPT_NO_RECORD,  /* the disk is there, its record is not */
        ADOPT_ELSEWHERE,  /* another ublkd looks after it */
        ADOPT_BAD_RECORD, /* it cannot be read */
        ADOPT_NAME_TAKEN,
        ADOPT_NOT_ASKED, /* it was removed: only by its uid */
        ADOPT_FAILED,    /* the database, or memory */
        _ADOPT_VERDICT_MAX
};

/* One word, for programs: "Adopted", "NameTaken". */
const char *adopt_verdict_to_string(enum adopt_verdict verdict);
/* The device is managed here from now on. */
bool adopt_verdict_is_good(enum adopt_verdict verdict);

struct adoptable {
        char uid[UID_TEXT_SIZE];
        char *name;          /* owned; NULL: not known */
        int number;          /* -1: none */
        const char *state;   /* of the kernel's disk, as in struct foreign_disk; NULL: it has none */
        pid_t pid;           /* of the worker that serves it; 0: none */
        enum record_age age; /* of the database's record, if there is one */
        enum adopt_verdict verdict;
        char *detail; /* owned: why it cannot be adopted, or how */
};

enum { ADOPTABLES_TOLD_MAX = 256 }; /* by GET /host */

/* Zero-initialise. */
struct adoptables {
        struct adoptable *items;
        size_t count;
};

/* What came of one. */
struct adoption {
        enum adopt_verdict verdict;
        char *name;   /* of the device; owned; NULL: not known */
        char *detail; /* a sentence; owned; NULL without memory */
};
void adoption_clear(struct adoption *adoption);

/* Takes over what `item` owns, also on failure. 0 or -ENOMEM. */
int adoptables_add(struct adoptables *list, const struct adoptable *item);
void adoptables_clear(struct adoptables *list);
/* The one whose disk has that cookie, or NULL. */
const struct adoptable *adoptables_find_cookie(const struct adoptables *list, uint64_t cookie);
/* Fills in what is known of their disks, and adds the disks that ublkd made and that have no record. 0 or
 * -ENOMEM. */
int adoptables_join(struct adoptables *list, const struct foreign_disks *disks);
