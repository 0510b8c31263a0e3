# SPDX-License-Identifier: MIT
"""Several builds of ublkd in one guest take turns, and only the one whose turn it is runs."""

import servers

THIS = "this"  # the build that is not beside another one


def of_ublkd(server):
    """Return whether each build has this server, by its name in a table; the peers have no builds."""
    return server.startswith("ublkd")


def in_turn(names, number):
    """Return the names in the order of round `number`, from 1: each round begins with the next one."""
    first = (number - 1) % len(names)
    return [*names[first:], *names[:first]]


class Builds:
    """The builds of a configuration: `this`, which is the environment of all, and those beside it, if there are any."""

    def __init__(self, this, configuration):
        self._this = this
        self._others = {
            name: servers.OtherBuild(name, programs, this) for name, programs in configuration.get("beside", {}).items()
        }

    def take_turns(self, server):
        """Return whether several builds are measured with this server."""
        return bool(self._others) and of_ublkd(server)

    def turns(self, server, number):
        """Yield ({"build": name}, environment) of each build that has a server, in the order of round `number`.

        If there is only one, it has no name, and its ublkd stays for the next row."""
        if not self.take_turns(server):
            yield {}, self._this
            return
        environments = {THIS: self._this, **self._others}
        for name in in_turn(list(environments), number):
            try:
                yield {"build": name}, environments[name]
            finally:
                environments[name].stop_daemons()

    def close(self):
        """Stop and remove everything."""
        for environment in (*self._others.values(), self._this):
            environment.close()
