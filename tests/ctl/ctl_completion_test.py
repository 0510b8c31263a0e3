# SPDX-License-Identifier: MIT
"""The completion of bash and zsh matches the table of verbs."""
import grp
import os
import pty
import pwd
import select
import shlex
import shutil
import subprocess

import pytest
from ctl import DEADLINE, PROGRAM, USAGE, Ctl, answering

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
    assert sorted(complete(ctl, "de")) == ["delete", "deliver", "describe", "detach"]
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


def complete_line(ctl, line, zsh=False):
    """What an interactive bash or zsh makes of a line with a tab at its end."""
    shell = Zsh(ctl) if zsh else Bash(ctl)
    try:
        shell.send(f"{line}\t\x18")
        return shell.shown()
    finally:
        shell.end()


FIELDS = [
    ("set data recovery.onCr", "set data recovery.onCrash="),
    ("set data recovery.onCrash=que", "set data recovery.onCrash=queue "),
    ("set data recovery.onCrash=", "set data recovery.onCrash="),
    ("set data readO", "set data readOnly="),
    ("set data readOnly=t", "set data readOnly=true "),
    ("set data queues=2 target.dir", "set data queues=2 target.directIo="),
    ("set data target.directIo=of", "set data target.directIo=off "),
    ("set --timeout 5s data temp", "set --timeout 5s data temporary="),
    ("create new target.type=nu", "create new target.type=null "),
    ("create new dataP", "create new dataPath="),
    ("list --columns NAME,AG", "list --columns NAME,AGE"),
    ("ls --sort -SI", "ls --sort -SIZE"),
    ("ls --sort=-SI", "ls --sort=-SIZE"),
    ("set data owner.ui", "set data owner.uid="),
    ("set data owner.uid=roo", "set data owner.uid=root "),
    ("create new owner.gid=roo", "create new owner.gid=root "),
]
ACTIONS = [
    ("action dat", "action data "),
    ("action data scr", "action data scrub "),
    ("action --no-wait data scr", "action --no-wait data scrub "),
    ("action data dat", "action data dat"),
    ("action data scrub dat", "action data scrub dat"),
    ("action data scrub rate=dat", "action data scrub rate=dat"),
]
NODES = [
    ("detach /dev/", "detach /dev/ublkb5 "),
    ("detach /dev/ubl", "detach /dev/ublkb5 "),
    ("detach /dev/ublkb5", "detach /dev/ublkb5 "),
    ("detach /dev/nul", "detach /dev/null "),
]


@pytest.mark.parametrize("typed, wanted", [*FIELDS, *ACTIONS])
def test_bash_completes_fields_and_values(ctl, typed, wanted):
    ctl("create", "data", *NULL)
    assert complete_line(ctl, f"ublkctl {typed}").rstrip() == f"ublkctl {wanted}".rstrip()


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
@pytest.mark.parametrize("typed, wanted", [*FIELDS, *ACTIONS])
def test_zsh_completes_fields_and_values(ctl, typed, wanted):
    ctl("create", "data", *NULL)
    assert complete_line(ctl, f"ublkctl {typed}", zsh=True).rstrip(" ,") == f"ublkctl {wanted}".rstrip()


@pytest.mark.parametrize("typed, wanted", NODES)
def test_bash_completes_disks_by_path(ctl, typed, wanted):
    ctl("create", "data", *NULL, "id=5")
    assert complete_line(ctl, f"ublkctl {typed}").rstrip() == f"ublkctl {wanted}".rstrip()


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
@pytest.mark.parametrize("typed, wanted", NODES)
def test_zsh_completes_disks_by_path(ctl, typed, wanted):
    ctl("create", "data", *NULL, "id=5")
    assert complete_line(ctl, f"ublkctl {typed}", zsh=True).rstrip() == f"ublkctl {wanted}".rstrip()


def test_bash_offers_the_actions_of_all_targets(ctl, server):
    ctl("create", "data", *NULL)
    names = [action["name"] for target in server.ask("GET", "/targets").json["items"] for action in target["actions"]]
    assert complete(ctl, "action", "") == ["data"], "first the device"
    assert complete(ctl, "action", "data", "") == sorted(set(names))
    assert complete(ctl, "action", "data", names[0], "") == []


def test_bash_offers_all_fields_and_all_values(ctl, server):
    ctl("create", "data", *NULL)
    offered = complete(ctl, "set", "data", "")
    spec = server.ask("GET", "/schemas/device").json["properties"]
    top = {name for name, field in spec.items() if "properties" not in field} - {"name", "target"}
    assert {f"{name}=" for name in top} <= set(offered) and "recovery.onCrash=" in offered and "target.path=" in offered
    assert complete(ctl, "set", "data", "recovery.trigger", "=") == ["auto", "manual"]
    assert complete(ctl, "set", "data", "recovery.trigger", "=", "m") == ["manual"]
    assert complete(ctl, "set", "") == ["data"], "first the device"
    assert complete(ctl, "create", "new", "dataPath", "=") == spec["dataPath"]["enum"]
    assert complete(ctl, "set", "data", "size", "=") == []


