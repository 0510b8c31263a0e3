# SPDX-License-Identifier: MIT
"""Tenants: users to whom the policy gives devices of their own. Others' devices are for them like devices that do not exist."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import tempfile
import threading

import pytest
import conformance
from absent_names import check_answers, plain, program, requests_about_a_name, still_slower
from api_server import Server, check_problem, spec
from other_user import CONTAINERS, NEEDS_ROOT, run_as_user, user
from server_fixture import write_policy

pytestmark = NEEDS_ROOT
ALICE, BOB, STRANGER, GROUP, READERS, ADMINISTRATORS = 4001, 4002, 4003, 4242, 4243, 4244

RULE = {"name": "developers", "who": {"users": [ALICE, BOB], "groups": [GROUP]}, "targets": ["null"], "devices": 3,
        "size": "10GiB", "queues": 4, "queueDepth": 128, "maxIoSize": "1MiB", "changesPerMinute": 1000}


class Tenants:
    """A server with a policy, in a directory that every user can reach."""

    def __init__(self, directory, *arguments, under=()):
        os.chmod(directory, 0o755)
        self.directory = directory
        self.under = under
        self.arguments = [*self.set_rules(RULE), "--readers", str(READERS), "--administrators", str(ADMINISTRATORS), *arguments]
        self.start()

    def start(self):
        self.server = Server(self.directory, *self.arguments, under=self.under)
        assert self.server.started, self.server.process.stderr.read()

    def set_rules(self, *rules):
        return write_policy(self.directory, rules=rules)

    def run(self, code, uid=ALICE, groups=(), container=""):
        return run_as_user(self.server, code, uid, groups, container)

    def values(self, code, **as_whom):
        """What the code prints, a JSON value in each line."""
        return [json.loads(line) for line in self.run(code, **as_whom).splitlines()]


@pytest.fixture(name="tenants")
def _tenants():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory, "--sqlite")
        yield tenants
        tenants.server.stop()


def asks(*requests):
    """Code that sends requests and prints status, type and body of each answer."""
    return f"""
for method, target, body in {list(requests)!r}:
    answer = ask(UnixConnection(path), method, target, body)
    print(json.dumps([answer.status, answer.json if answer.body else None]))
