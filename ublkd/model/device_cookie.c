/* SPDX-License-Identifier: MIT */
/* The cookie by which ublkd recognises its disks: from uid and epoch, and back. */
#include "ublkd/model/device_cookie.h"

enum { COOKIE_EPOCH_BITS = 16 };

/* Return the first 48 bits of the UUID, without the dashes. */
static uint64_t uid_bits(const char *uid)
{
        uint64_t bits = 0;

        for (unsigned digits = 0; *uid && digits < 12; uid++) {
                int digit = *uid >= '0' && *uid <= '9'   ? *uid - '0'
                            : *uid >= 'a' && *uid <= 'f' ? *uid - 'a' + 10
                                                         : -1;

                if (digit < 0)
                        continue;
                bits = bits << 4 | (unsigned)digit;
                digits++;
        }
        return bits;
}

uint64_t device_cookie(const char *uid, uint16_t epoch)
{
        return uid_bits(uid) << COOKIE_EPOCH_BITS | epoch;
}

bool device_cookie_matches(uint64_t cookie, const char *uid)
{
        return cookie >> COOKIE_EPOCH_BITS == uid_bits(uid);
}

uint16_t device_cookie_epoch(uint64_t cookie)
{
        return (uint16_t)cookie;
}
