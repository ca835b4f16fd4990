"""How one call is made: deadline, credentials, request ids, retries and errors, alike for threads and asyncio."""

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

from .errors import RollcallError, UnreachableError, error_of_rpc
from .retry import RetryPolicy, wait_before_retry
from .seen_revision import SeenRevision

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Item = TypeVar("Item")
Metadata = tuple[tuple[str, str], ...]

_REQUEST_ID = "request_id"


@dataclass(frozen=True)
class MethodInfo(Generic[Request, Response]):
    """What is known of a method from the schema."""

    path: str
    """For example ``/rollcall.registry.v1.RegistryService/GetNode``."""
    request: type[Request]
    response: type[Response]
    is_read: bool
    """Whether it changes nothing, so that it may be repeated."""
    items: str = ""
    """The field of the answer that holds a page's items; empty for a method without pages."""

    def prepared(self, request: Request | None) -> tuple[Request, bool]:
        """The message to send, and whether sending it twice has one effect. A missing request id is made here."""
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


@dataclass(frozen=True)
class CallOptions:
    """What holds for every call of a client."""

    timeout: float = 10.0
    """Seconds that a call may take, its retries included, unless it says otherwise."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    metadata: Callable[[], Metadata] = tuple
    """Called for each call: what proves who calls."""
    seen: SeenRevision = field(default_factory=SeenRevision)
    """One for all addresses of a control plane."""

    def all_metadata(self) -> Metadata:
        """The metadata of one call. It may wait for an issuer that renews a login."""
        return self.metadata() + self.seen.metadata()

    def failure_of(self, error: grpc.RpcError | RollcallError) -> RollcallError:
        """The exception for what a call failed with."""
        failure = error_of_rpc(error)
        self.seen.failed(failure.reason)
        return failure

    def heard(self, message: Message) -> None:
        """Note the revision of a stream's message."""
        self.seen.heard(getattr(message, "revision", 0))


class UnaryMethod(Generic[Request, Response]):
    """A method with one answer; call it with its request message."""

    def __init__(self, channel: grpc.Channel, info: MethodInfo[Request, Response], options: CallOptions) -> None:
        self.info = info
        self._options = options
        self._call = channel.unary_unary(
            info.path, request_serializer=info.request.SerializeToString, response_deserializer=info.response.FromString
        )

    def __call__(self, request: Request | None = None, *, timeout: float | None = None) -> Response:
        """Make the call. Raises RollcallError."""
        message, is_repeatable = self.info.prepared(request)
        deadline = time.monotonic() + (self._options.timeout if timeout is None else timeout)
        attempt = 0
        while True:
            attempt += 1
            remaining = deadline - time.monotonic()
            try:
                metadata = self._options.all_metadata()
                found = self._call.with_call(message, timeout=max(remaining, 0.0), metadata=metadata)
                answer: Response = found[0]
                self._options.seen.answered(found[1].initial_metadata())
                return answer
            except (grpc.RpcError, RollcallError) as error:
                failure = self._options.failure_of(error)
                left = deadline - time.monotonic()
                wait = wait_before_retry(self._options.retry, failure, attempt, is_repeatable, left, random.random())
                if wait is None:
                    raise failure from error
            time.sleep(wait)


class PagedMethod(UnaryMethod[Request, Response], Generic[Request, Response, Item]):
    """A method that answers pages. ``each()`` iterates over the items of all of them."""

    def each(self, request: Request | None = None, *, timeout: float | None = None) -> Iterator[Item]:
        """Every item, page after page; ``timeout`` is a page's. Raises RollcallError."""
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
    """A method that answers a stream."""

    def __init__(self, channel: grpc.Channel, info: MethodInfo[Request, Response], options: CallOptions) -> None:
        self.info = info
        self._options = options
        self._call = channel.unary_stream(
            info.path, request_serializer=info.request.SerializeToString, response_deserializer=info.response.FromString
        )

    def __call__(self, request: Request | None = None, *, silence: float | None = None) -> Stream[Response]:
        """Open the stream. It ends with UNAVAILABLE when nothing comes for ``silence`` seconds."""
        message = self.info.request() if request is None else request
        return Stream(self._call(message, metadata=self._options.all_metadata()), silence, self._options)


