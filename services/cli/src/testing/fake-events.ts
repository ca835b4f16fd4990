import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { type Event, EventSchema, EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import { NOW_MS } from "./sample-nodes.ts";

/** What a stream does after it has sent what there is. */
export type StreamEnding =
  /** Hold on until the client leaves. */
  | "stay"
  /** Break. */
  | "break"
  /** Cut the client as too slow, with the token of one event less than it was sent. */
  | "too-slow";

/** The log of a fake control plane. Tokens are "token-of-revision-N". */
export class FakeEvents {
  readonly log: Event[] = [];
  /** How the next streams end, in order; further ones stay. */
  readonly endings: StreamEnding[] = [];
  /** Set to refuse everything that asks for events at this revision or below. */
  compactedRevision = 0n;

  clear(): void {
    this.log.length = 0;
    this.endings.length = 0;
    this.compactedRevision = 0n;
  }

  /** Let something happen. */
  add(changes: Partial<Event> = {}): void {
    const revision = BigInt(this.log.length + 1);
    const event = create(EventSchema, {
      id: `id-${revision}`,
      revision,
      time: timestampFromMs(NOW_MS + Number(revision) * 1_000),
      type: "node.approved",
      subject: `n${revision}`,
      actor: "token:admin",
      reason: "OPERATOR_APPROVED",
      message: "looks good",
      before: { membership: "PENDING" },
      after: { membership: "APPROVED" },
    });
    this.log.push(Object.assign(event, changes));
  }

  /** Serve it; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    const { log, endings } = this;
    const check = (revision: bigint) => this.#check(revision);
    router.service(EventService, {
      republishEvents: (request, context) => {
        const { fromRevision, requestId } = request;
        enter("RepublishEvents", `${fromRevision} ${requestId}`.trimEnd(), context);
        check(fromRevision - 1n);
        return { fromRevision, throughRevision: BigInt(log.length) };
      },
      listEvents: (request, context) => {
        const { $typeName, afterRevision, ...asked } = request;
        enter("ListEvents", `${afterRevision} ${JSON.stringify(asked)}`, context);
        check(afterRevision);
        const start = request.pageToken === "" ? Number(afterRevision) : Number(request.pageToken);
        const end = start + request.pageSize;
        return {
          events: log.slice(start, end),
          nextPageToken: end < log.length ? `${end}` : "",
          resumeToken: tokenOf(Math.min(end, log.length)),
        };
      },
      watchEvents: async function* (request, context) {
        const { case: kind = "now", value = "" } = request.start;
        const { types, subject, actor } = request;
        enter("WatchEvents", `${kind} ${value} ${types} ${subject} ${actor}`.trimEnd(), context);
        if (kind === "afterRevision") check(BigInt(value));
        let from = kind === "now" ? log.length : Number(/\d+$/.exec(String(value))?.[0] ?? 0);
        // A bookmark, then one event a message.
        yield { resumeToken: tokenOf(from), revision: BigInt(from) };
        for (; from < log.length; from += 1) {
          yield { events: log.slice(from, from + 1), resumeToken: tokenOf(from + 1) };
        }
        const ending = endings.shift() ?? "stay";
        if (ending === "break") throw new ConnectError("the server is ending", Code.Unavailable);
        if (ending === "too-slow") throw tooSlow(tokenOf(from - 1));
        // Never: what is written after the client has left is reported on the console.
        await new Promise(() => {});
      },
    });
  }

  #check(revision: bigint): void {
    if (revision === 0n || revision >= this.compactedRevision) return;
    const value = { reason: "REVISION_COMPACTED", domain: "rollcall.io" };
    const message = `events up to revision ${this.compactedRevision} have been forgotten; list again`;
    throw new ConnectError(message, Code.OutOfRange, undefined, [{ desc: ErrorInfoSchema, value }]);
  }
}

function tokenOf(revision: number): string {
  return `token-of-revision-${revision}`;
}

function tooSlow(resumeToken: string): ConnectError {
  const value = { reason: "WATCHER_TOO_SLOW", domain: "rollcall.io", metadata: { resumeToken } };
  return new ConnectError("the watcher does not keep up", Code.ResourceExhausted, undefined, [
    { desc: ErrorInfoSchema, value },
  ]);
}