"""


def mine(name, uid=ALICE, **changes):
    return spec(f"u{uid}-{name}", **{"size": "1GiB", **changes})


def create(tenants, name, uid=ALICE, **changes):
    ((status, device),) = tenants.values(asks(("POST", "/devices?wait=ready", mine(name, uid, **changes))), uid=uid)
    assert status == 201, device
    return device


def test_a_tenant_has_devices_of_its_own(tenants):
    device = create(tenants, "data")
    assert device["tenant"] == f"uid:{ALICE}"
    name = device["name"]
    answers = tenants.values(asks(
        ("GET", f"/devices/{name}", None), ("POST", "/devices", mine("data")), ("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}),
        ("PUT", f"/devices/{name}", mine("data", size="2GiB")), ("POST", f"/devices/{name}/recover", None),
        ("POST", f"/devices/{name}/restart", None), ("POST", f"/devices/{name}/stop", None), ("POST", f"/devices/{name}/start", None),
        ("GET", "/devices", None), ("GET", "/targets", None), ("GET", "/schemas/device", None), ("GET", "/readyz", None),
        ("GET", "/healthz", None), ("DELETE", f"/devices/{name}?wait", None), ("GET", f"/devices/{name}", None)))
    assert [status for status, _ in answers] == [200, 200, 200, 200, 202, 202, 202, 202, 200, 200, 200, 200, 200, 204, 404]


def test_what_is_about_the_host_is_not_for_tenants(tenants):
    answers = tenants.values(asks(("GET", "/host", None), ("GET", "/metrics", None), ("POST", "/devices/adopt", {"all": True})))
    assert [status for status, _ in answers] == [403] * 3
    assert tenants.values(asks(("GET", "/nothing", None)))[0][0] == 404


def requests_of_a_stranger():
    return requests_about_a_name(conformance.document(), target={"type": "null"}, size="1GiB")


def ask_as_a_stranger(tenants, names):
    """What asks as alice about two names that are not hers: of a device of others, and of none."""
    def ask(requests, rounds):
        (found,) = tenants.values(program(tenants.server.path, requests, names, rounds))
        check_answers(found)
        return found
    return ask


def names_of_others(tenants):
    """Pairs of equal length: of a device of another tenant and of root, and of none."""
    create(tenants, "secret", BOB)
    assert tenants.server.ask("POST", "/devices?wait", spec("of-root")).status == 201
    return [(f"u{BOB}-secret", f"u{BOB}-absent"), ("of-root", "no-root")]


def test_others_are_like_what_does_not_exist(tenants):
    """The answers for the device of another tenant, or of root, are those for a free name, but for the name."""
    for pair in names_of_others(tenants):
        ask_as_a_stranger(tenants, pair)(requests_of_a_stranger(), 1)
        device = tenants.server.ask("GET", f"/devices/{pair[0]}").json
        assert device["generation"] == 1 and device["status"]["phase"] == "Live"


def names_seen(tenants, **as_whom):
    ((status, answer),) = tenants.values(asks(("GET", "/devices", None)), **as_whom)
    assert status == 200
    return [item["name"] for item in answer["items"]]


def test_lists_have_what_is_theirs(tenants):
    """Asked one after the other, so that a shared answer of the second before would show."""
    for uid, name in ((ALICE, "a"), (BOB, "b"), (ALICE, "c")):
        create(tenants, name, uid)
    assert tenants.server.ask("POST", "/devices?wait", spec("of-root")).status == 201
    hers, his = [f"u{ALICE}-a", f"u{ALICE}-c"], [f"u{BOB}-b"]
    assert names_seen(tenants, uid=BOB) == his
    assert names_seen(tenants) == hers and names_seen(tenants, uid=BOB) == his
    everything = sorted([*hers, *his, "of-root"])
    assert names_seen(tenants, uid=ALICE, groups=[READERS]) == everything
    assert names_seen(tenants, uid=STRANGER, groups=[ADMINISTRATORS]) == everything
    ((_, page),) = tenants.values(asks(("GET", "/devices?limit=1", None)))
    assert [item["name"] for item in page["items"]] == hers[:1] and page["continue"] == hers[0]
    ((_, page),) = tenants.values(asks(("GET", f"/devices?limit=1&continue={hers[0]}", None)))
    assert [item["name"] for item in page["items"]] == hers[1:] and "continue" not in page


def test_events_are_of_what_is_theirs(tenants):
    create(tenants, "a")
    create(tenants, "b", BOB)
    tenants.server.tell(f"note u{BOB}-b WorkerDied secret")
    code = asks(("GET", "/events?limit=100", None), ("GET", f"/events?device=u{BOB}-b", None)).replace(
        "method, target, body)", 'method, target, body, {"Accept": "application/json"})')
    (_, every), (_, of_bob) = tenants.values(code)
    assert every["items"] and {event["device"]["name"] for event in every["items"]} == {f"u{ALICE}-a"}
    assert of_bob["items"] == []
    assert tenants.server.ask("DELETE", f"/devices/u{BOB}-b?wait").status == 204
    (_, every), _ = tenants.values(code)
    assert {event["device"]["name"] for event in every["items"]} == {f"u{ALICE}-a"}


WATCH = """
connection = UnixConnection(path)
connection.request("GET", "/events?after=0", headers={"Accept": "text/event-stream"})
response = connection.getresponse()
print("watching", flush=True)
for line in response:
    if line.startswith(b"data:"):
        print(json.loads(line[5:])["device"]["name"], flush=True)
        if b'last' in line:
            break
