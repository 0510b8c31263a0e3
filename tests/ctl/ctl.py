# SPDX-License-Identifier: MIT
"""Run ublkctl."""
import contextlib
import http.server
import json
import os
import subprocess
import threading

PROGRAM = os.environ["UBLKCTL"]
DEADLINE = 120

OK, FAILED, USAGE, NOT_FOUND, TIMED_OUT, NO_DAEMON, NOT_ALLOWED, REFUSED = range(8)


class Run:
    """The result of one run of ublkctl."""

    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        assert "Sanitizer" not in self.err and "runtime error" not in self.err, self.err

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def rows(self):
        """The cells of a table, without its headings."""
        return [line.split() for line in self.lines[1:]]

    @property
    def json(self):
        return json.loads(self.out)


class Ctl:
    """ublkctl at one socket. A call runs it and checks its exit status."""

    def __init__(self, socket=None, directory="/", program=PROGRAM):
        self.program = program
        self.socket = socket
        self.directory = directory

    def environment(self, **more):
        kept = {name: os.environ[name] for name in os.environ if not name.startswith("UBLKD_") and name != "NO_COLOR"}
        if self.socket:
            kept["UBLKD_SOCKET"] = self.socket
        return {**kept, **more}

    def run(self, *arguments, stdin=None, environment=None, **more):
        return Run(subprocess.run(
            [self.program, *arguments], input=stdin, capture_output=True, text=True, timeout=DEADLINE, check=False,
            cwd=self.directory, env=self.environment(**(environment or {})), **more))

    def __call__(self, *arguments, status=OK, **more):
        run = self.run(*arguments, **more)
        assert run.status == status, f"exit status {run.status}: {run.out}{run.err}"
        if status in (OK,):
            assert run.err == "", run.err
        return run

    def start(self, *arguments, **more):
        return subprocess.Popen([self.program, *arguments], text=True, cwd=self.directory, env=self.environment(), **more)


def spec(name="data", **more):
    return {"name": name, "target": {"type": "null"}, "size": "1MiB", **more}


@contextlib.contextmanager
def answering(document, etag=None, patches=None):
    """The URL of a server that answers every GET with that document, and every PATCH, if it adds the headers of these to a list."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if etag:
                self.send_header("ETag", etag)
            self.end_headers()
            self.wfile.write(body)

        def do_PATCH(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            patches.append(self.headers)
            self.do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()


def field(run, name):
    """The text behind "NAME:" in the output of describe."""
    (line,) = [line for line in run.lines if line.startswith(name + ":")]
    return line[len(name) + 1:].strip()
