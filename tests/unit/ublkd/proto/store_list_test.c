/* SPDX-License-Identifier: MIT */
/* The lists of stores in CONFIG and BACKING. */
#include "tests/unit/check.h"
#include "ublkd/proto/worker_msg.h"

#include <string.h>

static struct listed_store stores[STORE_LIST_MAX + 1];

static void fill(void)
{
        for (unsigned i = 0; i < ARRAY_SIZE(stores); i++) {
                stores[i] = (struct listed_store){
                        .identity = {.basis = BACKING_FILE_HANDLE, .is_disk = i % 2 != 0},
                        .has_fd = i % 3 == 0,
                        .in_this_boot = i % 2 == 0,
                        .was_served = i % 2 != 0,
                        .is_shared = i == 1,
                        .user = 1000 + i,
                        .claimed = i == 2,
                        .major = 8 + i,
                        .minor = i,
                        .inode = UINT64_C(1) << 60 | i,
                };
                snprintf(stores[i].identity.boot, BACKING_TOKEN_SIZE, "boot \"%u\"", i);
                snprintf(stores[i].identity.lasting, BACKING_TOKEN_SIZE, "lasting %u", i);
        }
}

static struct worker_msg config_of(unsigned count)
{
        return (struct worker_msg){
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "n",
                           .uid = (char *)(uintptr_t) "u",
                           .spec = (char *)(uintptr_t) "{}",
                           .queues = 1,
                           .queue_depth = 1,
                           .stores = {stores, count}}
        };
}

static struct worker_msg backing_of(unsigned count)
{
        return (struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)(uintptr_t) "",
                            .lasting = (char *)(uintptr_t) "",
                            .stores = {stores, count}}
        };
}

static bool pass_on(const struct worker_msg *msg, struct worker_msg *ret)
{
        _cleanup_free_ char *text = NULL;

        return CHECK_INT(worker_msg_encode(msg, &text), 0)
               && CHECK_INT(worker_msg_decode(text, strlen(text), ret), 0);
}

static void check_identity(const struct listed_store *got, unsigned number)
{
        CHECK(backing_identity_equal(&got->identity, &stores[number].identity));
        CHECK_INT(got->has_fd, stores[number].has_fd);
}

static void test_what_was_expected_arrives(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct worker_msg msg = config_of(STORE_LIST_MAX);

        if (!pass_on(&msg, &got) || !CHECK_INT(got.config.stores.count, STORE_LIST_MAX))
                return;
        for (unsigned i = 0; i < STORE_LIST_MAX; i++) {
                const struct listed_store *store = &got.config.stores.items[i];

                check_identity(store, i);
                CHECK_INT(store->in_this_boot, stores[i].in_this_boot);
                CHECK_INT(store->was_served, stores[i].was_served);
                CHECK_INT(store->is_shared, stores[i].is_shared);
                CHECK_INT(store->user, stores[i].user);
                CHECK_INT(store->inode, 0); /* of BACKING */
        }
        CHECK_INT(store_list_fds(&got.config.stores), (STORE_LIST_MAX + 2) / 3);
}

static void test_what_was_found_arrives(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct worker_msg msg = backing_of(3);

        if (!pass_on(&msg, &got) || !CHECK_INT(got.backing.stores.count, 3))
                return;
        for (unsigned i = 0; i < 3; i++) {
                const struct listed_store *store = &got.backing.stores.items[i];

                check_identity(store, i);
                CHECK_INT(store->claimed, stores[i].claimed);
                CHECK_INT(store->major, stores[i].major);
                CHECK_INT(store->minor, stores[i].minor);
                CHECK(store->inode == stores[i].inode);
                CHECK_INT(store->user, 0); /* of CONFIG */
        }
}

