/* SPDX-License-Identifier: MIT */
/* Names that the kernel gives to block devices in the order in which it finds them. */
#include "ublkd/kernel/kernel_name.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

/* Below /dev. '#': digits; '@': lower-case letters; a disk's partition is meant as well. */
static const char *const patterns[] = {
        "sd@",       /* SCSI, SATA, USB */
        "hd@",       /* IDE */
        "vd@",       /* virtio */
        "xvd@",      /* Xen */
        "dasd@",     /* s390 */
        "scm@",      /* s390 */
        "rssd@",     /* mtip32xx */
        "nvme#n#",   /* a namespace */
        "nvme#c#n#", /* one path to it */
        "mmcblk#",   /* SD, eMMC */
        "mmcblk#boot#",
        "dm-#", /* LVM, LUKS, multipath: in the order of their activation */
        "md#",
        "md_d#",
        "loop#",
        "nbd#",
        "zd#", /* a volume of ZFS */
        "rbd#",
        "rnbd#",
        "bcache#",
        "sr#",
        "fd#",
        "ram#",
        "zram#",
        "pmem#",
        "pmem#s",
        "pmem#.#",
        "pmem#.#s",
        "mtdblock#",
        "ubiblock#_#",
        "nullb#",
        "block/#:#",         /* major:minor */
        "disk/by-diskseq/#", /* counted from the start of the machine */
        "disk/by-diskseq/#-part#",
};

/* Of the characters of a placeholder that are at the beginning of `text`; 0: none. */
static size_t span_of(char placeholder, const char *text)
{
        return strspn(text, placeholder == '#' ? "0123456789" : "abcdefghijklmnopqrstuvwxyz");
}

/* What follows the pattern in `text`, or NULL: it does not begin so. */
static const char *skip(const char *pattern, const char *text)
{
        for (; *pattern; pattern++) {
                bool placeholder = *pattern == '#' || *pattern == '@';
                size_t length = placeholder ? span_of(*pattern, text) : *text == *pattern;

                if (length == 0)
                        return NULL;
                text += length;
        }
        return text;
}

/* Whether `rest`, which follows a disk's name, is nothing or a partition's number. The kernel sets a 'p'
 * between two numbers. */
static bool is_partition(const char *rest)
{
        bool after_digit = rest[-1] >= '0' && rest[-1] <= '9';

        if (!*rest)
                return true;
        if (after_digit && *rest++ != 'p')
                return false;
        return *rest && rest[span_of('#', rest)] == '\0';
}

bool kernel_name_may_change(const char *path)
{
        static const char folder[] = "/dev/";

        if (strncmp(path, folder, sizeof(folder) - 1) != 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                const char *rest = skip(patterns[i], path + sizeof(folder) - 1);

                if (rest && is_partition(rest))
                        return true;
        }
        return false;
}
