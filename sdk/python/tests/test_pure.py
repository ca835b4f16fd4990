"""Tests decisions that need no connection."""

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from rollcall.events.v1 import events_pb2
from rollcall.node.v1 import node_pb2
from rollcall.registry.v1 import registry_pb2

from rollcall import Bookmark, ConfigurationError, NodeView, RetryPolicy, RollcallError
from rollcall.bookmark import EventPosition
from rollcall.retry import attempt_limit, wait_before_resume, wait_before_retry
from rollcall.seen_revision import SeenRevision
from rollcall.target import Options, Target, parse_address, resolve_target

# The test vectors that all languages share.
VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def read_vectors(name: str) -> Any:
    return json.loads(VECTORS.joinpath(name).read_text(encoding="utf-8"))


def failure_of(one: dict[str, Any]) -> RollcallError:
    retry_after = one.get("retry_after_ms")
    return failure(
        grpc.StatusCode[one["code"]], None if retry_after is None else retry_after / 1_000, one.get("reason", "")
    )


def failure(code: grpc.StatusCode, retry_after: float | None = None, reason: str = "") -> RollcallError:
    return RollcallError(code, "no", reason, retry_after=retry_after)


class TestWaitBeforeRetry:
    @pytest.mark.parametrize(
        ("code", "retry_after", "is_repeatable", "waits"),
        [
            (grpc.StatusCode.UNAVAILABLE, None, True, True),
            (grpc.StatusCode.UNAVAILABLE, None, False, False),
            (grpc.StatusCode.ABORTED, None, True, False),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, 0.5, False, True),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, None, True, False),
            (grpc.StatusCode.NOT_FOUND, None, True, False),
            (grpc.StatusCode.DEADLINE_EXCEEDED, None, True, False),
        ],
    )
    def test_repeats_what_has_one_effect_and_may_succeed(
        self, code: grpc.StatusCode, retry_after: float | None, is_repeatable: bool, waits: bool
    ) -> None:
        wait = wait_before_retry(RetryPolicy(), failure(code, retry_after), 1, is_repeatable, 10.0, 0.5)
        assert (wait is not None) == waits

    def test_waits_as_long_as_the_server_asks(self) -> None:
        error = failure(grpc.StatusCode.UNAVAILABLE, 3.0)
        assert wait_before_retry(RetryPolicy(), error, 1, True, 10.0, 0.5) == 3.0
        assert wait_before_retry(RetryPolicy(), error, 1, True, 2.0, 0.5) is None

    def test_doubles_up_to_its_bounds(self) -> None:
        policy = RetryPolicy(attempts=8, first_wait=1.0, longest_wait=4.0)
        error = failure(grpc.StatusCode.UNAVAILABLE)
        waits = [wait_before_retry(policy, error, attempt, True, 100.0, 1.0) for attempt in range(1, 9)]
        assert waits == [1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, None]


class TestWaitBeforeResume:
    def test_ends_at_a_refusal(self) -> None:
        assert wait_before_resume(failure(grpc.StatusCode.OUT_OF_RANGE), 1, 0.5) is None
        assert wait_before_resume(failure(grpc.StatusCode.UNAVAILABLE), 1, 0.5) is not None

    def test_tries_once_more_with_a_renewed_token(self) -> None:
        expired = failure(grpc.StatusCode.UNAUTHENTICATED, reason="TOKEN_EXPIRED")
        assert wait_before_resume(expired, 1, 0.5) is not None
        assert wait_before_resume(expired, 2, 0.5) is None

    def test_is_bounded(self) -> None:
        assert wait_before_resume(failure(grpc.StatusCode.UNAVAILABLE), 1_000, 1.0) == 5.0


class TestVectors:
    def test_repeats_calls_and_opens_watches_again_by_the_table(self) -> None:
        vectors = read_vectors("retries.json")
        for one in vectors["retries"]:
            wait = wait_before_retry(
                RetryPolicy(), failure_of(one), one["attempt"], one["repeatable"], 1_000.0, one["random"]
            )
            assert (wait is None and one["wait_ms"] is None) or wait == pytest.approx(one["wait_ms"] / 1_000), one
        for one in vectors["attempts"]:
            limit = attempt_limit(RetryPolicy(), one["timeout_ms"] / 1000, one["attempt"], one["repeatable"])
            assert limit == (None if one["limit_ms"] is None else one["limit_ms"] / 1000)
        for one in vectors["resumes"]:
            wait = wait_before_resume(failure_of(one), one["breaks"], one["random"])
            assert (wait is None and one["wait_ms"] is None) or wait == pytest.approx(one["wait_ms"] / 1_000), one

    def test_reads_bookmarks(self) -> None:
        for one in read_vectors("retries.json")["bookmarks"]:
            if one["token"] is None:
                with pytest.raises(ValueError, match="not a bookmark"):
                    Bookmark.parse(one["text"])
            else:
                assert Bookmark.parse(one["text"]) == Bookmark(one["token"], int(one["revision"]))

    @pytest.mark.parametrize("one", read_vectors("retries.json")["revisions"], ids=lambda one: one["name"])
    def test_remembers_the_revision(self, one: dict[str, Any]) -> None:
        seen = SeenRevision()
        for step in one["steps"]:
            seen.answered([("rollcall-revision", step.get("answer", ""))])
            seen.heard(int(step.get("message", "0")))
            seen.failed(step.get("failure", ""))
        assert seen.header == one["sends"]


def message(token: str, *revisions: int) -> events_pb2.WatchEventsResponse:
    events = [events_pb2.Event(revision=revision) for revision in revisions]
    return events_pb2.WatchEventsResponse(events=events, resume_token=token, revision=max(revisions, default=0))


