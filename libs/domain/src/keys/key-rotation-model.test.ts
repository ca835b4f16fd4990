import { describe, expect, it } from "@jest/globals";
import {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
  type RotationAnswer,
} from "./agent-keys.ts";
import { acceptKey, decideRotation, type NodeIdentity } from "./key-rotation.ts";

const SEED = 1;
const RUNS = 10_000;
const STEPS = 60;

type Message =
  | { readonly kind: "prove"; readonly used: string; readonly incarnation: number }
  | {
      readonly kind: "rotate";
      readonly used: string;
      readonly offered: string;
      readonly incarnation: number;
    };

type Answer = { readonly incarnation: number; readonly used: string } & (
  | { readonly kind: "taken" }
  | { readonly kind: "refused" }
  | { readonly kind: "rotating"; readonly answer: RotationAnswer }
);

/** A node, its server, a network that loses, duplicates and delays messages, and an agent that crashes. */
class Run {
  readonly #random: () => number;
  readonly #requests: Message[] = [];
  readonly #answers: Answer[] = [];
  readonly #retired = new Set<string>();
  /** The keys on the agent's disk, which survive a crash. */
  #disk: { current: string; next: string | null } = { current: "k0", next: null };
  #server: NodeIdentity = { current: "k0", next: null };
  #agent: AgentKeys = keysOnDisk("k0", null);
  #incarnation = 0;
  #made = 0;
  rotations = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  get isSettled(): boolean {
    return this.#agent.phase === "settled";
  }

