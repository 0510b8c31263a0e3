/* SPDX-License-Identifier: MIT */
/* Messages between supervisor and worker: what is written can be read, and nothing else can. */
#include "ublkd/proto/worker_msg.h"

#include "tests/unit/check.h"

#include <cjson/cJSON.h>
#include <sys/socket.h>

static struct backing_claim sample_claims[] = {
        {.key = (char *)"file:8:1:4711",
         .start = UINT64_C(9007199254740993),
         .end = UINT64_MAX,
         .writes = true                                                      },
        {.key = (char *)"disk:8:16",     .start = 1, .end = 2, .mapped = true},
};
static const struct disk_params sample_params = {
        .size = UINT64_C(9223372036854775808), /* 2^63: a double would do; the claim below it would not */
        .logical_block_size = 4096,
        .physical_block_size = 8192,
        .io_min = 8192,
        .io_opt = 1 << 20,
        .max_io_size = UINT32_MAX,
        .discard_granularity = 4096,
        .max_discard_size = 1 << 30,
        .max_write_zeroes_size = 1 << 29,
        .read_only = true,
        .volatile_cache = true,
        .fua = true,
        .queues = 4,
        .queue_depth = 128,
        .claims = {sample_claims, ARRAY_SIZE(sample_claims)},
};

/* Through text and back. */
/* What was read says the same as what was written. */
static void round_trip(const struct worker_msg *msg, struct worker_msg *ret)
{
        _cleanup_free_ char *text = NULL, *again = NULL;

        CHECK_INT(worker_msg_encode(msg, &text), 0);
        CHECK_INT(worker_msg_decode(text, strlen(text), ret), 0);
        CHECK_INT(ret->type, msg->type);
        CHECK_INT(worker_msg_encode(ret, &again), 0);
        CHECK_STR(again, text);
}

static void test_config(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config =
                        {
                                 .name = (char *)"data",
                                 .uid = (char *)"0b7a1c9e-0000-4000-8000-1234567890ab",
                                 .epoch = 65535,
                                 .spec = (char *)"{\"name\":\"data\",\"labels\":{\"\xc3\xa4\":\"\\\"\\n\"}}",
                                 .queues = 64,
                                 .queue_depth = 4096,
                                 .max_io_size = 32 << 20,
                                 .reissue = true,
                                 },
        };

        round_trip(&msg, &got);
        CHECK_STR(got.config.name, msg.config.name);
        CHECK_STR(got.config.uid, msg.config.uid);
        CHECK_STR(got.config.spec, msg.config.spec);
        CHECK_INT(got.config.epoch, 65535);
        CHECK_INT(got.config.queues, 64);
        CHECK_INT(got.config.queue_depth, 4096);
        CHECK_INT(got.config.max_io_size, 32 << 20);
        CHECK(got.config.reissue);
}

static void test_hello(void)
{
        for (int stage = 0; stage < _WORKER_STAGE_MAX; stage++) {
                _cleanup_worker_msg_ struct worker_msg got = {};
                struct worker_msg msg = {
                        .type = WORKER_MSG_HELLO,
                        .hello =
                                {
                                        .protocol = WORKER_PROTOCOL,
                                        .uid = (char *)"u",
                                        .version = (char *)"0.1.0",
                                        .epoch = 7,
                                        .pid = 4711,
                                        .number = -1,
                                        .stage = (enum worker_stage)stage,
                                        .leaves = stage > 0,
                                        },
                };

                round_trip(&msg, &got);
                CHECK_INT(got.hello.protocol, WORKER_PROTOCOL);
                CHECK_STR(got.hello.uid, "u");
                CHECK_STR(got.hello.version, "0.1.0");
                CHECK_INT(got.hello.epoch, 7);
                CHECK_INT(got.hello.pid, 4711);
                CHECK_INT(got.hello.number, -1);
                CHECK_INT(got.hello.stage, stage);
                CHECK(got.hello.leaves == (stage > 0) && !got.hello.acts);
        }
}

static void test_params(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};

        round_trip(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = sample_params}, &got);
        CHECK(backing_claims_equal(&got.params.claims, &sample_params.claims));
        CHECK_INT(got.params.sharing.count, 0);
}