class Stream(Generic[Response]):
    """The messages of one stream, as an iterator. ``close()`` ends it."""

    def __init__(self, call: Any, silence: float | None, options: CallOptions) -> None:
        self._call = call
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
        except grpc.RpcError as error:
            raise (_fell_silent() if self._is_silent else self._options.failure_of(error)) from error
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End the stream; iteration stops."""
        self._call.cancel()

    def __enter__(self) -> Stream[Response]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fall_silent(self) -> None:
        self._is_silent = True
        self._call.cancel()


class AsyncUnaryMethod(Generic[Request, Response]):
    """A method with one answer, for asyncio; await it with its request message."""

    def __init__(self, channel: grpc.aio.Channel, info: MethodInfo[Request, Response], options: CallOptions) -> None:
        self.info = info
        self._options = options
        self._call = channel.unary_unary(
            info.path, request_serializer=info.request.SerializeToString, response_deserializer=info.response.FromString
        )

    async def __call__(self, request: Request | None = None, *, timeout: float | None = None) -> Response:
        """Make the call. Raises RollcallError."""
        message, is_repeatable = self.info.prepared(request)
        deadline = time.monotonic() + (self._options.timeout if timeout is None else timeout)
        attempt = 0
        while True:
            attempt += 1
            remaining = deadline - time.monotonic()
            try:
                # Files are read, and an issuer may be asked.
                metadata = await asyncio.to_thread(self._options.all_metadata)
                call = self._call(message, timeout=max(remaining, 0.0), metadata=metadata)
                answer: Response = await call
                self._options.seen.answered(await call.initial_metadata())
                return answer
            except (grpc.RpcError, RollcallError) as error:
                failure = self._options.failure_of(error)
                left = deadline - time.monotonic()
                wait = wait_before_retry(self._options.retry, failure, attempt, is_repeatable, left, random.random())
                if wait is None:
                    raise failure from error
            await asyncio.sleep(wait)


class AsyncPagedMethod(AsyncUnaryMethod[Request, Response], Generic[Request, Response, Item]):
    """A method that answers pages, for asyncio. ``each()`` iterates over the items of all of them."""

    async def each(self, request: Request | None = None, *, timeout: float | None = None) -> AsyncIterator[Item]:
        """Every item, page after page; ``timeout`` is a page's. Raises RollcallError."""
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
    """A method that answers a stream, for asyncio."""

    def __init__(self, channel: grpc.aio.Channel, info: MethodInfo[Request, Response], options: CallOptions) -> None:
        self.info = info
        self._options = options
        self._call = channel.unary_stream(
            info.path, request_serializer=info.request.SerializeToString, response_deserializer=info.response.FromString
        )

    def __call__(self, request: Request | None = None, *, silence: float | None = None) -> AsyncStream[Response]:
        """Open the stream. It ends with UNAVAILABLE when nothing comes for ``silence`` seconds."""
        message = self.info.request() if request is None else request

        async def open_call() -> Any:
            return self._call(message, metadata=await asyncio.to_thread(self._options.all_metadata))

        return AsyncStream(open_call, silence, self._options)


class AsyncStream(Generic[Response]):
    """The messages of one stream, as an asynchronous iterator. ``close()`` ends it."""

    def __init__(self, open_call: Callable[[], Awaitable[Any]], silence: float | None, options: CallOptions) -> None:
        self._options = options
        self._open = open_call
        self._call: Any = None
        self._silence = silence
        self._is_closed = False

    def __aiter__(self) -> AsyncIterator[Response]:
        return self

    async def __anext__(self) -> Response:
        if self._call is None:
            call = await self._open()
            self._call = call
            if self._is_closed:
                call.cancel()
        try:
            message = await asyncio.wait_for(self._call.read(), self._silence)
        except asyncio.TimeoutError as error:
            self._call.cancel()
            raise _fell_silent() from error
        except grpc.RpcError as error:
            raise self._options.failure_of(error) from error
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        answer: Response = message
        self._options.heard(answer)
        return answer

    def close(self) -> None:
        """End the stream."""
        self._is_closed = True
        if self._call is not None:
            self._call.cancel()


def _fell_silent() -> RollcallError:
    return UnreachableError(grpc.StatusCode.UNAVAILABLE, "the stream fell silent")