"""


def test_a_stream_has_what_is_theirs(tenants):
    create(tenants, "a")
    with user(tenants.server, WATCH, ALICE) as client:
        assert client.stdout.readline() == "watching\n"
        create(tenants, "b", BOB)
        tenants.server.tell(f"note u{BOB}-b WorkerDied secret")
        tenants.server.tell(f"note u{ALICE}-a WorkerDied last")
        assert set(client.stdout.read().split()) == {f"u{ALICE}-a"}


def test_without_a_rule_there_is_no_device(tenants):
    ((status, problem),) = tenants.values(asks(("POST", "/devices", mine("x", STRANGER))), uid=STRANGER)
    assert status == 403 and str(STRANGER) in problem["detail"]
    ((status, device),) = tenants.values(asks(("POST", "/devices", mine("x", STRANGER))), uid=STRANGER, groups=[GROUP])
    assert status == 201 and device["tenant"] == f"uid:{STRANGER}"


@pytest.mark.parametrize("changes, pointer", [
    ({"target": {"type": "loop", "path": "/etc/passwd"}}, "/target"), ({"size": "11GiB"}, "/size"), ({"id": 7}, "/id"),
    ({"name": "theirs"}, "/name"), ({"queueDepth": 256}, "/queueDepth"), ({"owner": {"uid": 0}}, "/owner")])
def test_every_fault_names_its_field(tenants, changes, pointer):
    ((status, problem),) = tenants.values(asks(("POST", "/devices", {**mine("x"), **changes})))
    assert status == 403
    assert any(error["pointer"].startswith(pointer) for error in problem["errors"]), problem
    assert tenants.server.ask("GET", "/devices").json["items"] == []


def test_a_change_cannot_pass_what_a_create_may_not(tenants):
    name = create(tenants, "a")["name"]
    answers = tenants.values(asks(("PATCH", f"/devices/{name}", {"size": "11GiB"}), ("PUT", f"/devices/{name}", mine("a", size="11GiB")),
                                  ("PATCH", f"/devices/{name}", {"owner": {"mode": "0666"}})))
    assert [status for status, _ in answers] == [403] * 3
    assert tenants.server.ask("GET", f"/devices/{name}").json["generation"] == 1


@pytest.mark.parametrize("changes, pointer", [
    ({"limits": {"write": {"iops": 1}}}, "/limits/write/iops"), ({"resources": {"memoryMax": "16MiB"}}, "/resources/memoryMax"),
    ({"recovery": {"trigger": "manual"}}, "/recovery/trigger")])
def test_no_change_makes_a_disk_that_holds_up_all_flushes(tenants, changes, pointer):
    name = create(tenants, "a")["name"]
    answers = tenants.values(asks(("POST", "/devices", mine("b", **changes)), ("PUT", f"/devices/{name}", mine("a", **changes)),
                                  ("PATCH", f"/devices/{name}", changes)))
    assert [(status, problem["errors"][0]["pointer"]) for status, problem in answers] == [(403, pointer)] * 3
    assert names_seen(tenants) == [name]
    assert tenants.server.ask("GET", f"/devices/{name}").json["generation"] == 1


# Sends all its requests while the server stands still; prints status, pointer and reason of each answer when that goes on.
AT_ONCE = """
def create(name):
    body = json.dumps(spec(name, size="1GiB")).encode()
    head = f"POST /devices HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    return head.encode() + body
clients = []
for number in range(4):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.settimeout(600)
    client.sendall(b"".join(create(f"u{uid}-{os.getpid()}-{number}-{index}") for index in range(63)))
    clients.append(client.makefile("rb"))
print("sent", flush=True)
for client in clients:
    for _ in range(63):
        status, length = int(client.readline().split()[1]), 0
        for line in iter(client.readline, b"\\r\\n"):
            name, value = line.decode().split(":", 1)
            length = int(value) if name.lower() == "content-length" else length
        faults = json.loads(client.read(length)).get("errors", [])
        print(json.dumps([status, *[[fault["pointer"], fault["reason"]] for fault in faults]]))
"""


@pytest.mark.parametrize("bound, pointer", [({"devices": 3, "size": "10GiB"}, ""), ({"devices": 2000, "size": "3GiB"}, "/size")])
def test_the_quota_holds_under_a_thousand_creates_at_once(tenants, bound, pointer):
    """All wait in the connections of one user, sixteen from four processes, before the first is taken; so nothing but the count, or
    the sum of bytes, of what the requests before have made can refuse one. Then over a restart."""
    tenants.set_rules({**RULE, "changesPerMinute": 100000, **bound})
    assert tenants.server.tell("policy") == 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(user(tenants.server, AT_ONCE, ALICE)) for _ in range(4)]
        tenants.server.process.send_signal(signal.SIGSTOP)
        try:
            assert [client.stdout.readline() for client in clients] == ["sent\n"] * 4
        finally:
            tenants.server.process.send_signal(signal.SIGCONT)
        answers = [json.loads(line) for client in clients for line in client.stdout]
    assert len(answers) == 4 * 4 * 63
    assert [answer for answer in answers if answer not in ([201], [403, [pointer, "PolicyExceeded"]])] == []
    assert answers.count([201]) == 3
    tenants.server.stop()
    tenants.start()
    assert len(names_seen(tenants)) == 3
    ((status, problem),) = tenants.values(asks(("POST", "/devices", mine("fourth"))))
    assert status == 403 and problem["errors"][0]["pointer"] == pointer


def test_a_change_counts_the_other_devices(tenants):
    """And one that is gone leaves its place to the next."""
    for name in ("a", "b", "c"):
        create(tenants, name)
    first = f"/devices/u{ALICE}-a"
    answers = tenants.values(asks(("PATCH", first, {"size": "8GiB"}), ("PATCH", first, {"size": "9GiB"}),
                                  ("DELETE", f"{first}?wait", None), ("POST", "/devices?wait", mine("fourth"))))
    assert [status for status, _ in answers] == [200, 403, 204, 201]


def test_changes_in_a_minute(tenants):
    """Those that are refused count as well; reads do not, and another user has as many."""
    tenants.set_rules({**RULE, "changesPerMinute": 5})
    assert tenants.server.tell("policy") == 0
    code = """
