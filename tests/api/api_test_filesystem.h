/* SPDX-License-Identifier: MIT */
/* A fake of what makes and mounts file systems, for api_config: it makes none, and shows file systems and mounts that are not
 * there. tests/kernel/test_made_filesystems.py has real ones. */
#pragma once

#include "ublkd/filesystems/filesystem_maker.h"

/* Show them in this store. */
void api_test_filesystem_use(struct device_store *store);
/* End as the label "filesystem" of the device says: "begin ERRNO" does not begin, "end VERDICT ERRNO" ends like that and
 * the program has printed two lines, "never" does not end; and without it, it is made. */
int api_test_make_filesystem(void *userdata, const struct device_record *record,
        const struct filesystem_wish *wish,
        void (*then)(void *userdata, const struct filesystem_answer *answer), void *then_userdata,
        struct filesystem_making **ret);
void api_test_abandon_filesystem(struct filesystem_making *making);
