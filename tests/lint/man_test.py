# SPDX-License-Identifier: MIT
"""The man pages render without a warning, and name all that the programs and the schemas know."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["UBLKD_BUILD"])
PROGRAMS = pathlib.Path(os.environ["UBLKD_PROGRAMS"])  # of one configuration, where the build has several
TARGETS = sorted(path.name.removesuffix(".schema.json") for path in (ROOT / "schemas/targets").glob("*.schema.json"))
PAGES = {
    "ublkctl.1", "ublkd.8", "ublkd.service.8", "ublkd-worker.8", "ublkd-volumes.8", "ublkd-device.5", "ublkd-policy.5", "ublkd.conf.5",
    *(f"ublkd-{name}.7" for name in TARGETS),
}


def rendered(page):
    run = subprocess.run(["mandoc", "-Tascii", str(BUILD / "man" / page)], capture_output=True, text=True, check=True)
    return re.sub(".\b", "", run.stdout)


def help_of(*words):
    return subprocess.run([str(PROGRAMS / words[0]), *words[1:]], capture_output=True, text=True, check=True).stdout


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.fixture(autouse=True)
def needs_mandoc():
    if not shutil.which("mandoc"):
        pytest.skip("needs mandoc")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_renders_without_a_warning(page):
    run = subprocess.run(["mandoc", "-Tlint", "-W", "warning", str(BUILD / "man" / page)],
                         capture_output=True, text=True, check=False)
    assert run.stdout + run.stderr == "" and run.returncode == 0
    assert not re.search(r"@[A-Z_]+@", rendered(page))  # CMake has filled it in


def test_the_plug_in_names_its_options():
    assert options_in(help_of("ublkd-volumes", "--help")) == options_in(rendered("ublkd-volumes.8"))


def test_ublkctl_names_every_verb_option_and_exit_status():
    page = rendered("ublkctl.1")
    verbs = [line.split()[0] for line in help_of("ublkctl", "--help").split("Verbs:\n")[1].split("\n\n")[0].splitlines()]
    assert len(verbs) > 20
    for verb in verbs:
        assert re.search(rf"^     {verb}( |$)", page, re.MULTILINE), verb
        wanted = options_in(help_of("ublkctl", verb, "--help").split("Options:")[1])
        assert wanted <= options_in(page), verb
    statuses = re.findall(r"STATUS_\w+ = (\d)", (ROOT / "ublkctl/text/exit_status.h").read_text())
    section = page.split("EXIT STATUS")[1].split("EXAMPLES")[0]
    assert len(statuses) == 8 and all(re.search(rf"^     {status} ", section, re.MULTILINE) for status in statuses)


def test_ublkd_names_every_option():
    page = rendered("ublkd.8")
    for own in ("ublkd --control-helper", "ublkd --path-watcher", "ublkd --node-recall"):
        page = page.replace(own, "")  # not for people; only explained
    assert options_in(help_of("ublkd", "--help")) == options_in(page)


def test_a_worker_explains_itself():
    for option in ("-h", "--help"):
        text = help_of("ublkd-worker", option)
        assert text.startswith("Usage: ublkd-worker NAME [best-effort]\n") and options_in(text) == options_in(rendered("ublkd-worker.8"))
        assert help_of("ublkd", option).startswith("Usage: ublkd ")


def test_the_page_of_the_worker_names_every_signal_that_it_ignores():
    source = (ROOT / "targets/worker/main.c").read_text()
    (signals,) = re.findall(r"static const int signals\[\] = \{(.*?)\}", source, re.DOTALL)
    section = rendered("ublkd-worker.8").split("SIGNALS")[1].split("EXIT STATUS")[0]
    names = set(re.findall(r"SIG[A-Z0-9]+", signals))
    assert "SIGTERM" in names and names == set(re.findall(r"SIG[A-Z0-9]+", section)) - {"SIGKILL"}
    assert "ublkctl restart" in section, "what to do instead"


def defaults_in(text, pattern):
    """Of each option that has one."""
    text = re.sub(r"\s+", " ", text)
    found = {}
    for part in re.split(r" (?=--[a-z-]+ [A-Z])", text)[1:]:
        default = re.search(pattern, part)
        if default:
            found[part.split()[0]] = default[1]
    return found


def test_ublkd_has_the_same_defaults_in_both_places():
    page = rendered("ublkd.8").split("OPTIONS")[1].split("FILES")[0]
    documented = defaults_in(page, r"The default is (.+?)\.(?: |$)")
    assert documented == defaults_in(help_of("ublkd", "--help"), r"\(default: ([^)]+)\)")
    wanted = {
        "--listen", "--state-dir", "--runtime-dir", "--worker", "--unstable-paths", "--worker-uids", "--sandbox", "--spare-workers",
        "--readers", "--administrators", "--polkit", "--socket-group", "--devices-dir", "--policy-dir", "--cdi-dir", "--allow-fault-target", "--upgrade-workers", "--log-level", "--config-root",
    }
    assert wanted == set(documented)


def test_ublkd_conf_names_every_key():
    page = re.sub(r"\s+", " ", rendered("ublkd.conf.5").split("KEYS")[1])
    rows = json.loads((ROOT / "ublkd/config/settings.json").read_text())["settings"]
    assert len(rows) == 19
    for row in rows:
        assert f" {row['key']}={row['argument']} " in page and f" Option: --{row['option']}." in page
        assert f"The default is {row['preset']}." in page if "preset" in row else True
    assert options_in(page) == {f"--{row['option']}" for row in rows}


def names_in(schema, prefix=""):
    for name, member in schema.get("properties", {}).items():
        yield prefix + name
        yield from names_in(member, f"{prefix}{name}.")


def test_ublkd_device_names_every_field():
    page = rendered("ublkd-device.5")
    names = list(names_in(json.loads((ROOT / "schemas/device.schema.json").read_text())))
    for path in (ROOT / "schemas/targets").glob("*.schema.json"):
        names += names_in(json.loads(path.read_text()), "target.")
    assert "recovery.onCrash" in names and "target.path" in names
    for name in names:
        assert re.search(rf"^     {re.escape(name)} \(", page, re.MULTILINE), name


def test_ublkd_policy_names_every_field():
    page = rendered("ublkd-policy.5")
    schema = json.loads((ROOT / "schemas/policy.schema.json").read_text())
    rule = schema["properties"]["rules"]["items"]
    names = ["pools", "pools.NAME.directory", "rules", *(f"rules[].{name}" for name in names_in(rule))]
    names += [f"rules[].{name}" for name in ("limits.read.iops", "resources.ioMax.write.bytesPerSec")]
    assert "rules[].who.subuidsOf" in names
    for name in names:
        assert re.search(rf"^     {re.escape(name)} \(", page, re.MULTILINE), name


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_has_a_page_with_all_its_fields(target):
    page = rendered(f"ublkd-{target}.7")
    names = list(names_in(json.loads((ROOT / f"schemas/targets/{target}.schema.json").read_text()), "target."))
    assert "target.type" in names
    for name in names:
        assert re.search(rf"^     {re.escape(name)} \(", page, re.MULTILINE), name


def test_the_page_of_the_service_names_every_unit():
    page = rendered("ublkd.service.8")
    units = {path.name.removesuffix(".in") for path in (ROOT / "units").glob("ublkd*")}
    assert len(units) >= 4 and all(re.search(rf"^     {re.escape(unit)}$", page, re.MULTILINE) for unit in units)


def test_they_are_installed_and_so_is_the_completion(tmp_path):
    configuration = ["--config", os.environ["UBLKD_CONFIG"]]
    subprocess.run(["cmake", "--install", str(BUILD), *configuration], env={**os.environ, "DESTDIR": str(tmp_path)},
                   capture_output=True, check=True)
    (program,) = tmp_path.rglob("bin/ublkctl")
    prefix = program.parents[1]
    installed = {path.name for path in prefix.glob("share/man/man*/*")}
    assert installed == PAGES
    assert "complete -F" in (prefix / "share/bash-completion/completions/ublkctl").read_text()
    assert (prefix / "share/zsh/site-functions/_ublkctl").read_text().startswith("#compdef ublkctl\n")
    assert os.access(program, os.X_OK)
