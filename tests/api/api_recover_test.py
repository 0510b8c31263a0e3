# SPDX-License-Identifier: MIT
"""POST /devices/NAME/recover: with consent to another store, and to losses that the client has seen."""

from api_server import check_problem, spec


def test_recover(server):
    server.ask("POST", "/devices?wait=ready", spec())
    answer = server.ask("POST", "/devices/data/recover")
    assert answer.status == 202 and answer.json["name"] == "data"
    check_problem(server.ask("POST", "/devices/other/recover"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/data/recover", {}), 400, "bad-request")
    server.ask("PUT", "/devices/data?wait=ready", spec(enabled=False))
    check_problem(server.ask("POST", "/devices/data/recover"), 409, "not-possible-now")


def test_recover_with_consent_to_another_store(server):
    server.ask("POST", "/devices?wait=ready", spec(id=0))
    check_problem(server.ask("POST", "/devices/data/recover?accept-backing=diskseq:9%2B0"), 409, "not-possible-now")
    server.tell("status data Failed BackingChanged It is another store.")
    backing = server.ask("GET", "/devices/data").json["status"]["backing"]
    assert (backing["identity"], backing["basis"], backing["lasting"], backing["kept"]) == ("wwid:first", "wwid", True, False)
    assert backing["found"] == {"identity": "diskseq:9+0", "basis": "diskseq", "lasting": False}
    check_problem(server.ask("POST", "/devices/data/recover?accept-backing=wwid:first"), 409, "not-possible-now")
    check_problem(server.ask("POST", "/devices/data/recover?accept-backing="), 400, "bad-request")
    check_problem(server.ask("POST", "/devices/data/restart?accept-backing=x"), 400, "bad-request")
    server.tell("busy 0 mounted at /srv")
    detail = check_problem(server.ask("POST", "/devices/data/recover?accept-backing=diskseq:9%2B0"), 409, "in-use")["detail"]
    assert "/srv" in detail
    assert server.ask("GET", "/devices/data").json["status"]["backing"]["identity"] == "wwid:first"
    server.tell("idle")
    assert server.ask("POST", "/devices/data/recover?accept-backing=diskseq:9%2B0").status == 202
    server.tell("status data Failed BackingChanged It is another store.")
    server.tell("busy 0 mounted at /srv")
    assert server.ask("POST", "/devices/data/recover?accept-backing=diskseq:9%2B0&force=true").status == 202
    assert "BackingAccepted" in [event["reason"] for event in server.ask(
        "GET", "/events?device=data", headers={"Accept": "application/json"}).json["items"]]


def test_recover_with_consent_to_another_store_of_several(server):
    """A consent is for one store, which the client names by the pointer of its target."""
    children = [{"type": "loop", "path": path} for path in ("/a.img", "/b.img", "/c.img")]
    server.ask("POST", "/devices?wait=ready", spec(id=0, target={"type": "stripe", "children": children}))
    server.tell("status data Failed BackingChanged It is another store.")
    stores = server.ask("GET", "/devices/data").json["status"]["backing"]["stores"]
    assert [store["target"] for store in stores] == [f"/target/children/{i}" for i in range(3)]
    assert [store["path"] for store in stores] == ["/a.img", "/b.img", "/c.img"]
    assert stores[0]["found"] is None and stores[1]["found"]["identity"] == "wwid:found-1"

    def recover(query):
        return server.ask("POST", f"/devices/data/recover?{query}")

    one, other = "store=/target/children/1", "store=/target/children/2"
    for query in (one, "store=&accept-backing=x", "store=/targets&accept-backing=x", "store=/targetfoo&accept-backing=x",
                  "store=children/1&accept-backing=x"):
        check_problem(recover(query), 400, "bad-request")
    check_problem(server.ask("POST", f"/devices/data/restart?{one}"), 400, "bad-request")
    for query in (
        "accept-backing=wwid:found-1",  # of which store?
        "store=/target&accept-backing=wwid:found-1",
        "store=/target/children/1/path&accept-backing=wwid:found-1",
        "store=/target/children/3&accept-backing=wwid:found-1",
        "store=/target/children/0&accept-backing=wwid:found-1",
        f"{other}&accept-backing=wwid:found-1",
        f"{one}&accept-backing=wwid:1",
    ):
        check_problem(recover(query), 409, "not-possible-now")
    server.tell("busy 0 mounted at /srv")
    check_problem(recover(f"{one}&accept-backing=wwid:found-1"), 409, "in-use")
    server.tell("idle")
    assert recover(f"{one}&accept-backing=wwid:found-1").status == 202
    server.tell("status data Failed BackingChanged It is another store.")
    check_problem(recover(f"{other}&accept-backing=wwid:found-1"), 409, "not-possible-now")
    assert recover(f"{other}&accept-backing=wwid:found-2").status == 202


def test_the_only_store_of_a_disk_has_no_pointer(server):
    server.ask("POST", "/devices?wait=ready", spec(id=0))
    server.tell("status data Failed BackingChanged It is another store.")
    check_problem(server.ask("POST", "/devices/data/recover?store=/target&accept-backing=diskseq:9%2B0"), 409, "not-possible-now")


def test_a_loss_that_the_client_has_not_seen_is_not_accepted(server):
    """A fault that comes between the client's GET and its consent is not part of the consent."""
    server.ask("POST", "/devices?wait=ready", spec())
    assert server.ask("GET", "/devices/data").json["status"]["writeErrors"] is None
    check_problem(server.ask("POST", "/devices/data/restart?accept-write-errors=flush-1-2a"), 409, "not-possible-now")
    server.tell("status data Live FlushFailed It serves.")
    seen = server.ask("GET", "/devices/data").json["status"]["writeErrors"]
    assert seen == "flush-1-2a"
    server.tell("status data Live BackingTruncated It serves.")
    for token in (seen, "true", "cut-2-2b", "flush-1-2a.cut-1-2b"):
        refused = server.ask("POST", f"/devices/data/restart?accept-write-errors={token}")
        check_problem(refused, 409, "not-possible-now")
        assert '"flush-1-2a.cut-2-2b"' in refused.json["detail"]
    for token in ("", "a%20b"):
        check_problem(server.ask("POST", f"/devices/data/restart?accept-write-errors={token}"), 400, "bad-request")
    events = "/events?device=data"
    accept = {"Accept": "application/json"}
    assert "WriteErrorsAccepted" not in str(server.ask("GET", events, headers=accept).json)
    assert server.ask("POST", "/devices/data/restart?accept-write-errors=flush-1-2a.cut-2-2b").status == 202
    assert "WriteErrorsAccepted" in str(server.ask("GET", events, headers=accept).json)


def test_a_single_loss_needs_no_name(server):
    server.ask("POST", "/devices?wait=ready", spec())
    server.tell("status data Live FlushFailed It serves.")
    assert server.ask("POST", "/devices/data/restart?accept-write-errors=true").status == 202
