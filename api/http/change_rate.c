/* SPDX-License-Identifier: MIT */
/* How often the tenants change devices. */
#include "api/http/change_rate.h"

#include "ublkd/base/clock.h"

/* Return the place of the account; else one of an account whose bucket is full, a new one, or that of the fullest bucket. */
static size_t place_of(const struct change_rate *rate, uint32_t account, uint64_t now)
{
        size_t fullest = 0;

        for (size_t i = 0; i < rate->used; i++) {
                if (rate->of[i].account == account)
                        return i;
                if (rate->of[i].full_at < rate->of[fullest].full_at)
                        fullest = i;
        }
        if (rate->used < CHANGE_RATE_ACCOUNTS && (rate->used == 0 || rate->of[fullest].full_at > now))
                return rate->used;
        return fullest;
}

/* The generic cell rate algorithm (ITU-T I.371): a bucket is known by the moment when it is full again. */
uint64_t change_rate_take(struct change_rate *rate, uint32_t account, unsigned per_minute, uint64_t now)
{
        uint64_t one = 60 * USEC_PER_SEC / per_minute, all = one * per_minute;
        size_t place = place_of(rate, account, now);
        uint64_t full_at = now;

        if (place < rate->used && rate->of[place].account == account && rate->of[place].full_at > now)
                full_at = rate->of[place].full_at;
        if (full_at + one > now + all)
                return full_at + one - now - all;
        rate->of[place].account = account;
        rate->of[place].full_at = full_at + one;
        if (place == rate->used)
                rate->used++;
        return 0;
}
