/* SPDX-License-Identifier: MIT */
/* A file is recognised by the file system that it lies in, whatever path led there. */
#include "targets/loop/pseudo_files.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/vfs.h>

/* Numbers that <linux/magic.h> does not have: they are in the kernel's sources, at the names given. */
enum {
        CONFIGFS_MAGIC = 0x62656570, /* fs/configfs/mount.c */
        FUSECTL_MAGIC = 0x65735543,  /* fs/fuse/control.c: FUSE_CTL_SUPER_MAGIC */
        MQUEUE_MAGIC = 0x19800202,   /* ipc/mqueue.c */
};

static const struct {
        uint32_t magic;
        const char *name;
} pseudo_file_systems[] = {
        {PROC_SUPER_MAGIC,     "procfs"     },
        {SYSFS_MAGIC,          "sysfs"      },
        {DEBUGFS_MAGIC,        "debugfs"    },
        {TRACEFS_MAGIC,        "tracefs"    },
        {CGROUP_SUPER_MAGIC,   "cgroupfs"   },
        {CGROUP2_SUPER_MAGIC,  "cgroupfs"   },
        {SECURITYFS_MAGIC,     "securityfs" },
        {SELINUX_MAGIC,        "selinuxfs"  },
        {SMACK_MAGIC,          "smackfs"    },
        {CONFIGFS_MAGIC,       "configfs"   },
        {PSTOREFS_MAGIC,       "pstore"     },
        {EFIVARFS_MAGIC,       "efivarfs"   },
        {BPF_FS_MAGIC,         "bpffs"      },
        {BINFMTFS_MAGIC,       "binfmt_misc"},
        {RDTGROUP_SUPER_MAGIC, "resctrl"    },
        {FUSECTL_MAGIC,        "fusectl"    },
        {MQUEUE_MAGIC,         "mqueue"     },
        {DEVPTS_SUPER_MAGIC,   "devpts"     },
        {NSFS_MAGIC,           "nsfs"       },
        {PIPEFS_MAGIC,         "pipefs"     },
        {SOCKFS_MAGIC,         "sockfs"     },
};

/* NULL: none of them. */
static const char *name_of(const struct statfs *file_system)
{
        for (size_t i = 0; i < ARRAY_SIZE(pseudo_file_systems); i++)
                if ((uint32_t)file_system->f_type == pseudo_file_systems[i].magic)
                        return pseudo_file_systems[i].name;
        return NULL;
}

int pseudo_files_refuse(int fd, const char *path, struct problem_list *problems)
{
        struct statfs file_system;
        const char *name;
        int r;

        if (fstatfs(fd, &file_system) < 0) /* it fails as well when it is read */
                return 0;
        name = name_of(&file_system);
        if (!name)
                return 0;
        r = problem_add(problems, EINVAL, "/target/path", "BackingFileUnsuitable",
                "%s is a file of %s, in which the kernel shows its state and keeps no data; a loop target "
                "needs a regular file or a block device.",
                path, name);
        return r < 0 ? r : -EINVAL;
}
