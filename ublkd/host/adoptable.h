/* SPDX-License-Identifier: MIT */
/* Disks and records that a lost or older database lacks, and the results of adoptions: plain data, for the API.
 */
#pragma once

#include "ublkd/store/device_store.h"
#include "ublkd/host/foreign_disk.h"

enum adopt_verdict {
        ADOPT_POSSIBLE,
        ADOPT_DONE,
        ADOPT_UNCHANGED,  /* it was adopted before */
        ADOPT_UNKNOWN,    /* no record has this uid */
        ADOPT_NO_RECORD,  /* the disk exists, its record does not */
        ADOPT_ELSEWHERE,  /* another ublkd manages it */
        ADOPT_BAD_RECORD, /* the record cannot be read */
        ADOPT_NAME_TAKEN,
        ADOPT_NOT_ASKED, /* the device was removed: name its uid to adopt it */
        ADOPT_FAILED,    /* the database failed, or ENOMEM */
        _ADOPT_VERDICT_MAX
};

/* Return one word, for programs: "Adopted", "NameTaken". Static. */
const char *adopt_verdict_to_string(enum adopt_verdict verdict);
/* Return whether this ublkd manages the device from now on. */
bool adopt_verdict_is_good(enum adopt_verdict verdict);

struct adoptable {
        char uid[UID_TEXT_SIZE];
        char *name;          /* owned; NULL: unknown */
        int number;          /* -1: none */
        const char *state;   /* of the disk, as in struct foreign_disk; NULL: no disk */
        pid_t pid;           /* of the worker that serves it; 0: none */
        enum record_age age; /* of the record in the database, if there is one */
        enum adopt_verdict verdict;
        char *detail; /* owned: why it cannot be adopted, or how */
};

enum { ADOPTABLES_SHOWN_MAX = 256 }; /* by GET /host */

/* Zero-initialise. */
struct adoptables {
        struct adoptable *items;
        size_t count;
};

/* The result of one adoption. */
struct adoption {
        enum adopt_verdict verdict;
        char *name;   /* of the device; owned; NULL: unknown */
        char *detail; /* a sentence; owned; NULL on ENOMEM */
};
void adoption_clear(struct adoption *adoption);

/* Add `item` and take over what it owns, also on failure. Return 0 or -ENOMEM. */
int adoptables_add(struct adoptables *list, const struct adoptable *item);
void adoptables_clear(struct adoptables *list);
/* Return the item whose disk has that cookie, or NULL. */
const struct adoptable *adoptables_find_cookie(const struct adoptables *list, uint64_t cookie);
/* Fill in the disks of the items, and add the disks of ublkd without a record. Return 0 or -ENOMEM. */
int adoptables_join(struct adoptables *list, const struct foreign_disks *disks);
