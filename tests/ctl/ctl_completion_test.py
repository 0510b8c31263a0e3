"""The completion of bash and zsh does what the table of verbs says."""
import os
import pty
import select
import shutil
import subprocess

import pytest
from ctl import DEADLINE, PROGRAM, USAGE, Ctl

NULL = ["target.type=null", "size=1MiB"]


def verbs():
    return [line.split()[0] for line in Ctl()("--help").out.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]


def path_environment(ctl):
    folder = os.path.dirname(PROGRAM)
    return {**ctl.environment(), "PATH": f"{folder}:{os.environ['PATH']}"}


def complete(ctl, *words):
    """What bash offers for the last of the words."""
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


def test_bash_asks_the_daemon_for_devices(ctl, tmp_path):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    assert complete(ctl, "get", "") == ["data", "other"]
    assert complete(ctl, "get", "data", "o") == ["other"]
    lost = Ctl("/nowhere", ctl.directory)
    assert complete(lost, "get", "") == []
    assert complete(lost, "-s", ctl.socket, "get", "d") == ["data"]
    (tmp_path / "disk.img").touch()
    assert complete(ctl, "detach", "d") == ["data", "disk.img"]
    assert complete(ctl, "attach", "d") == ["disk.img"]


def test_an_unknown_shell():
    Ctl()("completion", "fish", status=USAGE)


class Zsh:
    """An interactive zsh with the completion loaded."""

    def __init__(self, ctl):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
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
def test_zsh_reads_it():
    done = subprocess.run(["zsh", "-n"], input=Ctl()("completion", "zsh").out, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
