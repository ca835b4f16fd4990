import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { NO_LOSS } from "../brake/reaction.ts";
import type { ConnectionState, HealthState, Stated } from "../states.ts";
import { planTransition, type StoredSession, type Transition } from "./transition.ts";

const ACTOR = "replica:r";
const NOW = { nowMs: 1_000, mayHaveReaction: true };

function stated<S extends string>(state: S, reason = "BEFORE"): Stated<S> {
  return { state, sinceMs: 1, reason, message: "", actor: "replica:before" };
}

function session(changes: Partial<StoredSession> = {}): StoredSession {
  return {
    nodeId: "n",
    connection: stated<ConnectionState>("CONNECTED"),
    detectedHealth: stated<HealthState>("HEALTHY"),
    history: { outages: [], flappingSinceMs: null },
    marked: false,
    loss: NO_LOSS,
    ...changes,
  };
}

function health(state: HealthState, reason = "FOUND"): Pick<Transition, "health"> {
  return { health: { state, reason, message: "m", actor: ACTOR } };
}

const item = (changes: Partial<Transition>): Transition => ({ nodeId: "n", epoch: 1, ...changes });

describe("planTransition()", () => {
  it("should change nothing that is already set", () => {
    const same = { state: "HEALTHY", reason: "BEFORE", message: "", actor: "another" } as const;
    expect(planTransition(session(), item({ health: same }), NOW)).toEqual({ after: null, events: [] });
    expect(planTransition(session(), item({}), NOW)).toEqual({ after: null, events: [] });
  });

  it("should have one event for each state that is left, since now", () => {
    const broken = { state: "DISCONNECTED", reason: "STREAM_BROKEN", message: "", actor: ACTOR } as const;
    const planned = planTransition(session(), item({ ...health("UNHEALTHY"), connection: broken }), NOW);
    expect(planned.after).toMatchObject({
      connection: { state: "DISCONNECTED", sinceMs: 1_000 },
      health: { state: "UNHEALTHY", sinceMs: 1_000 },
      history: { outages: [{ startedAtMs: 1_000, endedAtMs: null }], flappingSinceMs: null },
      loss: { reaction: "PENDING", number: "next", group: "" },
    });
    expect(planned.events.map(({ type }) => type)).toEqual(["node.connection.changed", "node.health.changed"]);
  });

  it("should carry the evidence and the group of a loss", () => {
    const found = { state: "UNHEALTHY", reason: "R", message: "", actor: ACTOR, evidence: { silentMs: 5 } } as const;
    const planned = planTransition(session(), item({ health: found, group: "zone=a" }), NOW);
    expect(planned.events).toMatchObject([{ after: { health: "UNHEALTHY", evidence: { silentMs: 5 } } }]);
    expect(planned.after?.loss).toMatchObject({ group: "zone=a" });
  });

  it("should keep the shown health where only a reason is new, and update it with the next event", () => {
    const unwell = session({ detectedHealth: stated<HealthState>("UNHEALTHY") });
    const quiet = planTransition(unwell, item(health("UNHEALTHY", "OTHER")), NOW);
    expect(quiet).toMatchObject({ after: { health: { reason: "BEFORE" } }, events: [] });
    const broken = { state: "DISCONNECTED", reason: "STREAM_BROKEN", message: "", actor: ACTOR } as const;
    const loud = planTransition(unwell, item({ ...health("UNHEALTHY", "OTHER"), connection: broken }), NOW);
    expect(loud).toMatchObject({ after: { health: { reason: "OTHER", sinceMs: 1 } }, events: [{}] });
  });

  it("should not show the health detected under a mark", () => {
    const planned = planTransition(session({ marked: true }), item(health("UNKNOWN", "OTHER")), NOW);
    expect(planned).toMatchObject({ after: { health: { state: "UNKNOWN", reason: "OTHER" } }, events: [] });
  });

  it("should have one event when a node begins to flap, and show and release it as detected all the time", () => {
    const outages = [1, 3].map((startedAtMs) => ({ startedAtMs, endedAtMs: startedAtMs + 1 }));
    const begun = planTransition(
      session({ history: { outages, flappingSinceMs: null } }),
      item(health("UNHEALTHY")),
      NOW,
    );
    expect(begun.after).toMatchObject({
      history: { flappingSinceMs: 1_000 },
      health: { state: "UNHEALTHY", reason: "FOUND" },
      loss: { reaction: "PENDING" },
    });
    expect(begun.events.map(({ type }) => type)).toEqual(["node.flapping.started", "node.health.changed"]);
    const flapping = session({
      ...{ history: { outages, flappingSinceMs: 500 }, detectedHealth: stated<HealthState>("UNHEALTHY") },
      loss: { ...NO_LOSS, reaction: "ALLOWED", sinceMs: 5 },
    });
    expect(planTransition(flapping, item(health("HEALTHY", "HEARTBEAT_RECEIVED")), NOW)).toMatchObject({
      after: { health: { state: "HEALTHY", reason: "HEARTBEAT_RECEIVED" }, loss: NO_LOSS },
      events: [{ type: "node.health.changed", reason: "HEARTBEAT_RECEIVED", after: { health: "HEALTHY" } }],
    });
  });

  it.each(["AGENT_SHUTDOWN", "AGENT_RESTARTING"])("should count no outage after a goodbye: %s", (reason) => {
    const goodbye = { state: "DISCONNECTED", reason, message: "", actor: ACTOR } as const;
    const at = planTransition(session(), item({ ...health("UNHEALTHY"), connection: goodbye }), NOW);
    const left = session({ connection: stated<ConnectionState>("DISCONNECTED", reason) });
    const later = planTransition(left, item(health("UNHEALTHY")), NOW);
    for (const { after } of [at, later]) expect(after?.history.outages).toEqual([]);
  });

  it("should show no change without an event, and no event without a change, whatever is observed", () => {
    const states = fc.constantFrom<HealthState>("HEALTHY", "UNHEALTHY", "UNKNOWN");
    const observation = fc.record({
      state: fc.option(states, { nil: null }),
      connection: fc.option(fc.constantFrom<ConnectionState>("CONNECTED", "DISCONNECTED"), { nil: null }),
      reason: fc.constantFrom("A", "B", "AGENT_SHUTDOWN"),
      afterMs: fc.integer({ min: 1, max: 400_000 }),
    });
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 30 }), fc.boolean(), (observations, marked) => {
        let now = session({ marked });
        let nowMs = 1_000;
        for (const { state, connection, reason, afterMs } of observations) {
          nowMs += afterMs;
          const change = <S extends string>(to: S) => ({ state: to, reason, message: "", actor: ACTOR });
          const transition = item({
            ...(state === null ? {} : { health: change(state) }),
            ...(connection === null ? {} : { connection: change(connection) }),
          });
          const { after, events } = planTransition(now, transition, { nowMs, mayHaveReaction: true });
          for (const event of events) expect(event.actor).toBe(ACTOR);
          if (after === null) {
            expect(events).toEqual([]);
            continue;
          }
          const shown = (it: StoredSession) => [it.connection, it.marked ? null : it.detectedHealth];
          const next: StoredSession = {
            ...now,
            connection: after.connection,
            detectedHealth: after.health,
            history: after.history,
            loss: { ...after.loss, number: after.loss.number === "next" ? nowMs : after.loss.number },
          };
          if (events.length === 0) expect(shown(next)).toEqual(shown(now));
          const told = events.some(({ type }) => type === "node.health.changed");
          expect(told).toBe(!marked && now.detectedHealth.state !== next.detectedHealth.state);
          // Check that a changed state gets the current time, and that an unchanged state keeps its time.
          if (next.connection.state === now.connection.state) {
            expect(next.connection.sinceMs).toBe(now.connection.sinceMs);
          } else expect(next.connection.sinceMs).toBe(nowMs);
          if (next.detectedHealth.state === "HEALTHY" && !marked) expect(next.loss).toEqual(NO_LOSS);
          now = next;
        }
      }),
    );
  });
});

