# SPDX-License-Identifier: MIT
"""GET /metrics, as Prometheus reads it."""
import os
import pathlib
import re

import pytest
from api_server import check_problem, spec
from api_tenants_test import ALICE, BOB, RULE, asks, mine
from api_tenants_test import _tenants  # noqa: F401  pylint: disable=unused-import
from other_user import NEEDS_ROOT
from prometheus_client.parser import text_string_to_metric_families

READ, WRITE, FLUSH = 0, 1, 2
UNITS = ("_seconds", "_bytes", "_total", "_info")
PLAIN = {"ublkd_device_flush_failed", "ublkd_device_backing_truncated", "ublkd_device_writes_waiting",
         "ublkd_device_store_full", "ublkd_device_store_low", "ublkd_device_hangs",
         "ublkd_device_phase", "ublkd_devices", "ublkd_device_io_in_flight", "ublkd_metrics_devices_omitted", "ublkd_ready",
         "ublkd_store_events", "ublkd_store_revision", "ublkd_reconcile_waiting", "ublkd_http_connections", "ublkd_http_waits",
         "ublkd_http_watches", "ublkd_device_path_leads_to_store", "process_open_fds", "process_max_fds"}  # have no unit


def scrape(server):
    answer = server.ask("GET", "/metrics", headers={"Accept": "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"})
    assert answer.status == 200 and answer.type == "text/plain"
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.body.decode()


class Metrics:
    def __init__(self, text):
        self.families = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, name, **labels):
        values = [sample.value for family in self.families.values() for sample in family.samples
                  if sample.name == name and labels.items() <= sample.labels.items()]
        assert len(values) == 1, (name, labels, values)
        return values[0]

    def names(self, family, label):
        return [sample.labels[label] for sample in self.families[family].samples]


def metrics(server):
    return Metrics(scrape(server))


def create(server, name="data"):
    assert server.ask("POST", "/devices?wait=ready", spec(name)).status == 201


def test_the_format(server):
    """Each family has HELP and TYPE once, before its samples, which stand together and occur once."""
    create(server)
    server.tell(f"count data 0 {READ} 3 4096 10000")
    text, family, seen, series = scrape(server), None, set(), set()
    assert text.endswith("\n") and "\n\n" not in text
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP (\w+) (\S.*\.)", line):
            family, kind = match.group(1), None
            assert family not in seen
            seen.add(family)
        elif match := re.fullmatch(r"# TYPE (\w+) (counter|gauge|histogram)", line):
            assert match.group(1) == family and kind is None
            kind = match.group(2)
            assert (kind == "counter") == family.endswith("_total")
        else:
            match = re.fullmatch(r'(\w+)(\{(?:\w+="[^"\\\n]*",?)*\})? (\S+)', line)
            assert match, line
            name = re.sub(r"_(bucket|sum|count)$", "", match.group(1)) if kind == "histogram" else match.group(1)
            assert name == family, line
            assert (match.group(1), match.group(2)) not in series, line
            series.add((match.group(1), match.group(2)))
            float(match.group(3))
    assert len(seen) > 25
    for name in seen:
        assert name.startswith(("ublkd_", "process_")) and (name.endswith(UNITS) or name in PLAIN), name


def test_devices(server):
    create(server)
    create(server, "other")
    server.tell("status other Backoff NoSuchFile It is not there.")
    got = metrics(server)
    assert got.value("ublkd_device_info", device="data", target="null", data_path="copy", disk="ublkb0") == 1
    assert got.value("ublkd_device_phase", device="data", phase="Live") == 1
    assert got.value("ublkd_device_phase", device="data", phase="Backoff") == 0
    assert got.value("ublkd_device_phase", device="other", phase="Backoff") == 1
    assert sum(sample.value for sample in got.families["ublkd_device_phase"].samples) == 2
    assert got.value("ublkd_devices", phase="Live") == got.value("ublkd_devices", phase="Backoff") == 1
    assert got.value("ublkd_device_worker_restarts_total", device="data") == 0
    assert got.value("ublkd_device_recoveries_total", device="data") == 0
    assert got.value("ublkd_device_last_recovery_seconds", device="data") == 0
    assert server.ask("DELETE", "/devices/data?wait").status == 204
    assert metrics(server).names("ublkd_device_info", "device") == ["other"]


