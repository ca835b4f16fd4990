import type { SimulatedEvent } from "./simulated-record.ts";
import type { SimulatedReplica } from "./simulated-replica.ts";
import type { SimulatedStream } from "./simulated-stream.ts";
import type { World } from "./world.ts";

interface Candidate {
  readonly stream: SimulatedStream;
  readonly events: SimulatedEvent[];
}

const MOST_A_BATCH = 200;
const MOST_QUEUED = 2_000;

/** Hellos that wait for the record: one batch at a time, as at the health service's desk. */
export class HelloQueue {
  readonly #world: World;
  readonly #replica: SimulatedReplica;
  #waiting: SimulatedStream[] = [];
  #candidates: ReadonlyMap<number, Candidate> | null = null;

  constructor(world: World, replica: SimulatedReplica) {
    this.#world = world;
    this.#replica = replica;
  }

  isOpening(node: number): boolean {
    return this.#candidates?.has(node) === true;
  }

  add(stream: SimulatedStream): void {
    if (this.#waiting.length >= MOST_QUEUED) {
      this.#replica.turnAway(stream);
      return;
    }
    this.#waiting.push(stream);
    if (this.#candidates === null) this.#openBatch();
  }

  observe(events: readonly SimulatedEvent[]): void {
    if (this.#candidates === null) return;
    for (const event of events) this.#candidates.get(event.node)?.events.push(event);
  }

  #openBatch(): void {
    const batch = this.#waiting.splice(0, MOST_A_BATCH);
    const candidates = new Map<number, Candidate>();
    for (const stream of batch) {
      // Gone while it waited.
      if (stream.state.kind !== "opening") continue;
      const earlier = candidates.get(stream.agent.index);
      if (earlier !== undefined) this.#replica.supersede(earlier.stream);
      candidates.set(stream.agent.index, { stream, events: [] });
    }
    if (candidates.size === 0) return;
    this.#candidates = candidates;
    const { record } = this.#world;
    const { instance } = this.#replica;
    this.#world.callRecord(
      this.#replica,
      () => [...candidates.keys()].map((node) => record.open(node, instance)),
      (openings) => {
        this.#onAnswer(candidates, openings);
        this.#candidates = null;
        if (this.#waiting.length > 0) this.#openBatch();
      },
    );
  }

  #onAnswer(
    candidates: ReadonlyMap<number, Candidate>,
    openings: readonly ReturnType<World["record"]["open"]>[] | null,
  ): void {
    const replica = this.#replica;
    if (openings === null) {
      replica.work.doubt();
      for (const { stream } of candidates.values()) {
        if (stream.state.kind === "opening") replica.turnAway(stream);
      }
      return;
    }
    for (const [index, { stream, events }] of [...candidates.values()].entries()) {
      const opening = openings[index];
      if (opening !== undefined) replica.take(stream, opening, events);
    }
  }
}
