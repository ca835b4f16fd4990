import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { OPERATOR, operate } from "../testing/operator.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

const COUNT = 30;
let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  for (let index = 0; index < COUNT; index += 1) {
    await new TestNode(`n${index}`).register(rig.registry);
  }
  await operate(rig.store, "n1", "reject", "loud");
  await operate(rig.store, "n2", "delete");
});
afterAll(() => rig.close());

async function allPages(request: { pageSize: number; types?: string[] }): Promise<Event[]> {
  const events: Event[] = [];
  let pageToken = "";
  do {
    const page = await rig.events.listEvents({ ...request, pageToken });
    events.push(...page.events);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return events;
}

describe("listEvents()", () => {
  it("should return the whole log in order, page by page", async () => {
    const events = await allPages({ pageSize: 7 });
    expect(events.map(({ subject }) => subject)).toEqual([
      ...Array.from({ length: COUNT }, (_, index) => `n${index}`),
      "n1",
      "n2",
    ]);
    const revisions = events.map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((left, right) => Number(left - right)));
    expect(new Set(events.map(({ id }) => id)).size).toBe(COUNT + 2);
  });

  it("should report what changed, by whom and why", async () => {
    const { events } = await rig.events.listEvents({ subject: "n1" });
    expect(events).toHaveLength(2);
    expect(events[0]?.before).toBeUndefined();
    expect(events[1]).toMatchObject({
      type: "node.rejected",
      actor: OPERATOR,
      reason: "OPERATOR_REJECTED",
      message: "loud",
      before: { membership: "APPROVED" },
      after: { membership: "REJECTED" },
    });
    const time = events[1]?.time;
    expect(Math.abs(Date.now() - (time ? timestampMs(time) : 0))).toBeLessThan(60_000);
  });

  it("should return changes after a revision", async () => {
    const { events } = await rig.events.listEvents({ pageSize: 5 });
    const afterRevision = events.at(-1)?.revision ?? 0n;
    const rest = await rig.events.listEvents({ afterRevision, pageSize: 1 });
    expect(rest.events.map(({ subject }) => subject)).toEqual(["n5"]);
    const none = await rig.events.listEvents({ afterRevision: 2n ** 64n - 1n });
    expect(none).toMatchObject({ events: [], nextPageToken: "" });
  });

  it("should return only the requested types", async () => {
    const types = ["node.rejected", "node.deleted"];
    const events = await allPages({ pageSize: 1, types });
    expect(events.map(({ type }) => type)).toEqual(types);
  });

  it("should refuse an unknown type", async () => {
    const call = rig.events.listEvents({ types: ["node.exploded"] });
    expect(await refusalOf(call)).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
      violations: [{ field: "types" }],
    });
  });

  it("should refuse a subject that the store cannot keep", async () => {
    expect(await refusalOf(rig.events.listEvents({ subject: "\0" }))).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "subject" }],
    });
  });

  it("should refuse a token of another filter, or of another method", async () => {
    const { nextPageToken: pageToken } = await rig.events.listEvents({ pageSize: 1 });
    const invalid = { code: Code.InvalidArgument, reason: "INVALID_PAGE_TOKEN" };
    const filtered = rig.events.listEvents({ pageToken, subject: "n1" });
    expect(await refusalOf(filtered)).toMatchObject(invalid);
    expect(await refusalOf(rig.registry.listNodes({ pageToken }))).toMatchObject(invalid);
  });

  it.each([-1, 1_001])("should refuse a page size of %i", async (pageSize) => {
    expect(await refusalOf(rig.events.listEvents({ pageSize }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});