def change(index):
    answer = ask(UnixConnection(path), "POST", "/devices", spec(f"u{uid}-{index}", size="20GiB"))
    return answer.status, answer.headers.get("Retry-After"), answer.json["type"]
print(json.dumps([change(index) for index in range(7)]))
print(json.dumps(ask(UnixConnection(path), "GET", "/devices").status))
"""
    for who in (ALICE, BOB):
        answers, read = tenants.values(code, uid=who)
        assert [status for status, _, _ in answers] == [403] * 5 + [429] * 2 and read == 200
        assert all(int(after) in range(1, 14) and kind.endswith("too-many-changes") for _, after, kind in answers[5:])
    assert tenants.server.ask("POST", "/devices", spec("ours")).status == 201


def test_a_tenant_pushes_out_no_event_of_others(tenants):
    """Who asks for events since then that he has lost, or root, has to list again; another tenant has missed nothing."""
    tenants.set_rules({**RULE, "changesPerMinute": 100000})
    assert tenants.server.tell("policy") == 0
    name, theirs = create(tenants, "a")["name"], create(tenants, "b", BOB)["name"]
    code = f"""
connection = UnixConnection(path)
print(json.dumps([ask(connection, "PATCH", "/devices/{name}", {{"size": f"{{n % 2 + 1}}GiB"}}).status for n in range(600)]))
"""
    assert set(tenants.values(code)[0]) == {200}
    since = 'print(ask(UnixConnection(path), "GET", "/events?after=1", None, {"Accept": "application/json"}).status)'
    for who, status in ((ALICE, 410), (BOB, 200)):
        assert tenants.values(since, uid=who) == [status]
    everything = tenants.server.ask("GET", "/events?limit=1000", headers={"Accept": "application/json"}).json["items"]
    devices = [event["device"]["name"] for event in everything]
    assert devices.count(name) <= 512 and theirs in devices
    assert tenants.server.ask("GET", "/events?after=1", headers={"Accept": "application/json"}).status == 410


def test_a_client_that_dies_half_way(tenants):
    """Before the last byte of its request nothing has happened; after it, the device is made, and its owner has it."""
    code = """
import socket
def begin(name, cut):
    body = json.dumps(spec(name, size="1GiB")).encode()
    head = f"POST /devices?wait HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(head.encode() + body[: len(body) - cut])
    return client
clients = begin(f"u{uid}-half", 1), begin(f"u{uid}-whole", 0)
while ask(UnixConnection(path), "GET", f"/devices/u{uid}-whole").status != 200:
    pass