class TestEventPosition:
    def test_begins_within_a_message_that_was_read_half(self) -> None:
        position = EventPosition(events_pb2.WatchEventsRequest(subject="n"), None)
        position.completed(message("t0", 4))
        position.passed(position.unseen(message("t1", 5, 6, 7))[0])
        request = position.next_request()
        assert (request.resume_token, request.subject) == ("t0", "n")
        assert [event.revision for event in position.unseen(message("t1", 5, 6, 7))] == [6, 7]

    def test_forgets_nothing_at_a_message_that_stands_for_its_beginning(self) -> None:
        position = EventPosition(events_pb2.WatchEventsRequest(), Bookmark("t0", 5))
        position.completed(message("t0"))
        assert position.bookmark == Bookmark("t0", 5)
        assert [event.revision for event in position.unseen(message("t1", 5, 6))] == [6]

    def test_begins_by_revision_before_the_first_token(self) -> None:
        position = EventPosition(events_pb2.WatchEventsRequest(from_beginning=True), None)
        position.passed(events_pb2.Event(revision=3))
        assert position.next_request().after_revision == 3


def node(node_id: str, hostname: str = "") -> registry_pb2.NodeChange:
    return registry_pb2.NodeChange(upserted=node_pb2.Node(id=node_id, info=node_pb2.NodeInfo(hostname=hostname)))


class TestNodeView:
    def test_drops_what_a_later_snapshot_lacks(self) -> None:
        view = NodeView(registry_pb2.WatchNodesRequest())
        view.next_request()
        both = [node("a"), node("b")]
        view.apply(registry_pb2.WatchNodesResponse(changes=both, snapshot_complete=True, resume_token="t"))
        assert view.is_synced
        assert view.next_request().resume_token == "t"
        assert view.failed(failure(grpc.StatusCode.OUT_OF_RANGE, reason="REVISION_COMPACTED"))
        assert view.next_request().resume_token == ""
        assert view.apply(registry_pb2.WatchNodesResponse(changes=[node("b", "new"), node("c")])) != []
        assert set(view.nodes) == {"a", "b", "c"}
        (gone,) = view.apply(registry_pb2.WatchNodesResponse(snapshot_complete=True, resume_token="u"))
        assert (gone.before and gone.before.id, gone.after) == ("a", None)
        assert set(view.nodes) == {"b", "c"}

    def test_begins_a_broken_snapshot_again(self) -> None:
        view = NodeView(registry_pb2.WatchNodesRequest())
        view.next_request()
        view.apply(registry_pb2.WatchNodesResponse(changes=[node("a")], resume_token="within"))
        assert view.next_request().resume_token == ""
        view.apply(registry_pb2.WatchNodesResponse(changes=[node("b")], snapshot_complete=True, resume_token="t"))
        assert set(view.nodes) == {"b"}

    def test_ignores_what_changes_nothing(self) -> None:
        view = NodeView(registry_pb2.WatchNodesRequest())
        view.apply(registry_pb2.WatchNodesResponse(changes=[node("a")], snapshot_complete=True, resume_token="t"))
        assert view.apply(registry_pb2.WatchNodesResponse(changes=[node("a")])) == []
        assert view.apply(registry_pb2.WatchNodesResponse(changes=[registry_pb2.NodeChange(removed_id="z")])) == []


class TestResolveTarget:
    @pytest.mark.parametrize("case", read_vectors("targets.json"), ids=lambda case: str(case["name"]))
    def test_finds_the_control_plane_and_its_token(self, case: dict[str, Any], tmp_path: Path) -> None:
        home = tmp_path / "home"
        for name, text in {"home/.rollcall/keep": "", "cwd/keep": "", **case.get("files", {})}.items():
            tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            tmp_path.joinpath(name).write_text(text)
        named: dict[str, str] = case.get("options", {})
        options = Options(**{key: value.replace("HOME", str(home)) for key, value in named.items()})

        def resolve() -> Target:
            return resolve_target(options, case.get("env", {}), home, tmp_path / "cwd")

        if "error" in case:
            with pytest.raises(ConfigurationError) as refused:
                resolve()
            assert case["error"] in str(refused.value).replace("'", '"')
            return
        target = resolve()
        for service, url in case["addresses"].items():
            address = target.addresses[service]
            assert f"{'https' if address.is_tls else 'http'}://{address.authority}" == url
        for service, token in case["tokens"].items():
            assert target.credentials[service].token() == token, service
        ca_file, server_name = target.trust_for(target.addresses["registry"])
        assert str(ca_file or "") == case.get("ca_file", "")
        assert (server_name or "") == case.get("server_name", "")

    @pytest.mark.parametrize(
        ("host", "is_loopback"), [("127.0.0.1:1", True), ("[::1]:1", True), ("127.0.0.1.evil:1", False), ("a:1", False)]
    )
    def test_knows_this_machine(self, host: str, is_loopback: bool) -> None:
        assert parse_address(host, "a test", is_tls=False).is_loopback is is_loopback

    @pytest.mark.parametrize("case", read_vectors("addresses.json"), ids=lambda case: str(case["text"]))
    def test_reads_addresses(self, case: dict[str, Any]) -> None:
        if "refused" in case:
            with pytest.raises(ConfigurationError) as refused:
                parse_address(case["text"], "a test", is_tls=False)
            assert case["refused"] in str(refused.value)
            assert "hunter2" not in str(refused.value)
            return
        read = parse_address(case["text"], "a test", is_tls=case.get("tls", False))
        assert f"{'https' if read.is_tls else 'http'}://{read.authority}" == case["url"]
