# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard of examples/monitoring: against what /metrics gives, and what Prometheus' promtool and
Grafana's schema make of them."""
import json
import pathlib
import re
import subprocess

import pytest
from api_server import spec
from prometheus_client.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/monitoring"
RULES = FOLDER / "alerts.yml"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
OF_PROMETHEUS = {"instance", "job"}  # labels that Prometheus adds
WORDS = {"by", "on", "le"}


def rules():
    """The name of each alert, and its lines."""
    parts = re.split(r"^      - alert: (\w+)\n", RULES.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def expressions():
    for name, text in rules().items():
        yield name, re.search(r"^        expr: (.+)$", text, re.MULTILINE).group(1)
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


@pytest.fixture
def labels(server):
    """The labels of each metric that ublkd gives, for a device that has all of them."""
    server.ask("POST", "/devices?wait", spec())
    for op in range(6):
        server.tell(f"count data 0 {op} 3 4096 10000")
        server.tell(f"errors data 0 {op} 1")
    server.tell("condition data PathLeadsToStore False PathGone It is gone.")
    found = {}
    for family in text_string_to_metric_families(server.ask("GET", "/metrics").body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_query_asks_for_what_there_is(labels):
    """A name or a label that does not exist makes an alert that never fires, and an empty panel."""
    asked = set()
    for where, expression in expressions():
        names = set(re.findall(r"\bublkd_\w+", expression))
        assert names <= set(labels), (where, names - set(labels))
        asked |= names
        known = set().union(OF_PROMETHEUS, *(labels[name] for name in names))
        used = set(re.findall(r'[{,]\s*(\w+)(?:=~|!=|=|!~)"', expression))
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
            used |= {label.strip() for label in group.split(",")}
        assert used <= known, (where, used - known)
    assert {"ublkd_device_io_errors_by_errno_total", "ublkd_device_size_bytes", "ublkd_build_info", "ublkd_device_store_low",
            "ublkd_device_path_leads_to_store", "ublkd_device_hangs"} <= asked


def test_the_values_that_rules_name_exist(labels, server):
    """Phases and errnos are texts that a query compares."""
    text = server.ask("GET", "/metrics").body.decode()
    for name, expression in expressions():
        for label, values in re.findall(r'\b(phase|errno)=~?"([^"$]+)"', expression):
            for value in values.split("|"):
                assert f'{label}="{value}"' in text, (name, value)


def test_each_alert_says_what_and_where():
    assert len(rules()) >= 10
    for name, text in rules().items():
        assert re.search(r"severity: (critical|warning)", text), name
        assert "summary:" in text and "description:" in text and "{{ $labels." in text, name


def test_the_alert_of_crashes_counts_no_restart_on_request():
    """tests/unit/ublkd/reconcile/worker/reconciler_worker_test.c: a restart makes no recovery."""
    (expression,) = (text for name, text in expressions() if name == "UblkdWorkerCrashes")
    assert re.findall(r"ublkd_\w+", expression) == ["ublkd_device_recoveries_total"]


def test_no_two_panels_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_configuration_loads_the_rules():
    assert f"rule_files: [{RULES.name}]" in (FOLDER / "prometheus.yml").read_text()


def promtool(*arguments, text=None):
    program = subprocess.run([ROOT / "scripts/test-promtool"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    run = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, timeout=120, check=False)
    return run.returncode, run.stdout + run.stderr


def test_promtool_takes_the_rules():
    status, output = promtool("check", "rules", RULES)
    assert status == 0 and f"{len(rules())} rules found" in output, output


def test_promtool_refuses_a_rule_that_is_none(tmp_path):
    (tmp_path / "alerts.yml").write_text(RULES.read_text().replace("expr: ", "expr: sum((", 1))
    assert promtool("check", "rules", tmp_path / "alerts.yml")[0] != 0


def test_promtool_takes_the_configuration(tmp_path):
    """With a token in the place that the file names."""
    (tmp_path / RULES.name).write_text(RULES.read_text())
    (tmp_path / "token").write_text("0" * 64)
    text = (FOLDER / "prometheus.yml").read_text().replace("/etc/prometheus/ublkd-token", str(tmp_path / "token"))
    (tmp_path / "prometheus.yml").write_text(text)
    status, output = promtool("check", "config", tmp_path / "prometheus.yml")
    assert status == 0, output


def test_promtool_takes_the_metrics(server):
    server.ask("POST", "/devices?wait", spec())
    server.tell("errors data 0 1 1")
    status, output = promtool("check", "metrics", text=server.ask("GET", "/metrics").body.decode())
    assert status == 0, output


def test_the_alerts_fire_when_they_should():
    status, output = promtool("test", "rules", ROOT / "tests/api/alerts_test.yml")
    assert status == 0, output


def grafana_leaves_out(dashboard):
    python = subprocess.run([ROOT / "scripts/test-venv"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    run = subprocess.run([python, ROOT / "tests/api/grafana_check.py"], input=json.dumps(dashboard), stdout=subprocess.PIPE,
                         text=True, check=True)
    return run.stdout.splitlines()


def test_grafana_takes_the_dashboard():
    assert grafana_leaves_out(DASHBOARD) == []


@pytest.mark.parametrize("place", ["panels/0", "panels/0/gridPos", "panels/0/targets/0", "templating/list/0", "time"])
def test_grafana_leaves_out_what_it_does_not_know(place):
    dashboard = json.loads(json.dumps(DASHBOARD))
    part = dashboard
    for step in place.split("/"):
        part = part[int(step) if step.isdigit() else step]
    part["titel"] = "x"
    assert grafana_leaves_out(dashboard) == [f"/{place}/titel: unknown"]
