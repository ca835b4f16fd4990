import type { DescMethod } from "@bufbuild/protobuf";
import { createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { mapError, reasonOf, StoreUnavailableError } from "@rollcall/errors";
import { ANONYMOUS, type Caller } from "@rollcall/identity";
import { callerKey } from "../calls/call-context.ts";
import { definePolicies, type MethodPolicy } from "../calls/policy.ts";
import { type LogReader, noteRevision } from "../calls/revisions.ts";
import { awaitRevision } from "./await-revision.ts";

const ROW: MethodPolicy = { caller: "viewer", deadlineMs: 1_000, idempotent: true };
const ROWS = JobService.methods.map(({ localName }) => [localName, ROW]);
const POLICIES = definePolicies(JobService, { ...Object.fromEntries(ROWS), planJob: { ...ROW, readsLog: true } });
const { planJob: READS_LOG, getJob: READS_DATABASE } = JobService.method;
const KNOWN: Caller = { kind: "token", id: "t", role: "viewer" };

/** A log that ends at 10. This process has read it up to 5. */
class FakeLog implements LogReader {
  position = 5n;
  ends: bigint[] = [];
  asked = 0;
  failure: Error | null = null;
  reached: Promise<void> = Promise.resolve();

  async end(): Promise<bigint> {
    this.asked += 1;
    if (this.failure !== null) throw this.failure;
    return 10n;
  }

  noteEnd(revision: bigint): void {
    this.ends.push(revision);
  }

  caughtUpTo(): Promise<void> {
    return this.reached;
  }
}

interface Asked {
  readonly log: LogReader;
  readonly method?: DescMethod;
  readonly header?: string;
  readonly caller?: Caller;
  readonly withinMs?: number;
}

/** Make a call. Returns the reason of its error, or the header of its response. */
async function outcomeOf({ log, method = READS_LOG, header, caller = KNOWN, withinMs }: Asked) {
  const request = {
    ...{ stream: false, method, signal: new AbortController().signal },
    header: new Headers(header === undefined ? {} : { "rollcall-min-revision": header }),
    contextValues: createContextValues().set(callerKey, caller),
  };
  const next = async () => {
    for (const revision of [7n, 8n, 6n]) noteRevision({ values: request.contextValues }, revision);
    return { stream: false, header: new Headers() };
  };
  type Next = Parameters<Interceptor>[0];
  const call = awaitRevision(POLICIES, log, withinMs)(next as unknown as Next);
  return call(request as unknown as Parameters<Next>[0]).then(
    ({ header: sent }) => sent.get("rollcall-revision"),
    (error: unknown) => reasonOf(mapError(error)),
  );
}

describe("awaitRevision()", () => {
  it("should send the highest revision noted by the handler, and remember that the log has reached it", async () => {
    const log = new FakeLog();
    expect(await outcomeOf({ log })).toBe("8");
    expect(log).toMatchObject({ ends: [8n], asked: 0 });
  });

  it.each([
    ["0", "8"],
    ["10", "8"],
    ["007", "8"],
    ["11", "MIN_REVISION_AHEAD"],
    ["9223372036854775807", "MIN_REVISION_AHEAD"],
    ["9223372036854775808", "INVALID_MIN_REVISION"],
    ["-1", "INVALID_MIN_REVISION"],
    ["ten", "INVALID_MIN_REVISION"],
  ])("should answer revision %j with %s if the log ends at 10", async (header, outcome) => {
    for (const method of [READS_LOG, READS_DATABASE]) {
      expect(await outcomeOf({ log: new FakeLog(), method, header })).toBe(outcome);
    }
  });

  it("should not query the log for anonymous clients", async () => {
    const log = new FakeLog();
    expect(await outcomeOf({ log, header: "11", caller: ANONYMOUS })).toBe("8");
    expect(log.asked).toBe(0);
  });

  it("should only wait for methods that read the log, and at most for the time limit", async () => {
    const log = new FakeLog();
    log.reached = new Promise(() => {});
    expect(await outcomeOf({ log, method: READS_DATABASE, header: "10" })).toBe("8");
    expect(await outcomeOf({ log, header: "10", withinMs: 1 })).toBe("SERVICE_BEHIND");
  });

  it("should not affect methods that can answer without the database while it is unavailable", async () => {
    const log = new FakeLog();
    log.failure = new StoreUnavailableError("away");
    expect(await outcomeOf({ log, method: READS_DATABASE, header: "10" })).toBe("8");
    expect(await outcomeOf({ log, header: "10" })).toBe("STORE_UNAVAILABLE");
  });
});
