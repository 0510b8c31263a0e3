/* SPDX-License-Identifier: MIT */
/* A directory with the files of a policy, and the users and groups of a host, for tests. */
#include "tests/unit/ublkd/policy/policy_world.h"

#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        if (!CHECK(file))
                return;
        CHECK(fputs(text, file) >= 0);
        CHECK_INT(fchmod(fileno(file), 0644), 0);
        CHECK_INT(fclose(file), 0);
}

void world_open(struct world *world)
{
        *world = (struct world){.root = "/tmp/policy-test-XXXXXX"};
        CHECK(mkdtemp(world->root));
        snprintf(world->directory, sizeof(world->directory), "%s/policy.d", world->root);
        snprintf(world->passwd, sizeof(world->passwd), "%s/passwd", world->root);
        snprintf(world->group, sizeof(world->group), "%s/group", world->root);
        snprintf(world->subuid, sizeof(world->subuid), "%s/subuid", world->root);
        world->accounts = (struct policy_accounts){world->passwd, world->group, world->subuid};
        write_file(world->passwd, "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/"
                                  "sh\nbob:x:1001:1001::/:/bin/sh\n");
        write_file(world->group, "root:x:0:\ndevelopers:x:2000:alice,bob\nstaff:x:50:\n");
        write_file(
                world->subuid, "alice:100000:65536\ncarol:200000:65536\nroot:1000000:1000\n0:1001000:1000\n");
}

static void drop_policy(struct world *world)
{
        world->policy = policy_free(world->policy);
        problem_list_clear(&world->problems);
}

void world_close(struct world *world)
{
        drop_policy(world);
        CHECK_INT(remove_tree(world->root), 0);
}

void world_write(struct world *world, const char *name, const char *text)
{
        char path[256];

        CHECK(mkdir(world->directory, 0755) == 0 || errno == EEXIST);
        snprintf(path, sizeof(path), "%s/%s", world->directory, name);
        write_file(path, text);
}

void world_load(struct world *world, int result)
{
        drop_policy(world);
        if (!CHECK_INT(policy_load(world->directory, &world->accounts, &world->policy, &world->problems),
                    result))
                for (size_t i = 0; i < world->problems.count; i++)
                        fprintf(stderr, "    %s\n", world->problems.items[i].detail);
        CHECK((world->problems.count > 0) == (result == -EINVAL));
        CHECK((world->policy != NULL) == (result == 0));
}

void world_use(struct world *world, const char *text, int result)
{
        world_write(world, "50.json", text);
        world_load(world, result);
}

void world_use_rule(struct world *world, const char *rest, int result)
{
        char text[4096];

        snprintf(text, sizeof(text), "{\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[1000]}%s%s}]}",
                *rest ? "," : "", rest);
        world_use(world, text, result);
}

void world_check_fault(
        struct world *world, size_t index, const char *pointer, const char *file, unsigned line)
{
        const struct problem *problem = &world->problems.items[index];
        char place[256];

        if (!CHECK(index < world->problems.count))
                return;
        CHECK_STR(problem->reason, "PolicyInvalid");
        CHECK_STR(problem->pointer, pointer);
        snprintf(place, sizeof(place), "%s/%s:%u: ", world->directory, file, line);
        if (!CHECK(strncmp(problem->detail, place, strlen(place)) == 0))
                fprintf(stderr, "    %s, not at %s\n", problem->detail, place);
}

struct policy_client client_of(uid_t uid, gid_t gid)
{
        return (struct policy_client){.uid = uid, .gid = gid, .home = POLICY_HOME_HOST};
}

void check_one_problem(struct problem_list *problems, const char *reason, const char *pointer)
{
        bool good = CHECK_INT(problems->count, 1);

        if (problems->count > 0) {
                good = CHECK_STR(problems->items[0].reason, reason) && good;
                good = CHECK_STR(problems->items[0].pointer, pointer) && good;
        }
        for (size_t i = 0; !good && i < problems->count; i++)
                fprintf(stderr, "    %s: %s\n", problems->items[i].pointer, problems->items[i].detail);
        problem_list_clear(problems);
}
