import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** The kinds of events that the scripted control plane records about an agent. */
export type EventKind =
  | "register"
  | "rotate"
  | "stream"
  | "hello"
  | "welcomed"
  | "beat"
  | "info"
  | "report"
  | "want"
  | "goodbye"
  | "left"
  | "output"
  | "exit";

/** Something that an agent did. */
export interface PlaneEvent {
  readonly kind: EventKind;
  readonly atMs: number;
  readonly says: JsonObject;
}

/** How the scripted control plane responds from now on. Omitted fields keep their value. */
export interface Manner {
  /** How to respond to a registration. `lose`: accept it, and lose the response. `silent`: do not respond. */
  readonly register?: "take" | "lose" | "silent" | Refusal;
  readonly rotate?: "take" | "lose" | Refusal;
  /** How to respond to a Hello. `ignore`: do not respond. */
  readonly hello?: "welcome" | "ignore" | Refusal | { readonly goAway: JsonObject };
  /** Fields of a Welcome that override the scenario's. */
  readonly welcome?: JsonObject;
  readonly acks?: boolean;
  readonly reportAcks?: boolean;
  /**
   * How to respond to a request for specs. `wrong`: send other bytes than the requested ones. `gone`: say that the
   * store no longer has the spec.
   */
  readonly specs?: "send" | "wrong" | "gone" | "silent";
  /** Whether the port of the second health replica accepts connections. Default: `closed`. */
  readonly second?: "open" | "closed";
  /** Whether the port of the first health replica accepts connections. Default: `open`. */
  readonly first?: "open" | "closed";
}

/** The default responses of the scripted control plane. */
export const USUAL: Required<Manner> = {
  register: "take",
  rotate: "take",
  hello: "welcome",
  welcome: {},
  acks: true,
  reportAcks: true,
  specs: "send",
  first: "open",
  second: "closed",
};

/** A refusal with a status. */
export interface Refusal {
  readonly refuse: string;
  readonly retryAfterMs?: number;
}

/**
 * One step of a script. Exactly one of the fields `await`, `quiet`, `send`, `sendBytes`, `end`, `set`, `agent` and
 * `clock` is set.
 */
export interface Step {
  /** Wait for an event of this kind. */
  readonly await?: EventKind;
  /**
   * Fields that the event must contain. `$name` stands for the value that `keep` stored under this name. Other events
   * of the same kind are skipped.
   */
  readonly where?: JsonObject;
  /** How many such events to wait for. Default: one. */
  readonly count?: number;
  /** The minimum time between the script's last action and the event. */
  readonly notBeforeMs?: number;
  /** Events that must not happen before this step is done. */
  readonly forbid?: readonly EventKind[];
  /** Store fields of the event, each under a name. */
  readonly keep?: Readonly<Record<string, string>>;
  /** How many milliseconds must pass without an event of `forbid`. */
  readonly quiet?: number;
  /** Send a frame on the newest open stream, or on the stream before it. */
  readonly send?: JsonObject;
  readonly on?: "newest" | "former";
  /** Send these bytes, written in base64, as a frame. */
  readonly sendBytes?: string;
  /** How to end the newest stream: with a status, or by breaking its connection. */
  readonly end?: Refusal | "broken";
  readonly set?: Manner;
  /** `start` starts a process. `clone` starts a second process on a copy of the state directory. */
  readonly agent?: "start" | "stop" | "kill" | "clone" | "suspend" | "resume";
  /** Shift the agent's wall clock by this many milliseconds. */
  readonly clock?: number;
}

/** A scenario in its format on disk. */
export interface Scenario {
  readonly name: string;
  /** The requirement that the scenario checks. */
  readonly checks: string;
  /** The settings of each Welcome. Default: a heartbeat every 200 ms. */
  readonly settings?: JsonObject;
  /**
   * The commands of executions, keyed by the name of their spec. `$digest:NAME` stands for the digest of the spec.
   */
  readonly specs?: Readonly<Record<string, readonly string[]>>;
  readonly steps: readonly Step[];
}

/** Read all scenarios of a folder, ordered by name. Rejects for an unknown field. */
export async function readScenarios(folder: string): Promise<readonly Scenario[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
  return Promise.all(names.map(async (name) => parseScenario(name, await readFile(join(folder, name), "utf8"))));
}

const STEP_FIELDS = new Set(
  "await where count notBeforeMs forbid keep quiet send on sendBytes end set agent clock".split(" "),
);
const FIELDS = new Set(["name", "checks", "settings", "specs", "steps"]);

/** The minimum time in milliseconds that a scenario takes because of the delays in its steps. */
export function leastMs({ steps }: Scenario): number {
  return steps.reduce((sum, { quiet = 0, notBeforeMs = 0 }) => sum + quiet + notBeforeMs, 0);
}

/** Parse a scenario. Throws for an unknown field, because a misspelled field would check nothing. */
export function parseScenario(file: string, text: string): Scenario {
  const scenario = JSON.parse(text) as Scenario;
  const unknown = [
    ...Object.keys(scenario).filter((field) => !FIELDS.has(field)),
    ...scenario.steps.flatMap((step) => Object.keys(step).filter((field) => !STEP_FIELDS.has(field))),
  ];
  if (unknown.length > 0) throw new Error(`${file} has unknown fields: ${unknown.join(", ")}`);
  if (`${scenario.name}.json` !== file) throw new Error(`${file} must contain its own name, not ${scenario.name}`);
  return scenario;
}

/** Whether a value contains everything that `asked` contains. */
export function says(value: JsonValue | undefined, asked: JsonValue): boolean {
  if (typeof asked !== "object" || asked === null || Array.isArray(asked)) {
    return JSON.stringify(value ?? null) === JSON.stringify(asked);
  }
  return Object.entries(asked).every(([key, one]) => {
    const found = typeof value === "object" && value !== null ? (value as JsonObject)[key] : undefined;
    return says(found, one);
  });
}
