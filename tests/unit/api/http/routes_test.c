/* SPDX-License-Identifier: MIT */
/* routes, percent-encoding, the token: what needs no socket. */
#include "api/http/access.h"
#include "api/http/respond.h"
#include "api/route_table.h"

#include "tests/unit/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_percent_decoding(void)
{
        static const struct {
                const char *text;
                int result;
                const char *decoded;
        } cases[] = {
                {"data",      0,        "data"   },
                {"",          0,        ""       },
                {"a%2Fb%2f",  0,        "a/b/"   },
                {"%41%7a",    0,        "Az"     },
                {"%",         -EINVAL,  NULL     },
                {"%4",        -EINVAL,  NULL     },
                {"%4g",       -EINVAL,  NULL     },
                {"%g4",       -EINVAL,  NULL     },
                {"a%00b",     -EINVAL,  NULL     },
                {"12345678",  -ENOBUFS, NULL     },
                {"%25%32%35", 0,        "%25"    },
                {"1234567",   0,        "1234567"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char decoded[8] = "";

                CHECK_INT(percent_decode(cases[i].text, strlen(cases[i].text), decoded, sizeof(decoded)),
                        cases[i].result);
                if (cases[i].decoded)
                        CHECK_STR(decoded, cases[i].decoded);
        }
}

static void test_routes(void)
{
        static const struct {
                enum method method;
                const char *path;
                int result;
                const char *name, *allow;
        } cases[] = {
                {METHOD_GET,      "/devices",                    0,       "",             ""                                      },
                {METHOD_GET,      "/devices/data",               0,       "data",         ""                                      },
                {METHOD_GET,      "/devices/a%2Fb",              0,       "a/b",          ""                                      },
                {METHOD_GET,      "/devices/a/b",                -ENOENT, NULL,           ""                                      },
                {METHOD_GET,      "/devices/",                   -ENOENT, NULL,           ""                                      },
                {METHOD_GET,      "/devicesdata",                -ENOENT, NULL,           ""                                      },
                {METHOD_GET,      "devices",                     -ENOENT, NULL,           ""                                      },
                {METHOD_GET,      "",                            -ENOENT, NULL,           ""                                      },
                {METHOD_POST,     "/devices/data/recover",       0,       "data",         ""                                      },
                {METHOD_POST,     "/devices/data/restart",       0,       "data",         ""                                      },
                {METHOD_GET,      "/devices/data/recover",       -EPERM,  NULL,           "POST, OPTIONS"                         },
                {METHOD_POST,     "/devices/data",               -EPERM,  NULL,           "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
                {_METHOD_INVALID, "/devices",                    -EPERM,  NULL,           "GET, HEAD, POST, OPTIONS"              },
                {METHOD_GET,      "/schemas/targets/loop",       0,       "targets/loop", ""                                      },
                {METHOD_GET,      "/devices/data/actions",       0,       "data",         ""                                      },
                {METHOD_POST,     "/devices/data/actions/scrub", 0,       "data",         "GET, HEAD"                             },
                {METHOD_DELETE,   "/devices/data/actions/17",    0,       "data",         "GET, HEAD, POST"                       },
                {METHOD_GET,      "/devices/data/actions/",      -ENOENT, NULL,           ""                                      },
                {METHOD_GET,      "/devices/data/actions/1/2",   -ENOENT, NULL,           ""                                      },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct route *route = NULL;
                char name[PATH_NAME_MAX] = "untouched", item[PATH_NAME_MAX] = "", allow[64];

                if (!CHECK_INT(route_find(route_table, cases[i].path, cases[i].method, &route, name, item,
                                       allow),
                            cases[i].result))
                        fprintf(stderr, "path: %s\n", cases[i].path);
                CHECK_STR(allow, cases[i].allow);
                CHECK((route != NULL) == (cases[i].result == 0));
                CHECK_STR(name, cases[i].name ? cases[i].name : "untouched");
        }
}

static void test_token(void)
{
        char directory[] = "/tmp/api_routes_test.XXXXXX", path[64], token[TOKEN_TEXT_SIZE],
             again[TOKEN_TEXT_SIZE];
        char header[TOKEN_TEXT_SIZE + 16];
        struct problem_list problems = {};
        struct stat info;

        if (!CHECK(mkdtemp(directory)))
                return;
        snprintf(path, sizeof(path), "%s/api-token", directory);
        CHECK_INT(token_open(directory, token, &problems), 0);
        CHECK_INT(token_open(directory, again, &problems), 0);
        CHECK_STR(again, token);
        CHECK_INT(stat(path, &info), 0);
        CHECK_INT(info.st_mode & 0777, 0600);
        snprintf(header, sizeof(header), "Bearer %s", token);
        CHECK(token_matches(token, header));
        header[10] ^= 1;
        CHECK(!token_matches(token, header));
        CHECK(!token_matches(token, NULL));
        CHECK(!token_matches("", "Bearer "));
        CHECK_INT(unlink(path), 0);
        CHECK_INT(symlink("/dev/null", path), 0);
        CHECK(token_open(directory, again, &problems) < 0);
        CHECK_INT(problems.count, 1);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(rmdir(directory), 0);
        problem_list_clear(&problems);
}

/* A process that dies while it writes the token leaves none, or the whole one: the next start does not read half
 * a token. */
static void test_half_a_token(void)
{
        char directory[] = "/tmp/api_routes_test.XXXXXX", path[64], token[TOKEN_TEXT_SIZE];
        struct rlimit size, none = {};
        struct problem_list problems = {};
        int status = 0;
        pid_t child;

        if (!CHECK(mkdtemp(directory)))
                return;
        CHECK_INT(getrlimit(RLIMIT_FSIZE, &size), 0);
        none.rlim_max = size.rlim_max;
        child = fork();
        if (child == 0) {
                (void)setrlimit(RLIMIT_FSIZE, &none); /* the first byte kills it */
                _exit(token_open(directory, token, &problems) < 0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
        snprintf(path, sizeof(path), "%s/api-token", directory);
        CHECK_INT(access(path, F_OK), -1);
        CHECK_INT(token_open(directory, token, &problems), 0);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(rmdir(directory), 0);
        problem_list_clear(&problems);
}

int main(void)
{
        test_percent_decoding();
        test_routes();
        test_token();
        test_half_a_token();
        return check_report();
}
