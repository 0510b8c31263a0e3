/* SPDX-License-Identifier: MIT */
/* The agent of polkit at this terminal. */
#include "ublkctl/client/agent.h"

#include "ublkctl/client/settings.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

bool agent_is_wanted(const struct settings *settings)
{
        return !settings->no_ask_password && !settings->url && geteuid() != 0 && isatty(STDIN_FILENO)
               && isatty(STDERR_FILENO);
}

enum { READY_MS = 10 * 1000 }; /* a bus that does not answer must not keep the request */

/* The connections to ublkd are not the agent's. */
static bool close_all_but(int fd)
{
        return (fd == STDERR_FILENO + 1 || close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0) == 0)
               && close_range((unsigned)fd + 1, ~0U, 0) == 0 && fcntl(fd, F_SETFD, 0) == 0;
}

/* It opens the terminal itself. What it prints beside that is about a polkit that does not run. */
static void be_agent(pid_t parent, int ready)
{
        char of_parent[16], descriptor[16];
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        snprintf(of_parent, sizeof(of_parent), "%d", (int)parent);
        snprintf(descriptor, sizeof(descriptor), "%d", ready);
        (void)signal(SIGPIPE, SIG_DFL);
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || null < 0
                || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || !close_all_but(ready))
                _exit(EXIT_FAILURE);
        execlp("pkttyagent", "pkttyagent", "--notify-fd", descriptor, "--process", of_parent, "--fallback",
                (char *)NULL);
        _exit(EXIT_FAILURE);
}

pid_t agent_start(void)
{
        pid_t parent = getpid(), agent;
        int ends[2];
        struct pollfd ready;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -1;
        agent = fork();
        if (agent == 0)
                be_agent(parent, ends[1]);
        close_fd(ends[1]);
        ready.fd = ends[0];
        ready.events = POLLIN;
        if (agent > 0)
                (void)poll(&ready, 1, READY_MS); /* it closes the pipe, also by its end */
        close_fd(ends[0]);
        return agent;
}

pid_t agent_end(pid_t agent)
{
        if (agent <= 0)
                return -1;
        /* It may be stopped, as one that reads the terminal in the background is. */
        (void)kill(agent, SIGTERM);
        (void)kill(agent, SIGCONT);
        while (waitpid(agent, NULL, 0) < 0 && errno == EINTR)
                ;
        return -1;
}
