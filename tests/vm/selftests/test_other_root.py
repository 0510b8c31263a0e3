# SPDX-License-Identifier: MIT
"""A guest whose root is another Debian, and how such a root is made."""

import os
import subprocess
import sys

import pytest
from vm import RUN, vm

VM = os.path.dirname(RUN)
sys.path.insert(0, VM)
import other_root  # pylint: disable=wrong-import-position

REPOSITORY = os.path.dirname(os.path.dirname(VM))


def make_root(**environment):
    return subprocess.run([os.path.join(VM, "other-root")], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", name="root")
def root_of_the_cache():
    return other_root.other_root()


def test_a_guest_has_the_other_systemd_and_sees_the_repository(root, tmp_path):
    (tmp_path / "shown").write_text("")
    script = f"""
	[ "$(cat /proc/1/comm)" = systemd ]
	systemctl --version | grep -F '({root.systemd})'
	grep ^{other_root.SUITES[root.suite]} /etc/debian_version
	[ "$PWD" = {REPOSITORY} ] && [ -x check ]
	[ -d {root.path}/usr ]
	[ -e {tmp_path}/shown ]
	touch /etc/new new {root.path}/etc/new {tmp_path}/new
	"""
    done = vm("--systemd", "--root", root.path, "--show", str(tmp_path), shell=script, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
    for directory in (REPOSITORY, f"{root.path}/etc", tmp_path):
        assert not os.path.exists(f"{directory}/new")


def test_a_root_is_made_once(root):
    done = make_root()
    assert (done.returncode, done.stdout) == (0, f"{root.path}\n")


@pytest.fixture(name="mirror")
def mirror_without_signatures(tmp_path):
    packages = "main/binary-amd64/Packages"
    suite = tmp_path / "debian" / "dists" / other_root.other_suite()
    (suite / packages).parent.mkdir(parents=True)
    (suite / packages).write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (suite / "Release").write_text(f"Suite: {suite.name}\nCodename: {suite.name}\nSHA256:\n {empty} 0 {packages}\n")
    return f"file://{tmp_path}/debian"


def test_packages_without_a_signature_make_no_root(mirror, tmp_path):
    done = make_root(UBLKD_CACHE=str(tmp_path / "cache"), UBLKD_DEBIAN_MIRROR=mirror)
    assert done.returncode == 1 and "not signed" in done.stderr, done.stderr


def test_a_root_that_cannot_be_made_is_reported_in_a_sentence(tmp_path):
    cache = tmp_path / "cache"
    mirror = "http://localhost:1/debian"
    for command in ([f"{VM}/other-root"], [f"{REPOSITORY}/tests/kernel/run", "--other-systemd"]):
        done = subprocess.run(command, env={**os.environ, "UBLKD_CACHE": str(cache), "UBLKD_DEBIAN_MIRROR": mirror},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 1 and mirror in line and done.stdout == ""
    assert os.listdir(cache / "vm") == [f"root-{other_root.other_suite()}.lock"], "nothing half made"


def test_a_directory_is_shown_only_with_another_root(tmp_path):
    assert vm("--show", str(tmp_path), shell="true").returncode == 125
