import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionsSchema, SpecFrameSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  GreetingSchema,
  type KeeperReply,
  KeeperReplySchema,
  LiveExecutionSchema,
} from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import {
  DesiredState,
  ExecutionObservationSchema,
  ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import { silentLogger, startTasks } from "@rollcall/process";
import { failOnceAtEachCall, type Ports, stopAtEachCall } from "@rollcall/testkit/faults";
import { ManualClock } from "@rollcall/testkit/time";
import { AgentWork } from "./agent-work.ts";
import type { KeeperListener, KeeperPort, KeeperRequestInit } from "./keeper-link.ts";

const { RUN, STOP, FORGET } = DesiredState;
const { RUNNING, ENDED } = ObservedState;
const SPEC = Buffer.from("a spec");
const DIGEST = createHash("sha256").update(SPEC).digest();
/** Long enough for two planning runs, so that what failed in one is done in the next. */
const TWO_PLANS_MS = 31_000;

interface Kept {
  state: ObservedState;
  logId: string;
  change: bigint;
}

/** The keeper of a machine, which outlives agents. It repeats nothing for a request that it knows. */
class Machine {
  readonly kept = new Map<string, Kept>();
  /** Every effect on an execution, in order. */
  readonly effects: string[] = [];
  #listener: KeeperListener | null = null;

  connect(listener: KeeperListener): KeeperPort {
    return {
      heardAtMs: 0,
      run: async (signal) => {
        this.#listener = listener;
        listener.onGreeting(create(GreetingSchema, { executors: ["process"] }));
        for (const id of this.kept.keys()) this.#tell(id);
        listener.onListed();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      },
      request: async (request) => this.#handle(request),
    };
  }

  stateOf(id: string): string {
    const one = this.kept.get(id);
    return one === undefined ? "none" : `${one.state === RUNNING ? "RUNNING" : "ENDED"} of ${one.logId}`;
  }

  #handle(request: KeeperRequestInit): KeeperReply {
    if (request.case === "start" || request.case === "stop" || request.case === "refuse") {
      const { reference, logId = "" } = request.value;
      const { id = "" } = reference ?? {};
      const one = this.kept.get(id);
      if (request.case === "start") this.#set(id, { logId, state: one?.state ?? RUNNING });
      else if (one === undefined || request.case === "stop")
        this.#set(id, { logId: one?.logId ?? logId, state: ENDED });
      if (this.kept.get(id)?.state !== one?.state) this.effects.push(`${request.case} ${id}`);
    } else if (request.case === "bind") {
      const { ids = [], logId = "" } = request.value;
      for (const id of ids) this.#set(id, { logId, state: this.kept.get(id)?.state ?? ENDED });
    } else if (request.case === "forget") {
      for (const id of request.value.ids ?? []) {
        this.#tell(id, true);
        this.kept.delete(id);
        this.effects.push(`forget ${id}`);
      }
    }
    return create(KeeperReplySchema);
  }

  #set(id: string, one: Omit<Kept, "change">): void {
    const before = this.kept.get(id);
    const change = (before?.change ?? 0n) + (before?.state === one.state ? 0n : 1n);
    this.kept.set(id, { ...one, change });
    this.#tell(id);
  }

  #tell(id: string, forgotten = false): void {
    const one = this.kept.get(id);
    if (one === undefined) return;
    const { state, change, logId } = one;
    const observation = create(ExecutionObservationSchema, { id, state, change });
    this.#listener?.onChanged(create(LiveExecutionSchema, { observation, logId, forgotten }));
  }
}

/** An agent's work and its session with a control plane, in virtual time. */
class Agent {
  readonly clock = new ManualClock();
  readonly work: AgentWork;
  readonly #tasks: { close(): Promise<void> };
  #generation = 0n;

  constructor(machine: Machine, ports: Ports) {
    const { clock } = this;
    this.work = new AgentWork({
      ...{ keeper: null, nodeId: "node-1", clock, random: () => 0.5, log: silentLogger },
      connectKeeper: (listener) => ports.wrap("keeper", machine.connect(listener), { except: ["run"] }),
    });
    const spec = create(SpecFrameSchema, { digest: DIGEST, spec: SPEC });
    this.work.subscribe(({ wantedSpecs }) => {
      if (wantedSpecs.length > 0) this.work.spec(spec);
    });
    this.#tasks = startTasks(this.work.tasks, { log: silentLogger, clock });
  }

  /** Send a session's list. */
  wants(logId: string, named: Readonly<Record<string, DesiredState>>, whole = true): void {
    this.#generation += 1n;
    const references = Object.entries(named).map(([id, desired]) =>
      create(ExecutionReferenceSchema, { id, desired, specDigest: DIGEST }),
    );
    this.work.executions(create(ExecutionsSchema, { logId, generation: this.#generation, whole, references }));
  }

  pass(): Promise<void> {
    return this.clock.pass(TWO_PLANS_MS);
  }

  close(): Promise<void> {
    return this.#tasks.close();
  }
}

/** Let a control plane start, stop and forget work, and replace it with a restored one in between. */
async function useMachine(machine: Machine, ports: Ports): Promise<Agent> {
  const agent = new Agent(machine, ports);
  ports.onStop(() => agent.close());
  await agent.clock.pass(1);
  agent.work.opened();
  agent.wants("log-1", { e1: RUN, e2: RUN, e3: STOP });
  await agent.pass();
  agent.work.reported(["e1", "e2", "e3"]);
  agent.work.opened();
  agent.wants("log-2", { e1: STOP, e2: RUN, e3: FORGET });
  agent.work.reported(["e1", "e2", "e3"]);
  await agent.pass();
  agent.wants("log-2", { e1: FORGET }, false);
  await agent.pass();
  return agent;
}

const EFFECTS = ["forget e1", "forget e3", "start e1", "start e2", "stop e1", "stop e3"];

describe("an agent's work", () => {
  it("should be done once, whichever request to the keeper fails", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const machine = new Machine();
      const agent = await useMachine(machine, ports);
      expect(machine.effects.toSorted()).toEqual(EFFECTS);
      expect(machine.stateOf("e2")).toBe("RUNNING of log-2");
      expect(agent.work.observations(null).map(({ id }) => id)).toEqual(["e2"]);
      await agent.close();
    });
    expect(calls.length).toBeGreaterThanOrEqual(8);
  });

  it("should be done once, whichever request to the keeper was the last one before the agent was killed", async () => {
    await stopAtEachCall({
      world: async () => new Machine(),
      life: async (machine, ports) => {
        const agent = await useMachine(machine, ports);
        await agent.close();
      },
      check: (machine) => {
        expect(machine.stateOf("e1")).toBe("none");
        expect(machine.stateOf("e2")).toBe("RUNNING of log-2");
        expect(machine.effects.filter((effect) => effect === "start e2")).toHaveLength(1);
      },
    });
  });
});
