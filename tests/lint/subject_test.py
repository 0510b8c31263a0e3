# SPDX-License-Identifier: MIT
"""scripts/check-subject takes good subjects of commits, and names what is wrong with others; the hook runs it."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = [
    "store: keep the newest record",
    "store: report that a disk is no longer mounted",
    "api/http: answer 503 while ublkd stops",
    "README: name the limits",
    "kernel tests: wait for the udev event",
    "base: " + "x" * 59,
    'Revert "store: keep the newest record, which was longer than any subject may be at all"',
    "Merge branch 'one' into a branch with a name that is longer than sixty-five columns",
    "fixup! store: keep the newest record",
    "# what git adds\n\nstore: keep the newest record\n\nSubjects: of any length, in a body that nothing here looks at. It ends so.",
]
BAD = [
    ("", "is empty"),
    ("# only a comment\n", "is empty"),
    ("keep the newest record", "names no area"),
    ("Store: keep the newest record", "names no area"),
    ("store:keep the newest record", "names no area"),
    ("store: Keep the newest record", "capital letter"),
    ("store: keep the newest record.", "ends with a dot"),
    ("store: fixes the newest record", "not an imperative"),
    ("store: added a record", "not an imperative"),
    ("base: " + "x" * 60, "has 66 columns"),
    ("docs: mend lines that the lints refuse", 'has "mend"'),
    ("store: test_what_nobody_reads goes", 'has "nobody"'),
    ("store: return what is no record", 'has "is no"'),
]


def check(folder, program, message):
    (folder / "message").write_text(message + "\n", encoding="utf-8")
    return subprocess.run([str(ROOT / program), str(folder / "message")], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("message", GOOD)
def test_a_good_subject(tmp_path, message):
    run = check(tmp_path, "scripts/check-subject", message)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("message, words", BAD)
def test_a_bad_subject(tmp_path, message, words):
    run = check(tmp_path, "scripts/check-subject", message)
    assert run.returncode == 1 and words in run.stderr and "CONTRIBUTING.md" in run.stderr


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_git_runs_it(tmp_path):
    """In a new repository with the hooks of this one."""
    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=.githooks", *words],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )

    assert git("init", "-q").returncode == 0
    for name in (".githooks/commit-msg", "scripts/check-subject", "tests/lint/dialect.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        (tmp_path / name).chmod(0o755)
    bad = git("commit", "-q", "--allow-empty", "-m", "keep the newest record")
    assert bad.returncode != 0 and "names no area" in bad.stderr
    assert git("commit", "-q", "--allow-empty", "-m", "store: keep the newest record").returncode == 0


def test_subjects_of_commits(tmp_path):
    """The newest ones: each takes a process."""
    log = subprocess.run(
        ["git", "log", "--no-merges", "-n", "100", "--format=%s"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )
    for subject in set(log.stdout.splitlines()):
        result = check(tmp_path, "scripts/check-subject", subject)
        assert result.returncode == 0, result.stderr
