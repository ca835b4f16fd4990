"""Makes one call, in the same way for threads and asyncio. Adds deadlines, credentials and request ids, retries, and
converts errors.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from .connection import Connection, Path
from .errors import RollcallError, UnreachableError, error_of_rpc
from .retry import SHORTEST_ATTEMPT, RetryPolicy, attempt_limit, wait_before_retry
from .seen_revision import SeenRevision

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Item = TypeVar("Item")
Metadata = tuple[tuple[str, str], ...]

_REQUEST_ID = "request_id"


@dataclass(frozen=True)
class MethodInfo(Generic[Request, Response]):
    """What the schema says about a method."""

    path: str
    """For example ``/rollcall.registry.v1.RegistryService/GetNode``."""
    request: type[Request]
    response: type[Response]
    is_read: bool
    """Whether the method changes nothing, so that a call can be repeated."""
    items: str = ""
    """The field of the response that holds a page's items; empty for a method without pages."""

    def prepared(self, request: Request | None) -> tuple[Request, bool]:
        """The message to send, and whether sending it twice has the same effect as sending it once. Adds a missing
        request id.
        """
        message = self.request() if request is None else request
        if self.is_read:
            return message, True
        if _REQUEST_ID not in self.request.DESCRIPTOR.fields_by_name:
            return message, False
        if not getattr(message, _REQUEST_ID):
            copy = self.request()
            copy.CopyFrom(message)
            setattr(copy, _REQUEST_ID, str(uuid.uuid4()))
            message = copy
        return message, True

    def unary_on(self, channel: Any) -> Any:
        """Return the function that makes the call over a channel."""
        return channel.unary_unary(self.path, **self._forms())

    def stream_on(self, channel: Any) -> Any:
        """Return the function that opens the stream over a channel."""
        return channel.unary_stream(self.path, **self._forms())

    def _forms(self) -> dict[str, Any]:
        serialize, deserialize = self.request.SerializeToString, self.response.FromString
        return {"request_serializer": serialize, "response_deserializer": deserialize}


class Attempts:
    """The attempts of one call: their time limits, and the delays between them."""

    def __init__(self, options: CallOptions, timeout: float | None, is_repeatable: bool) -> None:
        self._options = options
        self._timeout = options.timeout if timeout is None else timeout
        self._deadline = time.monotonic() + self._timeout
        self._is_repeatable = is_repeatable
        self._number = 0
        self._limit: float | None = None

    def begin(self) -> float:
        """Begin the next attempt. Return its time limit in seconds."""
        self._number += 1
        self._limit = attempt_limit(self._options.retry, self._timeout, self._number, self._is_repeatable)
        remaining = max(self._deadline - time.monotonic(), 0.0)
        return remaining if self._limit is None else min(self._limit, remaining)

    def wait_after(self, failure: RollcallError) -> float | None:
        """Return the seconds to wait before the next attempt. Return None if there is no next attempt."""
        left = self._deadline - time.monotonic()
        is_stuck = self._limit is not None and failure.code is grpc.StatusCode.DEADLINE_EXCEEDED
        # Treat the timeout as a retryable failure, because only this attempt has timed out and not the call.
        seen = UnreachableError(grpc.StatusCode.UNAVAILABLE, "no answer") if is_stuck else failure
        policy = self._options.retry
        return wait_before_retry(policy, seen, self._number, self._is_repeatable, left, random.random())


def is_silent(failure: RollcallError, limit: float) -> bool:
    """Whether the path may be dead. A timeout shorter than SHORTEST_ATTEMPT does not prove anything."""
    return failure.code is grpc.StatusCode.DEADLINE_EXCEEDED and limit >= SHORTEST_ATTEMPT


@dataclass(frozen=True)
class CallOptions:
    """The settings for every call of a client."""

    timeout: float = 10.0
    """The time limit of a call in seconds, including retries, unless the call sets its own."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    metadata: Callable[[], Metadata] = tuple
    """Returns the credentials for each call."""
    seen: SeenRevision = field(default_factory=SeenRevision)
    """The highest revision seen, shared by all addresses of a control plane."""

    def all_metadata(self) -> Metadata:
        """Return the metadata of one call. This may wait for an issuer that renews a login."""
        return self.metadata() + self.seen.metadata()

    def failure_of(self, error: grpc.RpcError | RollcallError) -> RollcallError:
        """Convert the error of a failed call to an exception."""
        failure = error_of_rpc(error)
        self.seen.failed(failure.reason)
        return failure

    def heard(self, message: Message) -> None:
        """Record the revision of a stream's message."""
        self.seen.heard(getattr(message, "revision", 0))


