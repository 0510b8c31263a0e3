/* SPDX-License-Identifier: MIT */
/* How large the messages of a worker are at most: the largest that it can have to send is accepted. */
#include "ublkd/proto/worker_msg.h"

#include "tests/unit/check.h"

#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>

/* The worst text: each byte of it is escaped. Freed by the caller. */
static char *long_text(size_t size, char byte)
{
        char *text = malloc(size + 1);

        memset(text, byte, size);
        text[size] = '\0';
        return text;
}

static size_t encoded_size(const struct worker_msg *msg)
{
        _cleanup_free_ char *text = NULL;

        CHECK_INT(worker_msg_encode(msg, &text), 0);
        CHECK(strlen(text) <= worker_msg_size_max(msg->type));
        return strlen(text);
}

/* As many problems as a list takes, with texts as long as two paths. */
static void add_long_problems(struct problem_list *problems, char byte)
{
        _cleanup_free_ char *detail = long_text(8192, byte);

        for (unsigned i = 0; i < PROBLEM_LIST_MAX; i++)
                CHECK_INT(problem_add(problems, EBUSY, "/target/path", "BackingInUse", "%s", detail), 0);
}

/* A deep stack below a file that many others use, with the longest keys and texts: what a worker sends is never too
 * large for the supervisor. */
static void test_the_largest_params_can_be_sent(void)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_PARAMS};
        _cleanup_worker_msg_ struct worker_msg got = {};
        _cleanup_free_ char *text = NULL;

        memset(&msg.params, 0xff, offsetof(struct disk_params, claims)); /* the largest numbers */
        msg.params.read_only = msg.params.rotational = msg.params.volatile_cache = msg.params.fua = false;
        msg.params.stable_path = long_text(WORKER_STABLE_PATH_MAX, '\\');
        for (unsigned i = 0; i < BACKING_CLAIMS_MAX; i++) {
                _cleanup_free_ char *key = long_text(BACKING_KEY_MAX, '"');

                key[0] = (char)('0' + i); /* each is another one */
                CHECK_INT(backing_claims_add(&msg.params.claims,
                                  &(struct backing_claim){key, UINT64_MAX - 1, UINT64_MAX, true, false}),
                        0);
        }
        msg.params.size_max = UINT64_MAX;
        add_long_problems(&msg.params.sharing, '\n');
        printf("the largest PARAMS: %zu bytes\n", encoded_size(&msg));
        CHECK_INT(worker_msg_encode(&msg, &text), 0);
        if (CHECK_INT(worker_msg_decode(text, strlen(text), &got), 0)) {
                CHECK_INT(got.params.claims.count, BACKING_CLAIMS_MAX);
                CHECK(got.params.sharing.count >= 1);
        }
}

static void check_the_largest_list(const char *token)
{
        struct listed_store stores[STORE_LIST_MAX];
        struct listed_store store = {
                .has_fd = true, .major = UINT32_MAX, .minor = UINT32_MAX, .inode = UINT64_MAX};

        memcpy(store.identity.boot, token, BACKING_TOKEN_SIZE);
        memcpy(store.identity.lasting, token, BACKING_TOKEN_SIZE);
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                stores[i] = store;
        (void)encoded_size(&(struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)(uintptr_t) "",
                            .lasting = (char *)(uintptr_t) "",
                            .stores = {stores, STORE_LIST_MAX}}
        });
}

