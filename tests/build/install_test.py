# SPDX-License-Identifier: MIT
"""What is installed with an unusual prefix and split of directories: every file lies where the builder wants it, and
the installed files name each other by the paths that they were installed to."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = "/opt/test-of-ublkd"
WORKER = f"{PREFIX}/lib/ublkd/ublkd-worker"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Debug",
    "CMAKE_INSTALL_PREFIX": f"{PREFIX}/",
    "CMAKE_INSTALL_BINDIR": "tools",
    "CMAKE_INSTALL_SBINDIR": "bin",
    "CMAKE_INSTALL_LIBEXECDIR": "lib",
    "CMAKE_INSTALL_MANDIR": "/opt/man",
    "UBLKD_SYSTEMD_UNIT_DIR": "/etc/units",
    "UBLKD_UDEV_RULES_DIR": "rules",
    "UBLKD_MODULES_LOAD_DIR": "/etc/modules",
    "UBLKD_SYSUSERS_DIR": "/etc/groups",
    "UBLKD_NEEDRESTART_DIR": "/etc/restarts",
}
INSTALLED = {
    "etc/groups/ublkd.conf",
    "etc/modules/ublkd.conf",
    "etc/restarts/ublkd.conf",
    "etc/units/dev-ublk-.device.d/50-ublkd.conf",
    "etc/units/ublk-disk@.path",
    "etc/units/ublk-disk@.service",
    "etc/units/ublk-reason@.service",
    "etc/units/ublk-watch@.service",
    "etc/units/ublkd-volumes.service",
    "etc/units/ublkd-workers.service",
    "etc/units/ublkd.service",
    "etc/units/ublkd.slice",
    "etc/units/ublkd.socket",
    "etc/units/ublkd.target",
    "opt/man/man1/ublkctl.1",
    "opt/man/man5/ublkd-device.5",
    "opt/man/man5/ublkd-policy.5",
    "opt/man/man5/ublkd.conf.5",
    "opt/man/man7/ublkd-fault.7",
    "opt/man/man7/ublkd-linear.7",
    "opt/man/man7/ublkd-loop.7",
    "opt/man/man7/ublkd-null.7",
    "opt/man/man7/ublkd-stripe.7",
    "opt/man/man8/ublkd-volumes.8",
    "opt/man/man8/ublkd-worker.8",
    "opt/man/man8/ublkd.8",
    "opt/man/man8/ublkd.service.8",
    "opt/test-of-ublkd/bin/ublkd",
    "opt/test-of-ublkd/bin/ublkd-volumes",
    "opt/test-of-ublkd/lib/ublkd/ublkd-follow",
    "opt/test-of-ublkd/lib/ublkd/ublkd-unstack",
    "opt/test-of-ublkd/lib/ublkd/ublkd-order",
    "opt/test-of-ublkd/lib/ublkd/ublkd-helper",
    "opt/test-of-ublkd/lib/ublkd/ublkd-start",
    "opt/test-of-ublkd/lib/ublkd/ublkd-reason",
    "opt/test-of-ublkd/lib/ublkd/ublkd-worker",
    "opt/test-of-ublkd/rules/60-ublkd.rules",
    "opt/test-of-ublkd/share/bash-completion/completions/ublkctl",
    "opt/test-of-ublkd/share/polkit-1/actions/io.ublkd.policy",
    "opt/test-of-ublkd/share/zsh/site-functions/_ublkctl",
    "opt/test-of-ublkd/tools/ublkctl",
}


def configure(folder, options):
    definitions = {"BUILD_TESTING": "OFF", **options}
    for name in ("CMAKE_C_COMPILER", "CMAKE_C_COMPILER_LAUNCHER", "Python3_EXECUTABLE"):
        if os.environ.get(name):
            definitions[name] = os.environ[name]
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-G", os.environ.get("CMAKE_GENERATOR", "Ninja"),
         *(f"-D{name}={value}" for name, value in definitions.items())],
        check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module", name="build")
def fixture_build(tmp_path_factory):
    build = tmp_path_factory.mktemp("build")
    configure(build, OPTIONS)
    subprocess.run(["cmake", "--build", build, "--parallel", "2"], check=True, stdout=subprocess.DEVNULL)
    return build


@pytest.fixture(scope="module", name="stage")
def fixture_stage(build, tmp_path_factory):
    stage = tmp_path_factory.mktemp("stage")
    subprocess.run(["cmake", "--install", build], env={**os.environ, "DESTDIR": str(stage)}, check=True,
                   stdout=subprocess.DEVNULL)
    return stage


def is_program(path):
    return path.is_file() and os.access(path, os.X_OK)


def test_every_file_is_in_its_place(stage):
    found = {str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file()}
    schemas = {name for name in found if name.startswith("opt/test-of-ublkd/share/ublkd/schemas/")}
    assert found - schemas == INSTALLED
    assert {pathlib.Path(name).name for name in schemas} >= {"device.schema.json", "policy.schema.json", "loop.schema.json", "openapi.json"}


def test_the_unit_names_the_program(stage):
    unit = (stage / "etc/units/ublkd.service").read_text()
    program = re.search(r"^ExecStart=(\S+)", unit, re.MULTILINE).group(1)
    assert program == f"{PREFIX}/bin/ublkd" and is_program(stage / program[1:])


def test_ublkd_looks_for_the_worker_where_it_is(stage, tmp_path):
    assert is_program(stage / WORKER[1:])
    program = stage / PREFIX[1:] / "bin/ublkd"
    assert WORKER in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    # DESTDIR is not the final place, so there is none yet.
    run = subprocess.run([program, "--state-dir", tmp_path / "state", "--runtime-dir", tmp_path / "run"],
                         capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and WORKER in run.stderr
    assert WORKER in (stage / "opt/man/man8/ublkd.8").read_text().replace("\\-", "-")


def test_another_prefix_at_the_installation_is_refused(build, tmp_path):
    """The unit would name a program that is not there: systemd failed with 203/EXEC after the installation."""
    def install(prefix):
        return subprocess.run(["cmake", "--install", build, "--prefix", prefix], env={**os.environ, "DESTDIR": str(tmp_path)},
                              capture_output=True, text=True, check=False)

    run = install("/usr")
    assert run.returncode != 0 and not list(tmp_path.iterdir())
    assert "-DCMAKE_INSTALL_PREFIX=/usr" in run.stderr
    assert install(f"{PREFIX}/").returncode == 0


def test_without_tests_only_the_programs_are_built(build):
    programs = {path.name for path in build.iterdir() if is_program(path)}
    assert programs == {"ublkd", "ublkd-helper", "ublkd-worker", "ublkd-follow", "ublkd-volumes", "ublkctl"}


@pytest.mark.parametrize("prefix, unit_dir", [("/usr/local", "lib/systemd/system"), ("/usr", None), ("/opt/x", None)])
def test_units_go_where_systemd_reads_them(tmp_path, prefix, unit_dir):
    """Under /usr/local there, which systemd reads as well; else where pkg-config says."""
    if unit_dir is None:
        run = subprocess.run(["pkg-config", "--variable=systemdsystemunitdir", "systemd"],
                             capture_output=True, text=True, check=False)
        unit_dir = run.stdout.strip() or "lib/systemd/system"
    configure(tmp_path, {"CMAKE_INSTALL_PREFIX": prefix})
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert f"UBLKD_SYSTEMD_UNIT_DIR:STRING={unit_dir}\n" in cache
    assert "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\n" in cache