class UnaryMethod(Generic[Request, Response]):
    """A unary method. Call it with its request message."""

    def __init__(
        self, connection: Connection[grpc.Channel], info: MethodInfo[Request, Response], options: CallOptions
    ) -> None:
        self.info = info
        self._options = options
        self._connection = connection

    def __call__(self, request: Request | None = None, *, timeout: float | None = None) -> Response:
        """Make the call. Raises RollcallError."""
        message, is_repeatable = self.info.prepared(request)
        attempts = Attempts(self._options, timeout, is_repeatable)
        while True:
            limit = attempts.begin()
            try:
                return self._attempt(message, limit)
            except (grpc.RpcError, RollcallError) as error:
                failure = self._options.failure_of(error)
                wait = attempts.wait_after(failure)
                if wait is None:
                    raise failure from error
            time.sleep(wait)

    def _attempt(self, message: Request, limit: float) -> Response:
        metadata = self._options.all_metadata()
        path = self._connection.acquire()
        try:
            found = self.info.unary_on(path.channel).with_call(message, timeout=limit, metadata=metadata)
            answer: Response = found[0]
            self._options.seen.answered(found[1].initial_metadata())
            return answer
        except grpc.RpcError as error:
            if is_silent(error_of_rpc(error), limit):
                self._connection.replace(path)
            raise
        finally:
            self._connection.release(path)


class PagedMethod(UnaryMethod[Request, Response], Generic[Request, Response, Item]):
    """A method that returns pages. ``each()`` iterates over the items of all pages."""

    def each(self, request: Request | None = None, *, timeout: float | None = None) -> Iterator[Item]:
        """Iterate over the items of all pages. ``timeout`` is the limit per page. Raises RollcallError."""
        message = self.info.request()
        if request is not None:
            message.CopyFrom(request)
        while True:
            answer = self(message, timeout=timeout)
            yield from getattr(answer, self.info.items)
            token = answer.next_page_token  # type: ignore[attr-defined]
            if not token:
                return
            message.page_token = token  # type: ignore[attr-defined]


class StreamMethod(Generic[Request, Response]):
    """A method that returns a stream."""

    def __init__(
        self, connection: Connection[grpc.Channel], info: MethodInfo[Request, Response], options: CallOptions
    ) -> None:
        self.info = info
        self._options = options
        self._connection = connection

    def __call__(self, request: Request | None = None, *, silence: float | None = None) -> Stream[Response]:
        """Open the stream. The stream ends with UNAVAILABLE if nothing arrives for ``silence`` seconds."""
        message = self.info.request() if request is None else request
        metadata = self._options.all_metadata()
        use = PathUse(self._connection)
        return Stream(self.info.stream_on(use.channel)(message, metadata=metadata), silence, self._options, use)


class PathUse:
    """Holds the path of one stream until the stream ends."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._path: Path[Any] | None = connection.acquire()
        self.channel = self._path.channel

    def end(self, *, is_silent: bool = False) -> None:
        """Release the path when the stream has ended. Any thread can call this method, more than once."""
        path, self._path = self._path, None
        if path is None:
            return
        if is_silent:
            self._connection.replace(path)
        self._connection.release(path)


class Stream(Generic[Response]):
    """The messages of one stream, as an iterator. ``close()`` ends it."""

    def __init__(self, call: Any, silence: float | None, options: CallOptions, use: PathUse) -> None:
        self._call = call
        self._use = use
        self._silence = silence
        self._options = options
        self._is_silent = False

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        timer = None
        if self._silence is not None:
            timer = threading.Timer(self._silence, self._fall_silent)
            timer.daemon = True
            timer.start()
        try:
            message: Response = next(self._call)
            self._options.heard(message)
            return message
        except StopIteration:
            self._use.end()
            raise
        except grpc.RpcError as error:
            self._use.end(is_silent=self._is_silent)
            raise (_fell_silent() if self._is_silent else self._options.failure_of(error)) from error
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End the stream, and with it the iteration."""
        self._call.cancel()
        self._use.end()

    def __enter__(self) -> Stream[Response]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fall_silent(self) -> None:
        self._is_silent = True
        self._call.cancel()