def test_io(server):
    create(server)
    create(server, "never-served")
    server.tell(f"count data 0 {READ} 98 4096 10000")
    server.tell(f"count data 1 {READ} 2 4096 5000000")
    server.tell(f"count data 1 {FLUSH} 1 0 60000000000")
    got = metrics(server)
    assert got.value("ublkd_device_io_requests_total", device="data", op="read") == 100
    assert got.value("ublkd_device_io_bytes_total", device="data", op="read") == 409600
    assert got.value("ublkd_device_io_errors_total", device="data", op="read") == 0
    assert got.value("ublkd_device_io_rounds_total", device="data") == 3
    assert got.value("ublkd_device_io_unregistered_total", device="data") == 6
    assert got.value("ublkd_device_io_nudges_total", device="data") == 9
    name = "ublkd_device_io_latency_seconds"
    assert got.value(name + "_count", device="data", op="read") == 100
    assert got.value(name + "_sum", device="data", op="read") == pytest.approx(98e-5 + 0.01)
    buckets = [(float(sample.labels["le"]), sample.value) for sample in got.families[name].samples
               if sample.name == name + "_bucket" and sample.labels["op"] == "read"]
    assert buckets == sorted(buckets) and len(buckets) == 13
    assert [value for bound, value in buckets if bound < 10e-6] == [0]
    assert dict(buckets)[1.6384e-05] == 98 and buckets[-1] == (float("inf"), 100)
    assert [value for bound, value in buckets if 10e-6 < bound < 5e-3] == [98] * 5
    assert got.value(name + "_bucket", device="data", op="flush", le="17.1798692") == 0  # longer than that
    assert got.value(name + "_bucket", device="data", op="flush", le="+Inf") == 1
    assert "never-served" not in got.names("ublkd_device_io_requests", "device")
    assert {sample.labels["op"] for sample in got.families[name].samples} == {"read", "flush"}


def test_errors_by_errno(server):
    """Labels are bounded: an operation and one of eight errors; a device without errors has none."""
    create(server)
    create(server, "other")
    server.tell(f"errors data 0 {WRITE} 3")
    server.tell(f"errors data 1 {READ} 2")
    got, name = metrics(server), "ublkd_device_io_errors_by_errno_total"
    assert got.value(name, device="data", op="write", errno="ENOSPC") == 3
    assert got.value(name, device="data", op="read", errno="EIO") == 2
    assert len(got.families[name.removesuffix("_total")].samples) == 2
    assert got.value("ublkd_device_io_errors_total", device="data", op="write") == 3
    assert got.value("ublkd_device_last_io_error_timestamp_seconds", device="data") == 0
    server.tell(f"failed data {WRITE} 28 3 8192 4096")
    assert metrics(server).value("ublkd_device_last_io_error_timestamp_seconds", device="data") == 1700000000.123


def test_the_size_of_a_disk(server):
    create(server)
    got = metrics(server)
    size = server.ask("GET", "/devices/data").json["status"]["size"]
    assert got.value("ublkd_device_size_bytes", device="data") == size > 0
    assert server.ask("DELETE", "/devices/data?wait").status == 204
    assert not metrics(server).families["ublkd_device_size_bytes"].samples


@pytest.mark.parametrize("reason, full, low", [("StoreFull", 1, 0), ("StoreLow", 0, 1)])
def test_the_room_of_a_store(server, reason, full, low):
    create(server)
    server.tell(f"condition data Space False {reason} Make room.")
    got = metrics(server)
    assert got.value("ublkd_device_store_full", device="data") == full
    assert got.value("ublkd_device_store_low", device="data") == low


@pytest.mark.parametrize("reason", ["WorkerHung", "WorkerStarved", "BackingSlow"])
def test_a_disk_that_hangs(server, reason):
    """A worker that is stopped counts nothing: io_in_flight is 0, and the phase Live, all the time."""
    create(server)
    assert metrics(server).value("ublkd_device_hangs", device="data") == 0
    server.tell(f"condition data Progress False {reason} No request has ended.")
    got = metrics(server)
    assert got.value("ublkd_device_hangs", device="data") == 1
    assert got.value("ublkd_device_phase", device="data", phase="Live") == 1


