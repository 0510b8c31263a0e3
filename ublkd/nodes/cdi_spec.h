/* SPDX-License-Identifier: MIT */
/* Descriptions of disks for container engines, after the Container Device Interface: a file for each disk in a directory that
 * the engines read. All engines of a host read the same directory, those of root too, and what a file has them do is done as
 * the user of the engine. So no other user than root may ever write to a file; the tenant may read that of its disk.
 *
 * The name of a file does not give away the device of a tenant: it has the uid of the device. A seal (an extended attribute
 * that only root sees) marks the files of this ublkd; others are left alone. No call blocks. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define CDI_KIND "ublkd.io/disk"

struct cdi_specs;

struct cdi_spec {
        const char *name; /* of the device */
        const char *uid;  /* of the device, a UUID */
        uid_t tenant;     /* 0: the device belongs to the administrators */
        const char *node; /* the path of its node on the host */
        dev_t dev;        /* of its disk */
        uid_t owner_uid;  /* of the node in the container; for disks of administrators */
        gid_t owner_gid;
        bool read_only;
};

/* Open the directory, and create it if only the last part is missing. `instance`: which ublkd, its runtime directory. Return
 * 0; -EPERM: others than root may write to it; -ELOOP: it is a symbolic link; other -errno. */
int cdi_specs_open(const char *directory, const char *instance, struct cdi_specs **ret);
/* As it, of a directory that is there: only to remove files. Return also -ENOENT; others may write to it. */
int cdi_specs_open_existing(const char *directory, const char *instance, struct cdi_specs **ret);
struct cdi_specs *cdi_specs_free(struct cdi_specs *specs);

/* Remove all files of this ublkd: before a disk is created or removed. Return their number or -errno. */
int cdi_specs_clear(struct cdi_specs *specs);

/* Write the file of the device, whole or not at all. Return 0; -EEXIST: a file of another program has its name; -errno. */
int cdi_spec_write(struct cdi_specs *specs, const struct cdi_spec *spec);
/* Remove the file of the device, of which name, uid and tenant count. Return 0, also if there is none, or -errno. */
int cdi_spec_remove(struct cdi_specs *specs, const struct cdi_spec *spec);
