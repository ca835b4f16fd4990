import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { WatchJobsRequestSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { EventFeed } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { SchedulerServices } from "../scheduler-services.ts";
import { watchJobs } from "./watch-jobs.ts";
import type { WorkHub } from "./work-hub.ts";

/** Services in which each watch fails at this step. Counts the followers and listeners that watches hold. */
function failingServices(failAt: "join" | "snapshot") {
  const held = { followers: 0, listeners: 0 };
  let reads = 0;
  const hub: Pick<WorkHub, "read" | "join"> = {
    read: async <T>() => {
      reads += 1;
      // The first read of a watch is the revision to follow from, the second is its snapshot.
      if (reads % 2 === 0) throw new Error("the store is away");
      return 5n as T;
    },
    join: async () => {
      reads = failAt === "join" ? 0 : reads;
      if (failAt === "join") throw new Error("the store is away");
      held.listeners += 1;
      return () => {
        held.listeners -= 1;
      };
    },
  };
  const feed: Pick<EventFeed, "start" | "follow"> = {
    start: async () => {},
    follow: () => {
      held.followers += 1;
      const leave = () => {
        held.followers -= 1;
      };
      return { caughtUp: Promise.resolve(), caughtUpTo: async () => {}, position: 5n, leave };
    },
  };
  const services = { store: {}, clock: new ManualClock(), hub, feed };
  return { held, services: services as unknown as SchedulerServices & { readonly feed: EventFeed } };
}

describe("watchJobs()", () => {
  it.each(["join", "snapshot"] as const)("should hold nothing after it failed at its %s", async (failAt) => {
    const { held, services } = failingServices(failAt);
    const watch = watchJobs(services);
    const context = { signal: new AbortController().signal } as HandlerContext;
    for (let count = 0; count < 3; count += 1) {
      const messages = watch(create(WatchJobsRequestSchema), context);
      await expect(messages[Symbol.asyncIterator]().next()).rejects.toThrow("the store is away");
      expect(held).toEqual({ followers: 0, listeners: 0 });
    }
  });
});
