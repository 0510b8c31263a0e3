/* SPDX-License-Identifier: MIT */
/* disk_partitions: what is shown becomes what is wanted, but for what is in use or of another disk. */
#include "tests/unit/ublkd/partitions/fake_disk.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

static bool leave[PARTITION_NUMBER_MAX + 1];
static struct partition_change result;

#define LIST(...)                                                                                            \
        (&(const struct partition_list){.items = {__VA_ARGS__},                                              \
                .count = sizeof((const struct partition[]){__VA_ARGS__}) / sizeof(struct partition)})
#define NONE (&(const struct partition_list){})

static const char *change(const struct partition_list *wanted)
{
        disk_partitions_change(&fake_disk_roots, 0, NULL, wanted, leave, &result);
        CHECK_INT(result.error, 0);
        return fake_disk_shown(0);
}

static void test_changes(void)
{
        CHECK_STR(change(LIST({1, 8, 8}, {2, 16, 8})), "1@8+8 2@16+8");
        CHECK_INT(result.changed, 2);
        CHECK_STR(change(LIST({1, 8, 8}, {2, 16, 8})), "1@8+8 2@16+8");
        CHECK_INT(result.changed, 0);
        CHECK_STR(change(LIST({2, 16, 24}, {200, 8, 8})), "2@16+24 200@8+8");
        CHECK_INT(result.changed, 3);
        CHECK_INT(result.refused, 0);
}

static void test_a_partition_in_use(void)
{
        fake_disk_use(2);
        /* It would shrink: it is not added a second time either, and the others are changed. */
        CHECK_STR(change(LIST({2, 16, 8}, {3, 64, 8})), "2@16+24 3@64+8");
        CHECK_INT(result.changed, 2);
        CHECK_INT(result.refused, 2);
        CHECK_INT(result.number, 2);
        CHECK_INT(result.refusal, -EBUSY);
        CHECK_STR(change(LIST({2, 16, 32}, {3, 64, 8})), "2@16+32 3@64+8"); /* to grow is harmless */
        CHECK_INT(result.refused, 0);
        fake_disk_use(0);
        leave[3] = true;
        CHECK_STR(change(NONE), "3@64+8");
        leave[3] = false;
        CHECK_STR(change(NONE), "");
}

/* The disk that the table was read from is gone, and another one has its number; or it has another size. */
static void test_another_disk(void)
{
        struct partition_header header;
        int fd = disk_partitions_open(&fake_disk_roots, 0, &header);

        CHECK(fd >= 0);
        close_fd(fd);
        CHECK_INT(header.sectors, 65536);
        disk_partitions_change(&fake_disk_roots, 0, &header, LIST({1, 8, 8}), leave, &result);
        CHECK_INT(result.error, 0);
        CHECK_INT(result.changed, 1);
        header.disk_sequence++;
        disk_partitions_change(&fake_disk_roots, 0, &header, NONE, leave, &result);
        CHECK_INT(result.error, -ESTALE);
        header.disk_sequence--;
        fake_disk_resize(0, 65528);
        disk_partitions_change(&fake_disk_roots, 0, &header, NONE, leave, &result);
        CHECK_INT(result.error, -ESTALE);
        CHECK_STR(fake_disk_shown(0), "1@8+8");
        disk_partitions_change(&fake_disk_roots, 7, NULL, NONE, leave, &result);
        CHECK_INT(result.error, -ENOENT);
}

int main(void)
{
        fake_disk_begin();
        fake_disk_add(0, NULL);
        test_changes();
        test_a_partition_in_use();
        test_another_disk();
        fake_disk_end();
        return check_report();
}
