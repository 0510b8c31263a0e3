/* SPDX-License-Identifier: MIT */
/* Which devices have metrics of their own. */
#include "api/metrics/metrics_shares.h"

#include <assert.h>
#include <stdlib.h>

struct share {
        uint32_t account;
        size_t devices, places;
};

struct metrics_shares {
        const struct policy *policy;
        size_t own_places; /* of the administrators */
        const struct device_record *last;
        struct share *last_share; /* of the tenant of `last` */
        size_t count;
        struct share of[]; /* sorted by account */
};

static uint32_t account_of(const struct metrics_shares *shares, const struct device_record *record)
{
        uid_t user = (uid_t)-1;

        return tenant_user(record->tenant, &user) ? policy_account_of(shares->policy, user) : user;
}

/* Names of one tenant begin alike, so that most of its devices follow each other: no search is needed for these. */
static bool is_of_last(const struct metrics_shares *shares, const struct device_record *record)
{
        return shares->last && tenant_is(record->tenant, shares->last->tenant);
}

static void count_device(struct metrics_shares *shares, const struct device_record *record)
{
        if (!is_of_last(shares, record))
                shares->of[shares->count++].account = account_of(shares, record);
        shares->of[shares->count - 1].devices++;
        shares->last = record;
}

static int by_account(const void *a, const void *b)
{
        uint32_t first = ((const struct share *)a)->account, second = ((const struct share *)b)->account;

        return first < second ? -1 : first > second;
}

/* Sort the shares, and make one of those of the same account. */
static void merge(struct metrics_shares *shares)
{
        size_t count = 0;

        qsort(shares->of, shares->count, sizeof(*shares->of), by_account);
        for (size_t i = 0; i < shares->count; i++)
                if (count > 0 && shares->of[count - 1].account == shares->of[i].account)
                        shares->of[count - 1].devices += shares->of[i].devices;
                else
                        shares->of[count++] = shares->of[i];
        shares->count = count;
        shares->last = NULL;
}

static void deal(struct metrics_shares *shares, size_t places)
{
        for (bool wanted = true; wanted && places > 0;) {
                wanted = false;
                for (size_t i = 0; i < shares->count && places > 0; i++)
                        if (shares->of[i].places < shares->of[i].devices) {
                                shares->of[i].places++;
                                places--;
                                wanted = true;
                        }
        }
}

int metrics_shares_new(const struct api *api, size_t places, struct metrics_shares **ret)
{
        const struct device_store *store = api->config.store;
        _cleanup_metrics_shares_ struct metrics_shares *shares =
                calloc(1, sizeof(*shares) + device_store_count(store) * sizeof(shares->of[0]));

        if (!shares)
                return -ENOMEM;
        shares->policy = api->config.rights.policy;
        DEVICE_STORE_FOREACH (record, store)
                if (tenant_is_set(record->tenant))
                        count_device(shares, record);
                else if (shares->own_places < places)
                        shares->own_places++;
        merge(shares);
        deal(shares, places - shares->own_places);
        *ret = TAKE_PTR(shares);
        return 0;
}

struct metrics_shares *metrics_shares_free(struct metrics_shares *shares)
{
        free(shares);
        return NULL;
}

static struct share *share_of(struct metrics_shares *shares, const struct device_record *record)
{
        struct share key;

        if (!is_of_last(shares, record)) {
                key.account = account_of(shares, record);
                shares->last_share = bsearch(&key, shares->of, shares->count, sizeof(key), by_account);
                assert(shares->last_share);
        }
        shares->last = record;
        return shares->last_share;
}

bool metrics_shares_take(struct metrics_shares *shares, const struct device_record *record)
{
        size_t *places =
                tenant_is_set(record->tenant) ? &share_of(shares, record)->places : &shares->own_places;

        if (*places == 0)
                return false;
        (*places)--;
        return true;
}