describe("planTransition(), what counts as a change", () => {
  const steady = stated<HealthState>("UNHEALTHY");
  const before = session({ detectedHealth: steady });

  it.each<[string, Partial<{ reason: string; message: string }>]>([
    ["another reason", { reason: "OTHER" }],
    ["another message", { message: "other" }],
  ])("should save %s, and show it with the next event", (_, changes) => {
    const found = { state: "UNHEALTHY", reason: "BEFORE", message: "", actor: ACTOR, ...changes } as const;
    const planned = planTransition(before, item({ health: found }), NOW);
    expect(planned.events).toEqual([]);
    expect(planned.after).toMatchObject({ health: { reason: "BEFORE", message: "", sinceMs: 1 } });
  });

  it.each<[string, Partial<{ reason: string; message: string }>]>([
    ["reason", { reason: "OTHER" }],
    ["message", { message: "other" }],
  ])("should save another %s of the connection", (_, changes) => {
    const found = { state: "CONNECTED", reason: "BEFORE", message: "", actor: ACTOR, ...changes } as const;
    expect(planTransition(session(), item({ connection: found }), NOW).after).not.toBeNull();
  });

  it("should note no change of health where the state stays", () => {
    const planned = planTransition(session(), item(health("HEALTHY", "OTHER")), NOW);
    expect(planned.after).toMatchObject({ history: { outages: [] } });
  });

  it("should save the end of a loss although nothing else changes", () => {
    const lost = { ...NO_LOSS, reaction: "ALLOWED", sinceMs: 5 } as const;
    expect(planTransition(session({ loss: lost }), item({}), NOW)).toMatchObject({
      after: { loss: NO_LOSS },
      events: [],
    });
  });

  it("should contain no evidence if there is none, and report an allowed reaction after the event that allowed it", () => {
    const left = { state: "UNHEALTHY", reason: "AGENT_SHUTDOWN", message: "bye", actor: "node:n" } as const;
    const { events } = planTransition(session(), item({ health: left, group: "zone=a" }), NOW);
    expect(events.map(({ type }) => type)).toEqual(["node.health.changed", "node.reactions.allowed"]);
    expect(events[0]?.after).not.toHaveProperty("evidence");
  });
});