os._exit(0)
"""
    tenants.run(code)
    assert names_seen(tenants) == [f"u{ALICE}-whole"]
    answers = tenants.values(asks(("GET", f"/devices/u{ALICE}-half", None), ("DELETE", f"/devices/u{ALICE}-whole?wait", None)))
    assert [status for status, _ in answers] == [404, 204]


def test_who_may_read_everything_changes_what_is_theirs(tenants):
    theirs = create(tenants, "b", BOB)["name"]
    answers = tenants.values(asks(("GET", f"/devices/{theirs}", None), ("PATCH", f"/devices/{theirs}", {"labels": {}}),
                                  ("DELETE", f"/devices/{theirs}", None), ("POST", f"/devices/{theirs}/stop", None),
                                  ("POST", "/devices", mine("a"))), groups=[READERS])
    assert [status for status, _ in answers] == [200, 403, 403, 403, 201]


def test_administrators_change_the_devices_of_tenants(tenants):
    name = create(tenants, "a")["name"]
    answer = tenants.server.ask("PATCH", f"/devices/{name}", {"size": "100GiB", "owner": {"mode": "0600"}})
    assert answer.status == 200 and answer.json["tenant"] == f"uid:{ALICE}"
    assert tenants.server.ask("POST", "/devices", spec("ours")).json["tenant"] is None
    assert names_seen(tenants) == [name]
    assert tenants.server.ask("DELETE", f"/devices/{name}?wait").status == 204


def test_the_device_of_a_tenant_keeps_a_recovery(tenants):
    """Also when an administrator changes it: the node of the tenant would outlive the disk."""
    name = create(tenants, "a")["name"]
    answer = tenants.server.ask("PATCH", f"/devices/{name}", {"recovery": {"onCrash": "none"}})
    assert answer.status == 422 and [fault["reason"] for fault in answer.json["errors"]] == ["NoRecoveryForTenant"]


def test_root_takes_no_name_of_a_tenant(tenants):
    """Else the tenant would learn of the device: its own would be refused. Administrators change what the tenant has made."""
    name = f"u{ALICE}-x"
    for method, target in (("POST", "/devices?wait"), ("PUT", f"/devices/{name}"), ("PUT", f"/devices/{name}?wait=ready")):
        problem = check_problem(tenants.server.ask(method, target, spec(name)), 422, "invalid-spec")
        assert [(error["pointer"], error["reason"]) for error in problem["errors"]] == [("/name", "NameOfTenant")]
    as_administrator = {"uid": STRANGER, "groups": [ADMINISTRATORS]}
    assert tenants.values(asks(("POST", "/devices", spec(name))), **as_administrator)[0][0] == 422
    assert tenants.values(asks(("GET", f"/devices/{name}", None)))[0][0] == 404
    for method, target, headers in (("PUT", f"/devices/{name}", {"If-Match": "*"}), ("PUT", f"/devices/{name}", {"If-Match": '"1"'}),
                                    ("POST", "/devices", {"If-Match": '"1"'})):
        check_problem(tenants.server.ask(method, target, spec(name), headers), 412, "precondition-failed")
    create(tenants, "x")
    faulty = mine("x", recovery={"onCrash": "none"})
    check_problem(tenants.server.ask("PUT", f"/devices/{name}", faulty, {"If-None-Match": "*"}), 412, "precondition-failed")
    assert tenants.server.ask("PUT", f"/devices/{name}", mine("x", size="2GiB")).status == 200
    assert tenants.server.ask("POST", "/devices", mine("x", size="2GiB")).json["tenant"] == f"uid:{ALICE}"
    for free in ("u-x", f"u{ALICE}", "x"):
        assert tenants.server.ask("POST", "/devices", spec(free)).status == 201


def test_a_name_that_root_took_before_the_rule_stays_and_is_taken(tenants):
    tenants.set_rules({**RULE, "devices": 0})  # gives no name
    assert tenants.server.tell("policy") == 0
    name = f"u{ALICE}-x"
    assert tenants.server.ask("POST", "/devices?wait", spec(name)).status == 201
    tenants.set_rules(RULE)
    assert tenants.server.tell("policy") == 0
    ((status, problem),) = tenants.values(asks(("POST", "/devices", mine("x"))))
    assert status == 409 and problem["type"].endswith("name-taken")
    assert tenants.values(asks(("GET", f"/devices/{name}", None)))[0][0] == 404
    assert tenants.server.ask("POST", "/devices", spec(name)).status == 200  # a repetition
    assert tenants.server.ask("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}).status == 200
    assert tenants.server.ask("DELETE", f"/devices/{name}?wait").status == 204
    assert tenants.server.ask("POST", "/devices", spec(name)).status == 422
    create(tenants, "x")


def test_a_number_of_others_is_taken_without_a_name(tenants):
    tenants.set_rules({**RULE, "ids": "5-9"})
    assert tenants.server.tell("policy") == 0
    create(tenants, "a", BOB, id=5)
    ((status, problem),) = tenants.values(asks(("POST", "/devices", mine("x", id=5))))
    assert status == 409 and problem["type"].endswith("number-taken") and str(BOB) not in json.dumps(problem)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_number_that_an_image_chose_is_not_a_tenant(tenants, container):
    """User 4001 of an image is not user 4001 of the host; CONTAINERS has a user namespace that translates nothing."""
    ((status, problem),) = tenants.values(asks(("POST", "/devices", mine("x"))), container=CONTAINERS[container])
    assert status == 403 and "--userns=keep-id" in problem["detail"]


MAPPED = CONTAINERS["users"].replace("0 0 100000", "0 4000 10")


def test_a_user_namespace_has_users_of_the_host(tenants):
    """User 1 of the container is user 4001 of the host, as /etc/subuid would have it."""
    code = MAPPED + "uid, groups = 1, []\n"
    ((status, device),) = tenants.values(asks(("POST", "/devices", mine("x"))), container=code)
    assert status == 201 and device["tenant"] == f"uid:{ALICE}"
    assert names_seen(tenants) == [f"u{ALICE}-x"]


def test_what_the_policy_took_away_is_gone(tenants):
    """A connection from before does not last, and the devices stay."""
    name = create(tenants, "a")["name"]
    with user(tenants.server, """