def test_requests_are_counted(server):
    create(server)
    for _ in range(3):
        server.ask("GET", "/devices/data")
    server.ask("GET", "/devices/none")
    server.ask("POST", "/devices", spec(size="x"))
    server.ask("GET", "/nothing/at/all")
    server.ask("POST", "/devices", headers={"Content-Length": str(10 ** 12)})
    got = metrics(server)
    name = "ublkd_http_requests_total"
    assert got.value(name, method="GET", route="/devices/{name}", code="2xx") == 3
    assert got.value(name, method="GET", route="/devices/{name}", code="4xx") == 1
    assert got.value(name, method="POST", route="/devices", code="2xx") == 1
    assert got.value(name, method="POST", route="/devices", code="4xx") == 2
    assert got.value(name, method="other", route="none", code="4xx") == 1
    assert metrics(server).value(name, method="GET", route="/metrics", code="2xx") == 1


def test_the_process(server):
    got = metrics(server)
    pid = server.process.pid
    assert got.value("process_open_fds") == pytest.approx(len(os.listdir(f"/proc/{pid}/fd")), abs=1)
    assert got.value("process_max_fds") > 100
    assert 1e6 < got.value("process_resident_memory_bytes") < got.value("process_virtual_memory_bytes")
    assert 0 <= got.value("process_cpu_seconds_total") < 60
    assert abs(got.value("process_start_time_seconds") - os.stat(f"/proc/{pid}").st_mtime) < 60


def test_the_daemon(server):
    create(server)
    server.until("connections", 0)
    got = metrics(server)
    assert got.value("ublkd_ready") == 1
    assert got.value("ublkd_build_info", version=server.ask("GET", "/host").json["version"]) == 1
    assert got.value("ublkd_store_events") == 2
    assert got.value("ublkd_store_revision") == server.ask("GET", "/devices").json["revision"]
    assert got.value("ublkd_http_connections") == 1
    assert got.value("ublkd_http_watches") == got.value("ublkd_http_waits") == 0
    assert got.value("ublkd_reconcile_turn_seconds_count") == 7
    assert got.value("ublkd_reconcile_turn_seconds_bucket", le="0.0005") == 3
    assert got.value("ublkd_reconcile_turn_seconds_bucket", le="+Inf") == 7
    assert got.value("ublkd_reconcile_turn_seconds_sum") == 2.5
    assert got.value("ublkd_reconcile_steps_total", step="SPAWN", result="failed") == 1
    server.tell("settled off")
    assert metrics(server).value("ublkd_ready") == 0


def test_series_are_bounded(server):
    for number in range(260):
        assert server.ask("POST", "/devices", spec(f"d{number:03}")).status == 201
    got = metrics(server)
    assert got.names("ublkd_device_info", "device") == [f"d{number:03}" for number in range(256)]
    assert got.value("ublkd_metrics_devices_omitted") == 4
    assert sum(sample.value for sample in got.families["ublkd_devices"].samples) == 260


@NEEDS_ROOT
def test_tenants_take_no_series_from_root_nor_from_each_other(tenants):
    """Not by many devices, nor by names before those of others, nor as many users of one range."""
    first = 200000
    pathlib.Path(tenants.directory, "subuid").write_text(f"daemon:{first}:65536\n", encoding="ascii")
    much = {"devices": 500, "size": "10TiB"}
    tenants.set_rules({**RULE, **much}, {**RULE, **much, "name": "containers", "who": {"subuidsOf": ["daemon"]}})
    assert tenants.server.tell("policy") == 0
    root = [f"web-{number}" for number in range(10)]
    for name in root:
        assert tenants.server.ask("POST", "/devices", spec(name)).status == 201
    have = {first: 100, first + 1: 100, ALICE: 130, BOB: 5}
    for uid, count in have.items():
        posts = [("POST", "/devices", mine(f"{number:03}", uid)) for number in range(count)]
        assert {status for status, _ in tenants.values(asks(*posts), uid=uid)} == {201}
    got = metrics(tenants.server)
    shown = {first: 100, first + 1: 20, ALICE: 121, BOB: 5}  # 256 without root's: of three accounts
    assert got.names("ublkd_device_info", "device") == [
        *(f"u{uid}-{number:03}" for uid, count in shown.items() for number in range(count)), *root]
    assert got.value("ublkd_metrics_devices_omitted") == sum(have.values()) + len(root) - 256


def test_types_that_are_not_acceptable(server):
    check_problem(server.ask("GET", "/metrics", headers={"Accept": "application/json"}), 406, "not-acceptable")