static void test_the_largest_of_the_others_can_be_sent(void)
{
        struct worker_msg failed = {.type = WORKER_MSG_FAILED, .failed.holder = INT_MAX};
        struct worker_msg grown = {
                .type = WORKER_MSG_GROWN, .grown = {.size = UINT64_MAX, .size_max = UINT64_MAX}
        };
        struct worker_msg notice = {.type = WORKER_MSG_NOTICE};
        _cleanup_free_ char *uid = long_text(64, '\n'), *version = long_text(128, '\n'),
                            *token = long_text(BACKING_TOKEN_SIZE - 1, '\n');

        add_long_problems(&failed.failed.problems, '"');
        add_long_problems(&grown.grown.problems, 'x');
        add_long_problems(&notice.notice, '\n');
        (void)encoded_size(&failed);
        (void)encoded_size(&grown);
        (void)encoded_size(&notice);
        (void)encoded_size(&(struct worker_msg){
                .type = WORKER_MSG_HELLO,
                .hello = {.protocol = INT_MAX,
                          .uid = uid,
                          .version = version,
                          .epoch = UINT16_MAX,
                          .restart = UINT32_MAX,
                          .started_at = UINT64_MAX,
                          .pid = INT_MAX,
                          .number = -1,
                          .stage = WORKER_STAGE_FETCHING}
        });
        (void)encoded_size(&(struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = token,
                            .lasting = token,
                            .major = UINT32_MAX,
                            .minor = UINT32_MAX,
                            .inode = UINT64_MAX}
        });
        check_the_largest_list(token);
        worker_msg_clear(&failed);
        worker_msg_clear(&grown);
        worker_msg_clear(&notice);
}

/* What does not fit is cut off at a character, and the first of the problems stays. */
static void test_problems_that_are_too_long_are_cut_off(void)
{
        struct worker_msg msg = {.type = WORKER_MSG_FAILED};
        _cleanup_worker_msg_ struct worker_msg got = {};
        _cleanup_free_ char *detail = malloc(60001), *text = NULL;

        for (unsigned i = 0; i < 60000; i += 3)
                memcpy(detail + i, "\xe2\x82\xac", 3);
        detail[60000] = '\0';
        CHECK_INT(problem_add(&msg.failed.problems, EIO, "", "BackingUnreadable", "%s", detail), 0);
        CHECK_INT(problem_add(&msg.failed.problems, EIO, "", "BackingUnreadable", "another"), 0);
        CHECK_INT(worker_msg_encode(&msg, &text), 0);
        if (CHECK_INT(worker_msg_decode(text, strlen(text), &got), 0)
                && CHECK_INT(got.failed.problems.count, 1)) {
                size_t length = strlen(got.failed.problems.items[0].detail);

                CHECK(length > 16 * 1024 && length % 3 == 0);
                CHECK(strncmp(got.failed.problems.items[0].detail, detail, length) == 0);
        }
        worker_msg_clear(&msg);
}

/* The supervisor reads less from a worker than it sends to one. */
static void test_a_report_is_bounded(void)
{
        _cleanup_free_ char *big = long_text(WORKER_REPORT_SIZE_MAX + 1, ' ');
        _cleanup_worker_msg_ struct worker_msg got = {};
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1}, pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        CHECK_INT(send(pair[1], big, WORKER_REPORT_SIZE_MAX + 1, 0), WORKER_REPORT_SIZE_MAX + 1);
        CHECK_INT(worker_msg_send(pair[1], &(struct worker_msg){.type = WORKER_MSG_NEWS}), 0);
        CHECK_INT(worker_report_receive(pair[0], &got, NULL, 0), -EBADMSG);
        CHECK_INT(worker_report_receive(pair[0], &got, fds, _CONFIG_FD_MAX), 1);
        CHECK_INT(got.type, WORKER_MSG_NEWS);
        close(pair[0]);
        close(pair[1]);
        CHECK_INT(worker_msg_decode("{\"type\":\"ready\"}", 16, &got), 0);
        memcpy(big, "{\"type\":\"ready\"", 15);
        big[WORKER_SHORT_SIZE_MAX - 1] = '}';
        CHECK_INT(worker_msg_decode(big, WORKER_SHORT_SIZE_MAX, &got), 0);
        big[WORKER_SHORT_SIZE_MAX - 1] = ' ';
        big[WORKER_SHORT_SIZE_MAX] = '}';
        CHECK_INT(worker_msg_decode(big, WORKER_SHORT_SIZE_MAX + 1, &got), -EBADMSG);
}

int main(void)
{
        test_the_largest_params_can_be_sent();
        test_the_largest_of_the_others_can_be_sent();
        test_problems_that_are_too_long_are_cut_off();
        test_a_report_is_bounded();
        return check_report();
}
