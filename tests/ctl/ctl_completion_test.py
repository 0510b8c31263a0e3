# SPDX-License-Identifier: MIT
"""The completion of bash and zsh matches the table of verbs."""
import http.server
import json
import os
import pty
import select
import shutil
import subprocess
import threading

import pytest
from ctl import DEADLINE, PROGRAM, USAGE, Ctl

NULL = ["target.type=null", "size=1MiB"]


def verbs():
    return [line.split()[0] for line in Ctl()("--help").out.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]


def path_environment(ctl):
    folder = os.path.dirname(PROGRAM)
    return {**ctl.environment(), "PATH": f"{folder}:{os.environ['PATH']}"}


def complete(ctl, *words):
    """The words that bash offers for the last word."""
    script = ('source <(ublkctl completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_ublkctl; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", "ublkctl", *words], capture_output=True, text=True, check=True,
                          env=path_environment(ctl), cwd=ctl.directory, timeout=DEADLINE)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def test_bash_verbs(ctl):
    assert complete(ctl, "") == verbs()
    assert complete(ctl, "de") == ["describe", "delete", "detach"] or sorted(complete(ctl, "de")) == [
        "delete", "describe", "detach"]
    assert complete(ctl, "help", "ho") == ["host"]
    assert complete(ctl, "completion", "") == ["bash", "zsh"]


def test_bash_options_of_every_verb(ctl):
    for verb in verbs():
        if verb == "help":
            continue
        wanted = [word for line in ctl("help", verb).lines for word in line.split() if word.startswith("--")
                  and line.startswith("  ")]
        assert set(complete(ctl, verb, "--")) == {word.rstrip(",") for word in wanted}, verb


def test_bash_values(ctl):
    assert complete(ctl, "list", "-o", "j") == ["json"]
    assert complete(ctl, "wait", "--for", "") == ["live", "gone"]
    assert complete(ctl, "wait", "--timeout", "") == []


def test_bash_completes_names_of_devices(ctl, tmp_path):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    assert complete(ctl, "get", "") == ["data", "other"]
    assert complete(ctl, "get", "data", "o") == ["other"]
    assert complete(ctl, "apply", "--prune-in-use", "") == ["data", "other"]
    lost = Ctl("/nowhere", ctl.directory)
    assert complete(lost, "get", "") == []
    assert complete(lost, "-s", ctl.socket, "get", "d") == ["data"]
    (tmp_path / "disk.img").touch()
    assert complete(ctl, "detach", "d") == ["data", "disk.img"]
    assert complete(ctl, "attach", "d") == ["disk.img"]


HOSTILE = ["$(touch${IFS}ran)", "`touch${IFS}ran`", "${x:=$(touch${IFS}ran)}", "--force", "a;b", "~", "*", "data"]


@pytest.fixture
def hostile_url():
    """A server whose devices have names that a shell could execute."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"items": [{"name": name, "generation": 1, "status": {"phase": "Live"}} for name in HOSTILE]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_bash_executes_no_name_of_a_server(hostile_url, tmp_path):
    ctl = Ctl(None, tmp_path)
    offered = complete(ctl, "--url", hostile_url, "get", "")
    assert os.listdir(tmp_path) == [], "the shell ran what the server sent"
    assert offered == ["data"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_executes_no_name_of_a_server(hostile_url, tmp_path):
    zsh = Zsh(Ctl(None, tmp_path))
    try:
        zsh.send(f"ublkctl --url {hostile_url} get \t\x18")
        zsh.wait_for("get data ]")
    finally:
        zsh.end()
    assert os.listdir(tmp_path) == [], "the shell ran what the server sent"


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_does_not_execute_quoted_words(tmp_path):
    zsh = Zsh(Ctl(None, tmp_path))
    try:
        zsh.send("ublkctl --url 'http://127.0.0.1:1;touch ran;' get \t\x18")
        zsh.wait_for("get ]")
    finally:
        zsh.end()
    assert os.listdir(tmp_path) == []


def test_an_unknown_shell():
    Ctl()("completion", "fish", status=USAGE)


class Zsh:
    """An interactive zsh with the completion loaded."""

    def __init__(self, ctl):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(ctl.directory)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**path_environment(ctl), "PS1": "> ", "TERM": "dumb"})
        self.seen = ""
        self.send("PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -D -u; "
                  "eval \"$(ublkctl completion zsh)\"; compdef _ublkctl ublkctl; "
                  "show() { print -r -- \"[$BUFFER]\"; BUFFER=; }; zle -N show; bindkey '^X' show; "
                  "bindkey '^I' complete-word; zstyle ':completion:*' menu no; echo LOA''DED\n")
        self.wait_for("LOADED")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, words):
        while words not in self.seen:
            assert select.select([self.terminal], [], [], DEADLINE)[0], f"zsh did not say {words}: {self.seen}"
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        self.seen = ""

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh(ctl):
    ctl("create", "data-of-mine", *NULL)
    zsh = Zsh(ctl)
    try:
        for typed, completed in (("recov", "recover "), ("get data", "get data-of-mine "), ("list --lab", "list --label "),
                                 ("list -o js", "list -o json "), ("completion z", "completion zsh ")):
            zsh.send(f"ublkctl {typed}\t\x18")
            zsh.wait_for(f"[ublkctl {completed}]")
    finally:
        zsh.end()


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_parses_the_script():
    done = subprocess.run(["zsh", "-n"], input=Ctl()("completion", "zsh").out, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