  get keys(): string {
    return JSON.stringify({ disk: this.#disk, agent: this.#agent, server: this.#server });
  }

  /** Perform a random action. */
  step(): void {
    const actions = [
      () => this.prepare(),
      () => this.offer(),
      () => this.prove(),
      () => this.serve(),
      () => this.serve(),
      () => this.receive(),
      () => this.receive(),
      () => this.crash(),
      () => this.loseNextKey(),
    ];
    // Lose the file of a next key only rarely. All other actions are equally likely.
    const index = Math.floor(this.#random() * (actions.length - 0.9));
    actions[index]?.();
    this.check();
  }

  /** Create a next key. It is written to the disk first, and the agent may crash before it uses the key. */
  prepare(): void {
    if (this.#agent.phase !== "settled") return;
    this.#made += 1;
    this.#disk = { ...this.#disk, next: `k${this.#made}` };
    this.#checkKeys();
    if (this.#random() < 0.1) this.crash();
    else this.#agent = afterNewKey(this.#agent, `k${this.#made}`);
  }

  offer(): void {
    if (this.#agent.phase === "settled") return;
    const { next: offered } = this.#agent;
    const used = keyToUse(this.#agent);
    this.#requests.push({ kind: "rotate", used, offered, incarnation: this.#incarnation });
  }

  prove(): void {
    const used = keyToUse(this.#agent);
    this.#requests.push({ kind: "prove", used, incarnation: this.#incarnation });
  }

  /**
   * Process a random request in transit. At random, the request is lost, it is kept to arrive again, or its answer
   * is lost.
   */
  serve(): void {
    const message = this.#takeFrom(this.#requests);
    if (message === undefined) return;
    const answer = this.#decide(message);
    if (this.#random() < 0.75) this.#answers.push(answer);
  }

  receive(): void {
    const answer = this.#takeFrom(this.#answers);
    // Drop an answer to an agent process that has crashed.
    if (answer === undefined || answer.incarnation !== this.#incarnation) return;
    switch (answer.kind) {
      case "taken":
        this.#become(afterAccepted(this.#agent, answer.used));
        break;
      case "refused":
        this.#become(afterRefused(this.#agent, answer.used));
        break;
      case "rotating":
        this.#become(afterAnswer(this.#agent, answer.answer));
        break;
    }
  }

  crash(): void {
    this.#incarnation += 1;
    this.#agent = keysOnDisk(this.#disk.current, this.#disk.next);
  }

  /**
   * Destroy the next key's file while the agent is down, unless the key is or can become the node's current key.
   */
  loseNextKey(): void {
    if (this.#disk.next === null || this.#server.current === this.#disk.next) return;
    // Keep the file, because a proof by this key is still in transit and may make the key current. Without the
    // file, the node would lose its key.
    if (this.#requests.some(({ used }) => used === this.#disk.next)) return;
    this.#disk = { ...this.#disk, next: null };
    this.crash();
  }

  /** Drop everything in transit, and let the agent continue on a network without failures. */
  finish(): void {
    this.#requests.length = 0;
    this.#answers.length = 0;
    for (let turn = 0; turn < 12; turn += 1) {
      if (this.#agent.phase === "prepared") this.#exchange("rotate");
      this.#exchange("prove");
      this.check();
    }
  }

  check(): void {
    this.#checkKeys();
    const inMemory = this.#agent.phase === "settled" ? null : this.#agent.next;
    if (this.#agent.current !== this.#disk.current || inMemory !== this.#disk.next) {
      throw new Error(`memory and disk differ: ${this.keys}`);
    }
  }

  #checkKeys(): void {
    const { current, next } = this.#server;
    const held = [this.#disk.current, this.#disk.next];
    // Check that the agent has the current key. Having one of the two keys is not enough, because an offer still
    // in transit can replace the next key.
    if (!held.includes(current)) throw new Error(`locked out: ${this.keys}`);
    for (const key of this.#retired) {
      if (acceptKey(this.#server, key).accepted) {
        throw new Error(`retired key ${key} is taken: ${this.keys}`);
      }
    }
    if (next !== null && next === current) throw new Error(`next is current: ${this.keys}`);
  }

  #exchange(kind: "rotate" | "prove"): void {
    if (kind === "rotate") this.offer();
    else this.prove();
    const message = this.#requests.pop();
    if (message === undefined) return;
    this.#answers.push(this.#decide(message));
    const answer = this.#answers.pop();
    if (answer === undefined) return;
    if (answer.kind === "taken") this.#become(afterAccepted(this.#agent, answer.used));
    else if (answer.kind === "refused") this.#become(afterRefused(this.#agent, answer.used));
    else this.#become(afterAnswer(this.#agent, answer.answer));
  }

  #decide(message: Message): Answer {
    const { used, incarnation } = message;
    const before = this.#server;
    if (message.kind === "prove") {
      const decision = acceptKey(before, used);
      if (!decision.accepted) return { kind: "refused", used, incarnation };
      this.#keep(decision.identity);
      return { kind: "taken", used, incarnation };
    }
    const { offered } = message;
    const facts = { nodeId: "n", used, offered, otherOwner: null, banReason: null };
    const decision = decideRotation(before, facts);
    if (!decision.ok) return { kind: "refused", used, incarnation };
    this.#keep(decision.identity);
    return { kind: "rotating", used, incarnation, answer: decision.identity };
  }

  #keep(identity: NodeIdentity): void {
    if (identity.current !== this.#server.current) {
      this.#retired.add(this.#server.current);
      this.rotations += 1;
    }
    this.#server = identity;
  }

  /**
   * Update the agent's state. To adopt the next key, the agent first renames that key's file. After a crash, the
   * disk has both keys if the crash came before the renaming, and one key if it came after.
   */
  #become(keys: AgentKeys): void {
    if (keys.phase === "settled" && keys.current !== this.#disk.current) {
      const moment = this.#random();
      if (moment >= 0.2) this.#disk = { current: keys.current, next: null };
      if (moment < 0.4) {
        this.crash();
        return;
      }
    }
    this.#agent = keys;
  }

  /** Take a random message in transit. One in four stays in transit and arrives again. */
  #takeFrom<T>(messages: T[]): T | undefined {
    if (this.#random() < 0.15) messages.splice(Math.floor(this.#random() * messages.length), 1);
    const index = Math.floor(this.#random() * messages.length);
    const message = messages[index];
    if (message !== undefined && this.#random() >= 0.25) messages.splice(index, 1);
    return message;
  }
}

describe("key rotation over a network that loses, doubles and reorders, with an agent that crashes", () => {
  it(`should lock no node out and accept no retired key in ${RUNS} runs (seed ${SEED})`, () => {
    let rotations = 0;
    for (let index = 0; index < RUNS; index += 1) {
      const run = new Run(randomNumbers(SEED + index));
      try {
        for (let step = 0; step < STEPS; step += 1) run.step();
        run.finish();
      } catch (cause) {
        throw new Error(`run ${index} of seed ${SEED}`, { cause });
      }
      if (!run.isSettled) throw new Error(`run ${index} of seed ${SEED} does not end: ${run.keys}`);
      rotations += run.rotations;
    }
    // Check that most runs have rotated a key.
    expect(rotations).toBeGreaterThan(RUNS / 2);
  });
});

/** Create a generator of random numbers that are reproducible from a seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