def test_bash_completes_columns(ctl):
    columns = complete(ctl, "list", "--columns", "")
    assert set(ctl("list", "-c", ",".join(columns)).lines[0].split()) == set(columns)
    assert complete(ctl, "list", "-c", "NAME,A") == ["NAME,AGE"] and complete(ctl, "ls", "-S", "-A") == ["-AGE"]
    assert complete(ctl, "list", "--output", "=", "js") == ["json"]


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


def test_bash_offers_users_and_disks(ctl):
    ctl("create", "data", *NULL, "id=5")
    ctl("create", "other", *NULL, "id=6")
    users = {entry.pw_name for entry in pwd.getpwall()}
    assert set(complete(ctl, "set", "data", "owner.uid", "=")) == users
    assert set(complete(ctl, "set", "data", "owner.gid", "=")) == {entry.gr_name for entry in grp.getgrall()}
    assert complete(ctl, "detach", "/dev/") == ["/dev/ublkb5", "/dev/ublkb6"], "no other file of /dev"
    assert {"-NAME", "-SIZE"} <= set(complete(ctl, "list", "--sort", "-"))


HOSTILE = ["$(touch${IFS}ran)", "`touch${IFS}ran`", "${x:=$(touch${IFS}ran)}", "--force", "a;b", "~", "*", "data"]


@pytest.fixture
def hostile_url():
    """A server whose devices have names that a shell could execute."""
    with answering({"items": [{"name": name, "generation": 1, "status": {"phase": "Live"}} for name in HOSTILE]}) as url:
        yield url


def test_bash_executes_no_node_of_a_server(tmp_path):
    items = [{"name": f"d{i}", "generation": 1, "status": {"phase": "Live", "device": node}}
             for i, node in enumerate([*HOSTILE, "/dev/ublkb7;reboot", "/dev/ublkb$(touch${IFS}ran)", "/dev/ublkb7"])]
    with answering({"items": items}) as url:
        assert complete(Ctl(None, tmp_path), "--url", url, "detach", "/dev/") == ["/dev/ublkb7"]
    assert os.listdir(tmp_path) == [], "the shell ran what the server sent"


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


class Bash:
    """An interactive bash with the completion loaded."""

    def __init__(self, ctl):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(ctl.directory)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       {**path_environment(ctl), "PS1": "", "TERM": "dumb", "HISTFILE": "", "COLUMNS": "500"})
        self.seen = ""
        self.send("source <(ublkctl completion bash); bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; "
                  "bind 'set horizontal-scroll-mode on'; show() { echo \"[$READLINE_LINE]SHO\"\"WN\"; READLINE_LINE=; }; "
                  "bind -x '\"\\C-x\": show'; echo LOA''DED\n")
        self.wait_for("LOADED")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, words):
        while words not in self.seen:
            assert select.select([self.terminal], [], [], DEADLINE)[0], f"{words} did not come: {self.seen}"
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        seen, self.seen = self.seen, ""
        return seen

    def shown(self):
        """The line that the key C-x shows."""
        seen = self.wait_for("]SHOWN")
        return seen[seen.rindex("[") + 1:seen.rindex("]")]

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Zsh(Bash):
    """An interactive zsh with the completion loaded."""

    def __init__(self, ctl, folder=None):
        """folder: zsh finds the file `_ublkctl` there; else it sources the script."""
        path = f"fpath=({shlex.quote(str(folder))} $fpath); " if folder else ""
        load = "" if folder else "source <(ublkctl completion zsh); "
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(ctl.directory)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**path_environment(ctl), "PS1": "> ", "TERM": "dumb"})
        self.seen = ""
        self.send(f"PS1=; unsetopt zle_bracketed_paste; {path}autoload -U compinit; compinit -D -u; {load}"
                  "show() { print -r -- \"[$BUFFER]SHOWN\"; BUFFER=; }; zle -N show; bindkey '^X' show; "
                  "bindkey '^I' complete-word; zstyle ':completion:*' menu no; echo LOA''DED\n")
        self.wait_for("LOADED")


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh(ctl):
    ctl("create", "data-of-mine", *NULL)
    zsh = Zsh(ctl)
    try:
        for typed, completed in (("recov", "recover "), ("get data", "get data-of-mine "), ("list --lab", "list --label="),
                                 ("list -o js", "list -o json "), ("completion z", "completion zsh ")):
            zsh.send(f"ublkctl {typed}\t\x18")
            zsh.wait_for(f"[ublkctl {completed}]")
    finally:
        zsh.end()


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_finds_the_installed_file(ctl, tmp_path):
    """Also its first use, which loads the file, completes."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/_ublkctl").write_text(ctl("completion", "zsh").out)
    zsh = Zsh(ctl, tmp_path / "functions")
    try:
        for typed, completed in (("recov", "recover "), ("list -o js", "list -o json ")):
            zsh.send(f"ublkctl {typed}\t\x18")
            zsh.wait_for(f"[ublkctl {completed}]")
    finally:
        zsh.end()


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_can_source_the_script(ctl):
    script = ("autoload -U compinit; compinit -D -u; source <(ublkctl completion zsh) || exit; "
              "print -r -- $_comps[ublkctl]")
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=False,
                          env=path_environment(ctl), timeout=DEADLINE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "_ublkctl\n", "")


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_parses_the_script():
    done = subprocess.run(["zsh", "-n"], input=Ctl()("completion", "zsh").out, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
