import { randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Event, WatchEventsResponse } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { NewEvent } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import { compactEvents, currentRevision } from "@rollcall/store";
import { appendEvents, createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { type Watched, watchInBackground } from "../testing/watcher.ts";

type Request = Parameters<Rig["events"]["watchEvents"]>[0];

const BEGINNING = { start: { case: "fromBeginning", value: true } } as const;
let rig: Rig;
let watches: Watched<WatchEventsResponse>[] = [];

async function start(watchLimits: NonNullable<Parameters<typeof startRig>[1]>["watchLimits"] = {}) {
  rig = await startRig(await createTestDatabase(), {
    watchLimits: { bookmarkMs: 60_000, ...watchLimits },
  });
}

beforeEach(() => {
  watches = [];
});
afterEach(async () => {
  await Promise.all(watches.map((it) => it.stop()));
  await rig.close();
});

function watch(request: Request): Watched<WatchEventsResponse> {
  const watched = watchInBackground((signal) => rig.events.watchEvents(request, { signal, timeoutMs: 0 }));
  watches.push(watched);
  return watched;
}

async function append(...subjects: readonly string[]): Promise<bigint> {
  return rig.store.transaction((tx) =>
    appendEvents(
      tx,
      subjects.map((it) => eventOf(it)),
    ),
  );
}

function eventOf(subject: string, changes: Partial<NewEvent> = {}): NewEvent {
  return {
    type: "node.approved",
    subject,
    actor: "token:ops",
    reason: "TESTED",
    message: "",
    before: { membership: "PENDING" },
    after: { membership: "APPROVED" },
    ...changes,
  };
}

const eventsOf = (messages: readonly WatchEventsResponse[]): readonly Event[] =>
  messages.flatMap(({ events }) => events);
const subjectsOf = (messages: readonly WatchEventsResponse[]) => eventsOf(messages).map(({ subject }) => subject);

function resumeAfter(message: WatchEventsResponse | undefined): Request {
  return { start: { case: "resumeToken", value: message?.resumeToken ?? "" } };
}

describe("watchEvents(), where it begins", () => {
  it("should start at the current revision, and report it", async () => {
    await start();
    const before = await append("old");
    const watched = watch({});
    await watched.until(({ length }) => length === 1);
    expect(watched.messages[0]).toMatchObject({ events: [], revision: before });
    await append("new");
    await watched.until((messages) => eventsOf(messages).length === 1);
    expect(subjectsOf(watched.messages)).toEqual(["new"]);
  });

  it("should start at the beginning, or after a revision, from memory or from the store", async () => {
    await start({ windowEvents: 4, batchEvents: 3 });
    const subjects = Array.from({ length: 20 }, (_, index) => `n${index}`);
    for (const subject of subjects) await append(subject);
    const first = (await rig.events.listEvents({ pageSize: 5 })).events.at(-1)?.revision ?? 0n;
    const all = watch(BEGINNING);
    const some = watch({ start: { case: "afterRevision", value: first } });
    await all.until((messages) => eventsOf(messages).length >= 20);
    await some.until((messages) => eventsOf(messages).length >= 15);
    await append("last");
    await all.until((messages) => eventsOf(messages).length >= 21);
    await some.until((messages) => eventsOf(messages).length >= 16);
    expect(subjectsOf(all.messages)).toEqual([...subjects, "last"]);
    expect(subjectsOf(some.messages)).toEqual([...subjects.slice(5), "last"]);
  });

  it("should report where it starts before any event, so that every client has a token", async () => {
    await start();
    const first = await append("a");
    const last = await append("b");
    const all = watch(BEGINNING);
    const some = watch({ start: { case: "afterRevision", value: first } });
    await all.until((messages) => eventsOf(messages).length === 2);
    await some.until((messages) => eventsOf(messages).length === 1);
    expect(all.messages[0]).toMatchObject({ events: [], revision: first - 1n });
    expect(some.messages[0]).toMatchObject({ events: [], revision: first });
    const again = watch(resumeAfter(some.messages[0]));
    await again.until((messages) => eventsOf(messages).length === 1);
    expect(eventsOf(again.messages)[0]?.revision).toBe(last);
  });

  it("should continue after the token of any message, or of a listing", async () => {
    await start({ batchEvents: 2 });
    await append("a", "b", "c", "d", "e");
    const watched = watch(BEGINNING);
    await watched.until((messages) => eventsOf(messages).length === 5);
    await append("f");
    await watched.until((messages) => eventsOf(messages).length === 6);
    for (const [index, message] of watched.messages.slice(0, -1).entries()) {
      const rest = subjectsOf(watched.messages.slice(index + 1));
      const again = watch(resumeAfter(message));
      await again.until((messages) => eventsOf(messages).length === rest.length);
      expect(subjectsOf(again.messages)).toEqual(rest);
    }
    const { resumeToken } = await rig.events.listEvents({ types: ["node.deleted"] });
    const listed = watch({ start: { case: "resumeToken", value: resumeToken } });
    await append("after the list");
    await listed.until((messages) => eventsOf(messages).length === 1);
    expect(subjectsOf(listed.messages)).toEqual(["after the list"]);
  });
});

describe("watchEvents(), what it sends", () => {
  it("should filter on the server, by type, subject and actor", async () => {
    await start({ windowEvents: 3, batchEvents: 2 });
    const events = ["a", "b", "c"].flatMap((subject) => [
      eventOf(subject),
      eventOf(subject, { type: "node.rejected" }),
      eventOf(subject, { actor: "system" }),
    ]);
    await rig.store.transaction((tx) => appendEvents(tx, events));
    const watched = watch({
      ...BEGINNING,
      types: ["node.approved"],
      subject: "b",
      actor: "system",
    });
    await watched.until((messages) => eventsOf(messages).length === 1);
    await rig.store.transaction((tx) => appendEvents(tx, events));
    await watched.until((messages) => eventsOf(messages).length === 2);
    expect(eventsOf(watched.messages)).toMatchObject([
      { type: "node.approved", subject: "b", actor: "system" },
      { type: "node.approved", subject: "b", actor: "system" },
    ]);
  });

  it("should send bookmarks that advance the token past events that do not match", async () => {
    await start({ bookmarkMs: 40 });
    const watched = watch({ types: ["node.deleted"] });
    await watched.until(({ length }) => length === 1);
    const revision = await append("a", "b");
    await watched.until((messages) => messages.some((it) => it.revision === revision));
    expect(eventsOf(watched.messages)).toEqual([]);
    const again = watch(resumeAfter(watched.messages.at(-1)));
    await rig.store.transaction((tx) => appendEvents(tx, [eventOf("c"), eventOf("d", { type: "node.deleted" })]));
    await watched.until((messages) => eventsOf(messages).length === 1);
    await again.until((messages) => eventsOf(messages).length === 2);
    expect(subjectsOf(again.messages)).toEqual(["c", "d"]);
  });
});

describe("watchEvents(), how it ends", () => {
  it("should end a watcher that does not read, with a token to resume from", async () => {
    await start({ windowEvents: 5, batchEvents: 5 });
    const watched = watch({});
    await watched.until(({ length }) => length === 1);
    watched.pause();
    // The message is random, because compression would make any other message tiny.
    const message = randomBytes(15_000).toString("base64");
    const sent: string[] = ["first"];
    await append("first");
    await watched.until((messages) => eventsOf(messages).length === 1);
    // Append more than all buffers in between can hold.
    for (let round = 0; round < 300; round += 1) {
      sent.push(`n${round}`);
      const event = eventOf(`n${round}`, { message });
      await rig.store.transaction((tx) => appendEvents(tx, [event]));
    }
    watched.resume();
    const error = describeError(await watched.ended());
    expect(error).toMatchObject({ code: Code.ResourceExhausted, reason: "WATCHER_TOO_SLOW" });
    const value = error.metadata.resumeToken ?? "";
    const rest = watch({ start: { case: "resumeToken", value } });
    const both = () => subjectsOf([...watched.messages, ...rest.messages]);
    await rest.until(() => both().length >= sent.length);
    expect(both()).toEqual(sent);
  });

  it("should report compacted events, and continue with those that are kept", async () => {
    await start({ windowEvents: 2 });
    const old = watch(BEGINNING);
    await append("a", "b", "c");
    await old.until((messages) => eventsOf(messages).length === 3);
    const first = eventsOf(old.messages)[0]?.revision ?? 0n;
    await compactEvents(rig.store, -60_000);
    const request = { start: { case: "afterRevision", value: first } } as const;
    const error = describeError(await watch(request).ended());
    expect(error).toMatchObject({ code: Code.OutOfRange, reason: "REVISION_COMPACTED" });
    const compacted = BigInt(error.metadata.compactedRevision ?? "0");
    expect(compacted).toBe((await currentRevision(rig.store.db)) - 1n);
    expect(await refusalOf(rig.events.listEvents({ afterRevision: first }))).toMatchObject({
      code: Code.OutOfRange,
      reason: "REVISION_COMPACTED",
    });
    const listAfter = BigInt(error.metadata.listAfterRevision ?? "0");
    const kept = await rig.events.listEvents({ afterRevision: listAfter });
    expect(kept.events.map(({ subject }) => subject)).toEqual(["c"]);
    for (const again of [watch(BEGINNING), watch({ start: { case: "afterRevision", value: listAfter } })]) {
      await again.until((messages) => eventsOf(messages).length === 1);
      expect(subjectsOf(again.messages)).toEqual(["c"]);
    }
  });

  it("should recognize a token of another log", async () => {
    await start();
    await append("a");
    const watched = watch(BEGINNING);
    await watched.until(({ length }) => length === 1);
    // Make the store look like a restored copy that has just been opened.
    await rig.store.db.updateTable("cluster").set({ log_origin: "another" }).execute();
    await rig.store.refreshLogId();
    const compacted = { code: Code.OutOfRange, reason: "REVISION_COMPACTED" };
    expect(describeError(await watch(resumeAfter(watched.messages[0])).ended())).toMatchObject(compacted);
    await append("b");
    expect(describeError(await watched.ended())).toMatchObject(compacted);
  });

  it.each<Request>([
    { start: { case: "resumeToken", value: "nonsense" } },
    { start: { case: "afterRevision", value: 1_000_000n } },
    { start: { case: "afterRevision", value: 2n ** 64n - 1n } },
  ])("should refuse to start at %j", async (request) => {
    await start();
    expect(describeError(await watch(request).ended())).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_RESUME_TOKEN",
    });
  });

  it("should refuse an unknown type", async () => {
    await start();
    expect(describeError(await watch({ types: ["node.exploded"] }).ended())).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });

  it("should end when the server shuts down, with that reason", async () => {
    await start();
    const watched = watch({});
    await watched.until(({ length }) => length === 1);
    await rig.shutDown();
    expect(describeError(await watched.ended())).toMatchObject({
      code: Code.Unavailable,
      reason: "SERVER_SHUTTING_DOWN",
    });
  });

  it("should drop a watcher that leaves", async () => {
    await start();
    const watched = watch({});
    await watched.until(({ length }) => length === 1);
    await watched.stop();
    const other = watch({});
    await append("a");
    await other.until((messages) => messages.length > 0);
  });
});