connection = UnixConnection(path)
print(ask(connection, "GET", "/devices").status, flush=True)
sys.stdin.readline()
try:
    print(ask(connection, "GET", "/devices").status)
except OSError:
    print("closed")
connection.close()
print(ask(UnixConnection(path), "GET", "/devices").status)
""", ALICE) as client:
        assert client.stdout.readline() == "200\n"
        tenants.set_rules({**RULE, "who": {"users": [BOB]}})
        assert tenants.server.tell("policy") == 0
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.read() == "closed\n403\n"
    assert tenants.server.ask("GET", f"/devices/{name}").json["status"]["phase"] == "Live"


def test_the_name_of_another_is_answered_as_fast_as_an_absent_one(tenants):
    """Both take the same way: the device is found, or not, and the name is refused before that counts."""
    tenants.set_rules({**RULE, "changesPerMinute": 100000})
    assert tenants.server.tell("policy") == 0
    for pair in names_of_others(tenants):
        assert not still_slower(ask_as_a_stranger(tenants, pair), plain(requests_of_a_stranger()))


# Its stderr is what systemd would have given it.
AS_A_SERVICE = ("sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh")


def audit_records(journal):
    """User, request, status, rule and generation (None: none is named) of what has been sent to the journal."""
    fields = [dict(line.split("=", 1) for line in record.decode().splitlines() if "=" in line) for record in journal]
    return [(int(one["CLIENT_UID"]), one["REQUEST"], one["STATUS"], one.get("CLIENT_RULE"), one.get("DEVICE_GENERATION"))
            for one in fields if "REQUEST" in one]


def test_the_journal_names_the_rule(monkeypatch):
    """By its file and line, also for what the rule refuses; a user whom no rule names is refused by none."""
    records, path = [], "policy.d/test.json"
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(f"{directory}/journal")
        monkeypatch.setenv("UBLKD_JOURNAL_SOCKET", f"{directory}/journal")
        reader = threading.Thread(target=lambda: records.extend(iter(lambda: journal.recv(65536), b"end")))
        reader.start()
        tenants = Tenants(directory, "--sqlite", under=AS_A_SERVICE)
        other = {**RULE, "name": "other", "who": {"users": [BOB]}}
        pathlib.Path(directory, path).write_text(f'{{"rules": [\n{json.dumps(other)},\n{json.dumps(RULE)}]}}\n', encoding="utf-8")
        assert tenants.server.tell("policy") == 0
        create(tenants, "a")
        tenants.values(asks(("POST", "/devices", mine("b", size="11GiB"))))
        create(tenants, "a", BOB)
        tenants.values(asks(("PATCH", f"/devices/u{BOB}-a", {"labels": {"a": "b"}})), uid=BOB)
        tenants.values(asks(("DELETE", "/devices/x", None)), uid=STRANGER)
        tenants.server.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"end", f"{directory}/journal")
        reader.join()
        found, place = audit_records(records), f"{directory}/{path}"
    assert found == [
        (ALICE, "POST /devices?wait=ready", "201", f"{place}:3", "1"), (ALICE, "POST /devices", "403", f"{place}:3", None),
        (BOB, "POST /devices?wait=ready", "201", f"{place}:2", "1"), (BOB, f"PATCH /devices/u{BOB}-a", "200", f"{place}:2", "2"),
        (STRANGER, "DELETE /devices/x", "403", None, None)]
