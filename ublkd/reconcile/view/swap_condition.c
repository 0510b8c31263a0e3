/* SPDX-License-Identifier: MIT */
/* Reports swap on a disk whose data path needs memory for each page that is written. */
#include "ublkd/reconcile/view/swap_condition.h"

int swap_condition(int number, bool holds_swap, enum data_path path, struct device_condition *ret)
{
        if (!holds_swap || path == DATA_PATH_ZERO_COPY)
                return 0;
        return device_condition_set(ret, CONDITION_FALSE, REASON_SWAP_NEEDS_MEMORY,
                "/dev/ublkb%d holds swap, and its data path \"%s\" needs memory to write a page: the machine "
                "can hang when its memory is exhausted. Add swap on a disk that no process serves. Then end "
                "this swap (swapoff), while there is memory for all that is in it.",
                number, data_path_to_string(path));
}