/* An older program reads what it always has. */
static void test_a_message_without_a_list_is_as_before(void)
{
        const struct worker_msg msgs[] = {config_of(0), backing_of(0)};

        for (size_t i = 0; i < ARRAY_SIZE(msgs); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_worker_msg_ struct worker_msg got = {};

                CHECK_INT(worker_msg_encode(&msgs[i], &text), 0);
                CHECK(!strstr(text, "stores"));
                CHECK_INT(worker_msg_decode(text, strlen(text), &got), 0);
                CHECK(!(i == 0 ? got.config.stores.items : got.backing.stores.items));
        }
}

/* Put another value in place of the list of a CONFIG. */
static int decode_with(const char *list)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct worker_msg msg = config_of(0);
        _cleanup_free_ char *text = NULL, *whole = NULL;
        int r;

        if (!CHECK_INT(worker_msg_encode(&msg, &text), 0))
                return -ENOTRECOVERABLE;
        text[strlen(text) - 1] = '\0';
        CHECK(asprintf(&whole, "%s,\"stores\":%s}", text, list) > 0);
        r = worker_msg_decode(whole, strlen(whole), &got);
        return r;
}

#define REST                                                                                                 \
        "\"fd\":false,\"inThisBoot\":true,\"served\":false,\"shared\":false,\"user\":0,\"basis\":1,"         \
        "\"isDisk\":false"

static void test_a_list_is_whole_or_no_message(void)
{
        static const struct {
                const char *list;
                int result;
        } cases[] = {
                {"[{\"boot\":\"b\",\"lasting\":\"l\"," REST "}]",              0       },
                {"[{\"boot\":\"b\",\"lasting\":\"l\"," REST ",\"new\":[1]}]",  0       }, /* of a newer program */
                {"[]",                                                         -EBADMSG},
                {"{}",                                                         -EBADMSG},
                {"null",                                                       -EBADMSG},
                {"[1]",                                                        -EBADMSG},
                {"[{\"lasting\":\"l\"," REST "}]",                             -EBADMSG},
                {"[{\"boot\":1,\"lasting\":\"l\"," REST "}]",                  -EBADMSG},
                {"[{\"boot\":\"b\",\"lasting\":\"l\"," REST "},{}]",           -EBADMSG},
                {"[{\"boot\":\"b\",\"lasting\":\"l\",\"basis\":99," REST "}]", -EBADMSG},
                {"[{\"boot\":\"b\",\"lasting\":\"l\",\"user\":-1," REST "}]",  -EBADMSG},
                {"[{\"boot\":\"b\",\"lasting\":\"l\",\"fd\":1," REST "}]",     -EBADMSG},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (!CHECK_INT(decode_with(cases[i].list), cases[i].result))
                        printf("%s\n", cases[i].list);
}

static void test_a_list_has_no_more_than_its_limit(void)
{
        struct worker_msg msg = config_of(STORE_LIST_MAX + 1), got;
        _cleanup_free_ char *text = NULL;

        CHECK_INT(worker_msg_encode(&msg, &text), 0);
        CHECK_INT(worker_msg_decode(text, strlen(text), &got), -EBADMSG);
}

static void test_a_token_that_is_too_long_is_refused(void)
{
        char list[2048], token[BACKING_TOKEN_SIZE + 1];

        for (unsigned length = BACKING_TOKEN_SIZE - 1; length <= BACKING_TOKEN_SIZE; length++) {
                memset(token, 'x', length);
                token[length] = '\0';
                snprintf(list, sizeof(list), "[{\"boot\":\"%s\",\"lasting\":\"\"," REST "}]", token);
                CHECK_INT(decode_with(list), length < BACKING_TOKEN_SIZE ? 0 : -EBADMSG);
        }
}

int main(void)
{
        fill();
        test_what_was_expected_arrives();
        test_what_was_found_arrives();
        test_a_message_without_a_list_is_as_before();
        test_a_list_is_whole_or_no_message();
        test_a_list_has_no_more_than_its_limit();
        test_a_token_that_is_too_long_is_refused();
        return check_report();
}