class AsyncUnaryMethod(Generic[Request, Response]):
    """A unary method for asyncio. Await it with its request message."""

    def __init__(
        self, connection: Connection[grpc.aio.Channel], info: MethodInfo[Request, Response], options: CallOptions
    ) -> None:
        self.info = info
        self._options = options
        self._connection = connection

    async def __call__(self, request: Request | None = None, *, timeout: float | None = None) -> Response:
        """Make the call. Raises RollcallError."""
        message, is_repeatable = self.info.prepared(request)
        attempts = Attempts(self._options, timeout, is_repeatable)
        while True:
            limit = attempts.begin()
            try:
                return await self._attempt(message, limit)
            except (grpc.RpcError, RollcallError) as error:
                failure = self._options.failure_of(error)
                wait = attempts.wait_after(failure)
                if wait is None:
                    raise failure from error
            await asyncio.sleep(wait)

    async def _attempt(self, message: Request, limit: float) -> Response:
        # Run this in a thread, because it may read files and wait for an issuer.
        metadata = await asyncio.to_thread(self._options.all_metadata)
        path = self._connection.acquire()
        try:
            call = self.info.unary_on(path.channel)(message, timeout=limit, metadata=metadata)
            answer: Response = await call
            self._options.seen.answered(await call.initial_metadata())
            return answer
        except grpc.RpcError as error:
            if is_silent(error_of_rpc(error), limit):
                self._connection.replace(path)
            raise
        finally:
            self._connection.release(path)


class AsyncPagedMethod(AsyncUnaryMethod[Request, Response], Generic[Request, Response, Item]):
    """A method that returns pages, for asyncio. ``each()`` iterates over the items of all pages."""

    async def each(self, request: Request | None = None, *, timeout: float | None = None) -> AsyncIterator[Item]:
        """Iterate over the items of all pages. ``timeout`` is the limit per page. Raises RollcallError."""
        message = self.info.request()
        if request is not None:
            message.CopyFrom(request)
        while True:
            answer = await self(message, timeout=timeout)
            for item in getattr(answer, self.info.items):
                yield item
            token = answer.next_page_token  # type: ignore[attr-defined]
            if not token:
                return
            message.page_token = token  # type: ignore[attr-defined]


class AsyncStreamMethod(Generic[Request, Response]):
    """A method that returns a stream, for asyncio."""

    def __init__(
        self, connection: Connection[grpc.aio.Channel], info: MethodInfo[Request, Response], options: CallOptions
    ) -> None:
        self.info = info
        self._options = options
        self._connection = connection

    def __call__(self, request: Request | None = None, *, silence: float | None = None) -> AsyncStream[Response]:
        """Open the stream. The stream ends with UNAVAILABLE if nothing arrives for ``silence`` seconds."""
        message = self.info.request() if request is None else request

        async def open_call() -> tuple[Any, PathUse]:
            metadata = await asyncio.to_thread(self._options.all_metadata)
            use = PathUse(self._connection)
            return self.info.stream_on(use.channel)(message, metadata=metadata), use

        return AsyncStream(open_call, silence, self._options)


class AsyncStream(Generic[Response]):
    """The messages of one stream, as an asynchronous iterator. ``close()`` ends it."""

    def __init__(
        self, open_call: Callable[[], Awaitable[tuple[Any, PathUse]]], silence: float | None, options: CallOptions
    ) -> None:
        self._options = options
        self._open = open_call
        self._call: Any = None
        self._use: PathUse | None = None
        self._silence = silence
        self._is_closed = False

    def __aiter__(self) -> AsyncIterator[Response]:
        return self

    async def __anext__(self) -> Response:
        if self._call is None:
            self._call, self._use = await self._open()
            if self._is_closed:
                self.close()
        try:
            message = await asyncio.wait_for(self._call.read(), self._silence)
        except asyncio.TimeoutError as error:
            self._call.cancel()
            self._end(is_silent=True)
            raise _fell_silent() from error
        except grpc.RpcError as error:
            self._end()
            raise self._options.failure_of(error) from error
        if message is grpc.aio.EOF:
            self._end()
            raise StopAsyncIteration
        answer: Response = message
        self._options.heard(answer)
        return answer

    def close(self) -> None:
        """End the stream."""
        self._is_closed = True
        if self._call is not None:
            self._call.cancel()
        self._end()

    def _end(self, *, is_silent: bool = False) -> None:
        if self._use is not None:
            self._use.end(is_silent=is_silent)


def _fell_silent() -> RollcallError:
    return UnreachableError(grpc.StatusCode.UNAVAILABLE, "the stream received nothing for too long")