static void test_params_without_claims(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct disk_params params = sample_params;

        params.claims = (struct backing_claims){};
        round_trip(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = params}, &got);
        CHECK_INT(got.params.claims.count, 0);
}

static void test_stable_path(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {}, none = {};
        struct disk_params params = sample_params;

        round_trip(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = params}, &none);
        CHECK(!none.params.path_may_change && !none.params.stable_path);
        params.path_may_change = true;
        params.stable_path = (char *)"/dev/disk/by-id/wwn-1";
        round_trip(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = params}, &got);
        CHECK(got.params.path_may_change);
        CHECK_STR(got.params.stable_path, "/dev/disk/by-id/wwn-1");
}

static void test_sharing(void)
{
        _cleanup_problems_ struct problem_list sharing = {};
        _cleanup_worker_msg_ struct worker_msg got = {};
        struct disk_params params = sample_params;

        CHECK_INT(problem_add(&sharing, EBUSY, "/target/path", "BackingInUse", "It backs /dev/loop0."), 0);
        params.sharing = sharing;
        round_trip(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = params}, &got);
        CHECK_INT(got.params.sharing.count, 1);
        CHECK_INT(got.params.sharing.items[0].error, EBUSY);
        CHECK_STR(got.params.sharing.items[0].detail, "It backs /dev/loop0.");
}

/* The text of PARAMS, without the field of that name. The caller's to free. */
static char *params_without(const char *name)
{
        _cleanup_free_ char *text = NULL;
        char *less;
        cJSON *object;

        CHECK_INT(worker_msg_encode(
                          &(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = sample_params}, &text),
                0);
        object = cJSON_Parse(text);
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        less = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        return less;
}

/* An older worker names the store that its spec names, and none below it. */
static void test_params_of_an_older_worker(void)
{
        _cleanup_free_ char *text = params_without("claims");
        _cleanup_worker_msg_ struct worker_msg got = {};

        CHECK_INT(worker_msg_decode(text, strlen(text), &got), 0);
        CHECK(backing_claims_equal(&got.params.claims, &(struct backing_claims){sample_claims, 1}));
}

/* An older supervisor reads the four fields of the first claim, and insists on three of them. */
static void test_params_for_an_older_supervisor(void)
{
        _cleanup_free_ char *text = params_without("claims");

        CHECK(!strstr(text, "mapped"));
        CHECK(strstr(text, "\"claimKey\":\"file:8:1:4711\""));
        CHECK(strstr(text, "\"claimStart\":\"9007199254740993\""));
        CHECK(strstr(text, "\"claimEnd\":\"18446744073709551615\""));
        CHECK(strstr(text, "\"claimWrites\":true"));
}

static void test_failed(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        _cleanup_problems_ struct problem_list problems = {};

        CHECK_INT(problem_add(&problems, ENOENT, "/target/path", "BackingFileMissing",
                          "There is no %%s in \"%s\"", "x"),
                0);
        CHECK_INT(problem_add(&problems, 0, "", "Odd", "second"), 0);
        round_trip(
                &(struct worker_msg){
                        .type = WORKER_MSG_FAILED, .failed = {problems, 47}
        },
                &got);
        CHECK_INT(got.failed.problems.count, 2);
        CHECK_INT(got.failed.problems.items[0].error, ENOENT);
        CHECK_STR(got.failed.problems.items[0].pointer, "/target/path");
        CHECK_STR(got.failed.problems.items[0].reason, "BackingFileMissing");
        CHECK_STR(got.failed.problems.items[0].detail, "There is no %s in \"x\"");
        CHECK_STR(got.failed.problems.items[1].detail, "second");
        CHECK_INT(got.failed.holder, 47);
}

static void test_plain(void)
{
        static const enum worker_msg_type plain[] = {WORKER_MSG_LIVE, WORKER_MSG_READY, WORKER_MSG_NEWS};
        _cleanup_worker_msg_ struct worker_msg go = {};

        for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
                _cleanup_worker_msg_ struct worker_msg got = {};

                round_trip(&(struct worker_msg){.type = plain[i]}, &got);
        }
        round_trip(
                &(struct worker_msg){
                        .type = WORKER_MSG_GO,
                        .go = {.number = 1048575,
                               .route = {DATA_PATH_ZERO_COPY, true, true},
                               .queue_cpus = (char *)"0-1;2,5",
                               .user = UINT32_MAX - 1}
        },
                &go);
        CHECK_INT(go.go.number, 1048575);
        CHECK_INT(go.go.route.path, DATA_PATH_ZERO_COPY);
        CHECK_STR(go.go.queue_cpus, "0-1;2,5");
        CHECK_INT(go.go.user, UINT32_MAX - 1);
        CHECK(go.go.route.auto_buffers && go.go.route.batch);
}

