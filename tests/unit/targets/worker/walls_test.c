/* SPDX-License-Identifier: MIT */
/* A worker that cannot have what its target declares does not serve; one whose target declares nothing gets nothing. */
#include "targets/worker/walls.h"
#include "targets/target_desc.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int network_error;      /* of the way back; 0: it works */
static unsigned networks_kept; /* how often it was taken */
static bool landlock_connects;

int __wrap_sandbox_keep_network(int network);
int __wrap_landlock_close(bool connects);
int __wrap_sandbox_leave_user(uint32_t user);

int __wrap_sandbox_keep_network(int network)
{
        if (network < 0)
                return network;
        networks_kept++;
        return network_error;
}

int __wrap_landlock_close(bool connects)
{
        landlock_connects = connects;
        return 0;
}

/* This process stays who it is. */
int __wrap_sandbox_leave_user(uint32_t user)
{
        (void)user;
        return 0;
}

static int open_descriptor(void)
{
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void test_a_need_that_cannot_be_met(void)
{
        static const struct {
                int network, error; /* what the process has, -1: a descriptor; what the way back gives */
        } cases[] = {
                {-EMFILE, 0     },
                {-1,      -EPERM},
        };

        for (size_t i = 0; i < 2; i++)
                for (int best_effort = 0; best_effort <= 1; best_effort++) {
                        struct walls walls = {.best_effort = best_effort, .files = -1};

                        walls.network = cases[i].network == -1 ? open_descriptor() : cases[i].network;
                        network_error = cases[i].error;
                        walls_fit_target(&walls, TARGET_NEEDS_NETWORK);
                        CHECK_INT(walls.error, cases[i].error ? cases[i].error : cases[i].network);
                        CHECK_STR(walls.missing, "the network of its target");
                        CHECK_INT(walls_hold(&walls), best_effort);
                        CHECK(walls.network < 0);
                }
        network_error = 0;
}

static void test_what_is_declared_is_given(void)
{
        for (int needs = 0; needs <= 1; needs++) {
                struct walls walls = {.network = open_descriptor(), .files = -1};
                int fd = walls.network;

                networks_kept = 0;
                landlock_connects = !needs;
                walls_fit_target(&walls, needs ? TARGET_NEEDS_NETWORK : 0);
                walls_close_access(&walls);
                CHECK(walls_hold(&walls));
                CHECK_INT(networks_kept, needs);
                CHECK_INT(walls.connects, needs);
#if !defined(__SANITIZE_ADDRESS__)
                CHECK_INT(landlock_connects, needs);
#endif
                CHECK(walls.network < 0);
                CHECK_INT(fcntl(fd, F_GETFD), -1); /* the way back is closed, taken or not */
        }
}

int main(void)
{
        test_a_need_that_cannot_be_met();
        test_what_is_declared_is_given();
        return check_report();
}
