import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What the scripted control plane sees of an agent. */
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

/** How the scripted control plane answers from now on. What is left out stays. */
export interface Manner {
  /** `lose`: it is taken, and the answer is lost. `silent`: no answer. */
  readonly register?: "take" | "lose" | "silent" | Refusal;
  readonly rotate?: "take" | "lose" | Refusal;
  /** `ignore`: no answer. */
  readonly hello?: "welcome" | "ignore" | Refusal | { readonly goAway: JsonObject };
  /** What else a Welcome says, over the scenario's. */
  readonly welcome?: JsonObject;
  readonly acks?: boolean;
  readonly reportAcks?: boolean;
  /** `wrong`: other bytes than were asked for. `gone`: the record has none any more. */
  readonly specs?: "send" | "wrong" | "gone" | "silent";
  /** What happens to connections to the second health replica. Default: `closed`. */
  readonly second?: "open" | "closed";
  /** The same of the first one. Default: `open`. */
  readonly first?: "open" | "closed";
}

/** How it answers where nothing was set. */
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

/** One step of a script. Exactly one of `await`, `quiet`, `send`, `sendBytes`, `set`, `agent`, `clock` says which. */
export interface Step {
  /** Wait until the agent does this. */
  readonly await?: EventKind;
  /** What the event must say; `$name` stands for what `keep` kept. Others of its kind are passed over. */
  readonly where?: JsonObject;
  /** How often. Default: once. */
  readonly count?: number;
  /** No sooner than so long after the script last did something. */
  readonly notBeforeMs?: number;
  /** What must not happen meanwhile. */
  readonly forbid?: readonly EventKind[];
  /** Remember a field of the event, by a name. */
  readonly keep?: Readonly<Record<string, string>>;
  /** Watch for so long that nothing of `forbid` happens. */
  readonly quiet?: number;
  /** Send a frame on the newest stream that is open, or on the one before it. */
  readonly send?: JsonObject;
  readonly on?: "newest" | "former";
  /** Send a frame as it is, base64. */
  readonly sendBytes?: string;
  /** End the newest stream with a status. */
  readonly end?: Refusal | "broken";
  readonly set?: Manner;
  /** `start` begins a process, `clone` a second one on a copy of the state directory. */
  readonly agent?: "start" | "stop" | "kill" | "clone" | "suspend" | "resume";
  /** Make the agent's wall clock wrong by so many milliseconds. */
  readonly clock?: number;
}

/** A scenario as it is on the disk. */
export interface Scenario {
  readonly name: string;
  /** What an agent that passes keeps to. */
  readonly checks: string;
  /** Settings of each Welcome. Default: a heartbeat every 200 ms. */
  readonly settings?: JsonObject;
  /** Commands of executions, by name: `$digest:NAME` stands for the digest of the spec. */
  readonly specs?: Readonly<Record<string, readonly string[]>>;
  readonly steps: readonly Step[];
}

/** Read all scenarios of a folder, by name. Rejects for one that has an unknown field. */
export async function readScenarios(folder: string): Promise<readonly Scenario[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
  return Promise.all(names.map(async (name) => parseScenario(name, await readFile(join(folder, name), "utf8"))));
}

const STEP_FIELDS = new Set(
  "await where count notBeforeMs forbid keep quiet send on sendBytes end set agent clock".split(" "),
);
const FIELDS = new Set(["name", "checks", "settings", "specs", "steps"]);

/** How long a scenario waits at least, in milliseconds. */
export function leastMs({ steps }: Scenario): number {
  return steps.reduce((sum, { quiet = 0, notBeforeMs = 0 }) => sum + quiet + notBeforeMs, 0);
}

/** Read one. Throws for an unknown field: a misspelt one would check nothing. */
export function parseScenario(file: string, text: string): Scenario {
  const scenario = JSON.parse(text) as Scenario;
  const unknown = [
    ...Object.keys(scenario).filter((field) => !FIELDS.has(field)),
    ...scenario.steps.flatMap((step) => Object.keys(step).filter((field) => !STEP_FIELDS.has(field))),
  ];
  if (unknown.length > 0) throw new Error(`${file} has unknown fields: ${unknown.join(", ")}`);
  if (`${scenario.name}.json` !== file) throw new Error(`${file} names itself ${scenario.name}`);
  return scenario;
}

/** Whether a value says all that another one asks for. */
export function says(value: JsonValue | undefined, asked: JsonValue): boolean {
  if (typeof asked !== "object" || asked === null || Array.isArray(asked)) {
    return JSON.stringify(value ?? null) === JSON.stringify(asked);
  }
  return Object.entries(asked).every(([key, one]) => {
    const found = typeof value === "object" && value !== null ? (value as JsonObject)[key] : undefined;
    return says(found, one);
  });
}