static void test_growth(void)
{
        _cleanup_worker_msg_ struct worker_msg grow = {}, grown = {};
        _cleanup_problems_ struct problem_list problems = {};

        round_trip(&(struct worker_msg){.type = WORKER_MSG_GROW, .grow = {.size = UINT64_MAX}}, &grow);
        CHECK(grow.grow.size == UINT64_MAX);
        CHECK_INT(problem_add(&problems, ENOSPC, "/size", "BackingTooSmall", "Too small."), 0);
        round_trip(
                &(struct worker_msg){
                        .type = WORKER_MSG_GROWN,
                        .grown = {.size = 4096, .size_max = 8192, .problems = problems}
        },
                &grown);
        CHECK_INT(grown.grown.size, 4096);
        CHECK_INT(grown.grown.size_max, 8192);
        CHECK_INT(grown.grown.problems.count, 1);
}

static void test_action(void)
{
        _cleanup_worker_msg_ struct worker_msg action = {};
        char verb[] = "scrub", arguments[] = "{\"rate\":\"1MiB\"}";

        round_trip(
                &(struct worker_msg){
                        .type = WORKER_MSG_ACTION,
                        .action = {.id = UINT64_MAX, .verb = verb, .arguments = arguments}
        },
                &action);
        CHECK(action.action.id == UINT64_MAX);
        CHECK_STR(action.action.verb, verb);
        CHECK_STR(action.action.arguments, arguments);
}

static void test_leave(void)
{
        _cleanup_worker_msg_ struct worker_msg leave = {};

        round_trip(&(struct worker_msg){.type = WORKER_MSG_LEAVE}, &leave);
}

static int decode(const char *text)
{
        _cleanup_worker_msg_ struct worker_msg got = {};

        return worker_msg_decode(text, strlen(text), &got);
}

static void test_unknown_fields_are_skipped(void)
{
        CHECK_INT(decode("{\"type\":\"go\",\"number\":0,\"colour\":[1,{\"a\":null}]}"), 0);
        CHECK_INT(decode("{\"future\":1,\"type\":\"ready\"}"), 0);
}

