/* SPDX-License-Identifier: MIT */
/* ublkd-volumes: the volume plug-in for Docker and Podman. */
#include "volumes/plugin_server.h"
#include "volumes/rest.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/version.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum { EXIT_USAGE = 2 };

static const char help[] =
        "Usage: ublkd-volumes [OPTION]...\n"
        "The volume plug-in for Docker and Podman: each volume is a disk of ublkd with a file system.\n"
        "\n"
        "Options:\n"
        "  --listen PATH  the socket of the plug-in (/run/docker/plugins/ublkd.sock)\n"
        "  --socket PATH  the socket of ublkd (/run/ublkd/ublkd.sock)\n"
        "  --pool NAME    the pool of volumes without the options pool and path\n"
        "  --help         print this help\n"
        "  --version      print the version\n";

struct options {
        const char *listen;
        struct plugin plugin;
};

/* Return -1: serve; else the exit status. */
static int parse(int argc, char *argv[], struct options *options)
{
        static const struct option names[] = {
                {"listen", required_argument, NULL, 'l'},
                {"socket", required_argument, NULL, 's'},
                {"pool", required_argument, NULL, 'p'},
                {"help", no_argument, NULL, 'h'},
                {"version", no_argument, NULL, 'v'},
                {}
        };
        int option;

        while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
                switch (option) {
                case 'l':
                        options->listen = optarg;
                        break;
                case 's':
                        options->plugin.socket = optarg;
                        break;
                case 'p':
                        options->plugin.pool = optarg;
                        break;
                case 'h':
                        fputs(help, stdout);
                        return EXIT_SUCCESS;
                case 'v':
                        puts(ublkd_version);
                        return EXIT_SUCCESS;
                default:
                        return EXIT_USAGE;
                }
        if (optind == argc)
                return -1;
        fprintf(stderr, "ublkd-volumes: the argument '%s' is unknown; see --help\n", argv[optind]);
        return EXIT_USAGE;
}

/* The threads of the server inherit that these signals are blocked. */
static void block(sigset_t *ret)
{
        sigemptyset(ret);
        sigaddset(ret, SIGTERM);
        sigaddset(ret, SIGINT);
        (void)sigprocmask(SIG_BLOCK, ret, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char *argv[])
{
        struct options options = {
                .listen = "/run/docker/plugins/ublkd.sock", .plugin = {.socket = "/run/ublkd/ublkd.sock"}};
        struct plugin_server *server = NULL;
        int r = parse(argc, argv, &options), number;
        sigset_t end;

        if (r >= 0)
                return r;
        block(&end);
        r = rest_prepare();
        if (r >= 0)
                r = plugin_server_open(&options.plugin, options.listen, &server);
        if (r < 0) {
                fprintf(stderr,
                        "ublkd-volumes: listening at %s failed: %s; correct --listen, or end what listens "
                        "there\n",
                        options.listen, strerror(-r));
                return EXIT_FAILURE;
        }
        (void)sd_notify(0, "READY=1");
        (void)sigwait(&end, &number);
        plugin_server_close(server);
        return EXIT_SUCCESS;
}
