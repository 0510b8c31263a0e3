# SPDX-License-Identifier: MIT
"""A container of namespaces alone, as a rootless engine makes them, with a shell of its root in it."""

import json
import pathlib
import subprocess

# Evaluates each line that it reads, and prints the exit status after the output.
_SHELL = """
while read -r line; do
    eval "$line" </dev/null 2>&1
    status=$?
    echo
    echo "=$status"
done
"""


class Room:
    """A user namespace and a mount namespace of a user, with a tmpfs at /mnt, from where its root asks ublkd at `socket`;
    `prefix`: what starts its shell."""

    def __init__(self, socket, uid, prefix=()):
        self._socket = socket
        self._process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "unshare", "--user", "--map-root-user", "--mount",
             "sh", "-c", 'mount -t tmpfs none /mnt && echo ready && exec "$@"', "sh", *prefix, "sh", "-c", _SHELL],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        assert self._process.stdout.readline() == "ready\n"
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, line):
        """Have its root run a line of the shell; return the exit status and the output."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        lines = []
        while not lines or not lines[-1].startswith("="):
            lines.append(self._process.stdout.readline())
            assert lines[-1], "the container has ended"
        return int(lines.pop()[1:]), "".join(lines).strip()

    def ask(self, method, path, body=None):
        """Its root asks ublkd; return the status and the JSON of the answer, or None."""
        data = f"--json '{json.dumps(body)}'" if body is not None else ""
        done, text = self.run(f"curl -sS -X {method} {data} -w '\\n%{{http_code}}' --unix-socket {self._socket} "
                              f"'http://localhost{path}'")
        assert done == 0, text
        text, _, status = text.rpartition("\n")
        return int(status), json.loads(text) if text else None

    def mountinfo(self):
        """What is mounted in it, as the kernel shows it."""
        return pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text(encoding="utf-8")

    def mounts(self):
        """The mount points in it."""
        return [line.split()[4] for line in self.mountinfo().splitlines()]