static void test_nonsense_is_refused(void)
{
        static const char *const nonsense[] = {
                "",
                " ",
                "null",
                "[]",
                "\"go\"",
                "{",
                "{}",
                "{\"type\":7}",
                "{\"type\":\"\"}",
                "{\"type\":\"dance\"}",
                "{\"type\":\"GO\",\"number\":1}",
                "{\"type\":\"go\"}",
                "{\"type\":\"go\",\"number\":1}x",
                "{\"type\":\"go\",\"number\":1}{}",
                "{\"type\":\"go\",\"number\":-1}",
                "{\"type\":\"go\",\"number\":1048576}",
                "{\"type\":\"go\",\"number\":1.5}",
                "{\"type\":\"go\",\"number\":1e300}",
                "{\"type\":\"go\",\"number\":1e999}",
                "{\"type\":\"go\",\"number\":-1e999}",
                "{\"type\":\"go\",\"number\":\"1\"}",
                "{\"type\":\"go\",\"number\":null}",
                "{\"type\":\"go\",\"number\":[1]}",
                "{\"type\":\"failed\"}",
                "{\"type\":\"failed\",\"problems\":{}}",
                "{\"type\":\"failed\",\"problems\":[1]}",
                "{\"type\":\"failed\",\"problems\":[{}]}",
                "{\"type\":\"failed\",\"problems\":[{\"error\":1,\"pointer\":\"\",\"reason\":\"X\"}]}",
                ("{\"type\":\"failed\",\"problems\":[{\"error\":-1,\"pointer\":\"\",\"reason\":\"X\","
                 "\"detail\":\"\"}]}"),
                "{\"type\":\"failed\",\"problems\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}",
                "{\"type\":\"go\",\"number\":1,\"x\":\"\xff\"}",
                "{\"type\":\"go\",\"number\":1,\"x\":\"\xc0\x80\"}",
                "{\"type\":\"go\",\"number\":1,\"x\":\"\xed\xa0\x80\"}",
                "{\"type\":\"go\",\"number\":1,\"x\":\"\xf4\x90\x80\x80\"}",
                "{\"type\":\"go\",\"number\":1,\"x\":\"\xe2\x82\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++)
                if (!CHECK_INT(decode(nonsense[i]), -EBADMSG))
                        fprintf(stderr, "  text: %s\n", nonsense[i]);
}

static bool may_be_empty(const char *name)
{
        return strcmp(name, "problems") == 0 || strcmp(name, "sharing") == 0;
}

/* Every field of every type: missing, and of every wrong kind. */
static void break_fields(const struct worker_msg *msg)
{
        static const char *const wrong[] = {"[]", "{}", "null", "-2", "1.5", "1e30", "\"\"", "\"-1\"",
                "\"1x\"", "\"18446744073709551616\"", "true"};
        _cleanup_free_ char *text = NULL;
        cJSON *object;

        CHECK_INT(worker_msg_encode(msg, &text), 0);
        object = cJSON_Parse(text);
        for (int field = 1; field < cJSON_GetArraySize(object); field++) {
                const char *name = cJSON_GetArrayItem(object, field)->string;

                for (size_t i = 0; i <= ARRAY_SIZE(wrong); i++) {
                        cJSON *broken = cJSON_Duplicate(object, true);
                        _cleanup_worker_msg_ struct worker_msg got = {};
                        char *printed;
                        int r;

                        if (i == ARRAY_SIZE(wrong))
                                cJSON_DeleteItemFromObjectCaseSensitive(broken, name);
                        else
                                cJSON_ReplaceItemInObjectCaseSensitive(broken, name, cJSON_Parse(wrong[i]));
                        printed = cJSON_PrintUnformatted(broken);
                        r = worker_msg_decode(printed, strlen(printed), &got);
                        CHECK(r == 0 || r == -EBADMSG); /* some of the wrong are right for some */
                        if (i < 3)
                                CHECK_INT(r, i == 0 && may_be_empty(name) ? 0 : -EBADMSG);
                        free(printed);
                        cJSON_Delete(broken);
                }
        }
        cJSON_Delete(object);
}

static void test_broken_fields(void)
{
        break_fields(&(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = sample_params});
        break_fields(&(struct worker_msg){.type = WORKER_MSG_GO, .go = {.number = 3}});
        break_fields(&(struct worker_msg){.type = WORKER_MSG_FAILED});
        break_fields(&(struct worker_msg){
                .type = WORKER_MSG_HELLO,
                .hello = {
                          .protocol = 1, .uid = (char *)"u", .version = (char *)"v", .pid = 1, .number = -1}
        });
        break_fields(&(struct worker_msg){
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)"n",
                           .uid = (char *)"u",
                           .spec = (char *)"{}",
                           .queues = 1,
                           .queue_depth = 1}
        });
}

/* Every prefix and every single changed byte of a real message: an answer, and no crash. */
static void test_mutations(void)
{
        static const unsigned char bytes[] = {
                0, '"', '\\', '{', '}', '[', ']', ',', ':', '9', '-', 'e', 0x80, 0xff};
        _cleanup_free_ char *text = NULL;
        size_t size;

        CHECK_INT(worker_msg_encode(
                          &(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = sample_params}, &text),
                0);
        size = strlen(text);
        for (size_t i = 0; i < size; i++) {
                _cleanup_worker_msg_ struct worker_msg prefix = {};

                CHECK_INT(worker_msg_decode(text, i, &prefix), -EBADMSG);
                for (size_t k = 0; k < ARRAY_SIZE(bytes); k++) {
                        _cleanup_worker_msg_ struct worker_msg got = {};
                        char saved = text[i];
                        int r;

                        text[i] = (char)bytes[k];
                        r = worker_msg_decode(text, size, &got);
                        CHECK(r == 0 || r == -EBADMSG);
                        text[i] = saved;
                }
        }
}

