"""Tests against a real control plane."""

import asyncio
import threading

import pytest
from rollcall.admin.v1 import admin_pb2
from rollcall.events.v1 import events_pb2
from rollcall.node.v1 import node_pb2
from rollcall.registry.v1 import registry_pb2

from conftest import NODE, ControlPlane, eventually
from rollcall import AsyncClient, Client, NodeCache, Reason, RefusedError

LABELS = events_pb2.WatchEventsRequest(types=["node.labels.changed"])


def set_label(client: Client, value: str, request_id: str = "") -> admin_pb2.SetNodeLabelsResponse:
    return client.admin.set_node_labels(
        admin_pb2.SetNodeLabelsRequest(node=NODE, set={"sdk": value}, request_id=request_id)
    )


class TestCalls:
    def test_lists_and_gets_nodes(self, control_plane: ControlPlane) -> None:
        with control_plane.client() as client:
            eventually(lambda: NODE in [node.id for node in client.registry.list_nodes.each()])
            found = client.registry.get_node(registry_pb2.GetNodeRequest(node=NODE)).node
            assert found.type == node_pb2.NODE_TYPE_COMPUTE

    def test_iterates_over_pages(self, control_plane: ControlPlane) -> None:
        with control_plane.client() as client:
            for number in range(5):
                set_label(client, f"page-{number}")
            request = events_pb2.ListEventsRequest(page_size=2, types=list(LABELS.types))
            values = [value_of(event) for event in client.events.list_events.each(request)]
            assert [value for value in values if value.startswith("page-")] == [f"page-{number}" for number in range(5)]

    def test_tells_the_reason_of_a_refusal(self, control_plane: ControlPlane) -> None:
        with control_plane.client() as client:
            with pytest.raises(RefusedError) as refused:
                client.registry.get_node(registry_pb2.GetNodeRequest(node="nowhere"))
            assert refused.value.reason == Reason.NODE_NOT_FOUND
            with pytest.raises(RefusedError) as invalid:
                client.registry.list_nodes(registry_pb2.ListNodesRequest(page_size=100_000))
            assert [violation.field for violation in invalid.value.violations] == ["page_size"]

    def test_tells_that_a_token_is_not_taken(self, control_plane: ControlPlane) -> None:
        with Client(control_plane.server, token="wrong") as client:
            with pytest.raises(RefusedError) as refused:
                client.registry.list_nodes()
            assert refused.value.reason == Reason.TOKEN_INVALID

    def test_has_one_effect_for_one_request_id(self, control_plane: ControlPlane) -> None:
        with control_plane.client() as client:
            before = client.events.list_events(events_pb2.ListEventsRequest(page_size=1000, types=list(LABELS.types)))
            answers = [set_label(client, "once", request_id="the-same") for _ in range(2)]
            assert answers[0] == answers[1]
            after = client.events.list_events(events_pb2.ListEventsRequest(page_size=1000, types=list(LABELS.types)))
            assert len(after.events) == len(before.events) + 1


class TestWatches:
    def test_loses_and_doubles_no_event_over_crashes(self, control_plane: ControlPlane) -> None:
        seen: list[str] = []
        with control_plane.client(timeout=60.0) as client, client.watch_events(LABELS) as watch:
            following = threading.Thread(target=lambda: seen.extend(value_of(event) for event in watch), daemon=True)
            following.start()
            eventually(lambda: watch.bookmark is not None)
            expected = []
            for crash in range(2):
                for number in range(20):
                    expected.append(f"crash-{crash}-{number}")
                    set_label(client, expected[-1])
                control_plane.kill()
                control_plane.start()
            set_label(client, "the-end")
            eventually(lambda: len(seen) >= len(expected) + 1)
            assert seen == [*expected, "the-end"]

    def test_goes_on_from_a_bookmark_within_a_message(self, control_plane: ControlPlane) -> None:
        with control_plane.client() as client:
            with client.watch_events(LABELS) as watch:
                threading.Thread(target=lambda: next(iter(watch), None), daemon=True).start()
                eventually(lambda: watch.bookmark is not None)
                start = watch.bookmark
            for number in range(10):
                set_label(client, f"mark-{number}")
            seen = []
            bookmark = start
            for _ in range(10):
                with client.watch_events(LABELS, bookmark=bookmark) as one:
                    seen.append(value_of(next(iter(one))))
                    bookmark = one.bookmark
            assert seen == [f"mark-{number}" for number in range(10)]

    def test_keeps_every_node_over_a_crash(self, control_plane: ControlPlane) -> None:
        changes: list[str] = []
        with control_plane.client(timeout=60.0) as client:
            with NodeCache(client, on_change=lambda it: changes.append(it.after.id if it.after else "")) as cache:
                cache.wait_until_synced()
                control_plane.kill()
                control_plane.start()
                set_label(client, "after-the-crash")

                def has_label() -> bool:
                    node = cache.get(NODE)
                    return node is not None and any(label.value == "after-the-crash" for label in node.labels)

                eventually(has_label)
                listed = {node.id for node in client.registry.list_nodes.each()}
                assert {node.id for node in cache.list()} == listed
                assert NODE in changes


class TestAsync:
    def test_calls_and_follows(self, control_plane: ControlPlane) -> None:
        async def run() -> list[str]:
            async with AsyncClient(control_plane.server, token_file=control_plane.token_file) as client:
                ids = [node.id async for node in client.registry.list_nodes.each()]
                assert NODE in ids
                with pytest.raises(RefusedError):
                    await client.registry.get_node(registry_pb2.GetNodeRequest(node="nowhere"))
                before = await client.events.list_events(events_pb2.ListEventsRequest(page_size=1000))
                for value in ("async-1", "async-2"):
                    request = admin_pb2.SetNodeLabelsRequest(node=NODE, set={"sdk": value})
                    await client.admin.set_node_labels(request)
                seen: list[str] = []
                async for event in client.watch_events(LABELS, bookmark=before.resume_token):
                    seen.append(value_of(event))
                    if seen[-1] == "async-2":
                        break
                return seen

        assert asyncio.run(run())[-2:] == ["async-1", "async-2"]


def value_of(event: events_pb2.Event) -> str:
    """The value of the label that these tests set."""
    return str(event.after["labels"]["sdk"])