static void test_too_many_problems(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        char text[16 * 1024];
        size_t used = (size_t)snprintf(text, sizeof(text), "{\"type\":\"failed\",\"problems\":[");

        for (unsigned i = 0; i < 100; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                        "%s{\"error\":1,\"pointer\":\"\",\"reason\":\"R\",\"detail\":\"%u\"}", i ? "," : "",
                        i);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "]}");
        CHECK_INT(worker_msg_decode(text, used, &got), 0);
        CHECK_INT(got.failed.problems.count, PROBLEM_LIST_MAX);
        CHECK_INT(got.failed.problems.dropped, 100 - PROBLEM_LIST_MAX);
}

static void test_socket(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {}, second = {};
        _cleanup_free_ char *spec = malloc(WORKER_MSG_SIZE_MAX), *big = calloc(1, WORKER_MSG_SIZE_MAX + 1);
        struct worker_msg config = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)"n",
                           .uid = (char *)"u",
                           .spec = spec,
                           .queues = 1,
                           .queue_depth = 1}
        };
        int pair[2];

        memset(spec, 'x', WORKER_MSG_SIZE_MAX);
        spec[WORKER_MSG_SIZE_MAX - 1] = '\0';
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        CHECK_INT(worker_msg_receive(pair[0], &got), -EAGAIN);
        CHECK_INT(worker_msg_send(pair[1], &config), -EMSGSIZE);
        spec[WORKER_MSG_SIZE_MAX - 400] = '\0';
        CHECK_INT(worker_msg_send(pair[1], &config), 0); /* the largest fits a socket as it comes */
        CHECK_INT(worker_msg_receive(pair[0], &got), 1);
        CHECK_STR(got.config.spec, spec);
        CHECK_INT(send(pair[1], big, WORKER_MSG_SIZE_MAX + 1, 0), WORKER_MSG_SIZE_MAX + 1);
        CHECK_INT(worker_msg_send(pair[1], &(struct worker_msg){.type = WORKER_MSG_READY}), 0);
        CHECK_INT(worker_msg_receive(pair[0], &second), -EBADMSG);
        CHECK_INT(worker_msg_receive(pair[0], &second), 1); /* what was too long is gone */
        CHECK_INT(second.type, WORKER_MSG_READY);
        close(pair[1]);
        CHECK_INT(worker_msg_receive(pair[0], &second), 0);
        CHECK_INT(worker_msg_send(pair[0], &(struct worker_msg){.type = WORKER_MSG_LIVE}), -EPIPE);
        close(pair[0]);
}

/* Messages of a worker arrive even if it dies with unread messages. */
static void test_last_words_survive_unread_mail(void)
{
        _cleanup_worker_msg_ struct worker_msg got = {};
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        CHECK_INT(worker_msg_send(pair[0], &(struct worker_msg){.type = WORKER_MSG_LIVE}), 0);
        CHECK_INT(worker_msg_send(pair[1], &(struct worker_msg){.type = WORKER_MSG_READY}), 0);
        close(pair[1]);
        CHECK_INT(worker_msg_receive(pair[0], &got), 1);
        CHECK_INT(got.type, WORKER_MSG_READY);
        CHECK_INT(worker_msg_receive(pair[0], &got), 0);
        close(pair[0]);
}

static void test_peer_that_does_not_read(void)
{
        int pair[2], r;
        unsigned sent = 0;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        while ((r = worker_msg_send(pair[0], &(struct worker_msg){.type = WORKER_MSG_LIVE})) == 0
                && sent < 1000000)
                sent++;
        CHECK_INT(r, -EAGAIN);
        close(pair[0]);
        close(pair[1]);
}

static void test_stage_names(void)
{
        CHECK_STR(worker_stage_to_string(WORKER_STAGE_SERVING), "serving");
        CHECK_STR(worker_stage_to_string((enum worker_stage)99), "unknown");
}

int main(void)
{
        test_config();
        test_hello();
        test_params();
        test_params_without_claims();
        test_stable_path();
        test_sharing();
        test_params_of_an_older_worker();
        test_params_for_an_older_supervisor();
        test_failed();
        test_plain();
        test_growth();
        test_action();
        test_leave();
        test_unknown_fields_are_skipped();
        test_nonsense_is_refused();
        test_broken_fields();
        test_mutations();
        test_too_many_problems();
        test_socket();
        test_last_words_survive_unread_mail();
        test_peer_that_does_not_read();
        test_stage_names();
        return check_report();
}
