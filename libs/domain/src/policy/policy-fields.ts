/** When a silent node is declared unwell, and how often it reports. All times in milliseconds, more than 0. */
export interface HealthPolicy {
  /** Silence after which a node is UNHEALTHY. At least two heartbeats, or one lost packet looks like a failure. */
  readonly unhealthyAfterMs: number;
  /** Heartbeats missed in a row after which it is UNHEALTHY, if that comes first; at least 3. Null: time alone. */
  readonly unhealthyAfterMissed: number | null;
  /** Silence after which it is UNKNOWN, counted like `unhealthyAfterMs`, which it exceeds. */
  readonly unknownAfterMs: number;
  /** Heartbeats missed in a row after which it is UNKNOWN, if that comes first. Null: time alone. */
  readonly unknownAfterMissed: number | null;
  /** How often a node beats. Shortened to a third of the time to UNHEALTHY if it is longer. */
  readonly heartbeatIntervalMs: number;
  /** How often it reports what it is, besides on change. */
  readonly infoIntervalMs: number;
  /** How often it reports usage while it is watched. */
  readonly usageIntervalMs: number;
  /** How long a node that flaps takes no new work after its last outage began or ended; 0: it is never held. */
  readonly flappingHoldMs: number;
  /** Whether a node whose hardware is less than was approved, or not well, takes no new work. */
  readonly hardwareHold: boolean;
  /** For how long a node that rebooted unexpectedly takes no new work; 0: not at all. */
  readonly rebootHoldMs: number;
  /** Degrees beyond which a GPU is too hot. Null: none is. */
  readonly gpuMaxCelsius: number | null;
  /** Whether an agent may beat and report more often than this, if its own configuration wishes so. */
  readonly agentMayShorten: boolean;
}

/** What people and programs need to know of one field of a health policy. */
export interface PolicyField {
  /** Its name in the API, as a generated stub has it. */
  readonly name: string;
  /**
   * Durations are in milliseconds here, and a hold is one that may be 0. A count or temperature of 0 in the API is null
   * here.
   */
  readonly kind: "duration" | "hold" | "count" | "celsius" | "switch";
  /** What it says, for help texts and headings. */
  readonly doc: string;
}

/**
 * Every field of a health policy, in the order in which they are shown: the one table from which the conversion to the
 * API, the record's form and the flags of the command line are made. A field without a row does not compile.
 */
export const POLICY_FIELDS = {
  unhealthyAfterMs: {
    name: "unhealthyAfter",
    kind: "duration",
    doc: "silence after which a node is UNHEALTHY",
  },
  unhealthyAfterMissed: {
    name: "unhealthyAfterMissed",
    kind: "count",
    doc: "heartbeats missed in a row after which a node is UNHEALTHY, if that comes first; 0 for time alone",
  },
  unknownAfterMs: {
    name: "unknownAfter",
    kind: "duration",
    doc: "silence after which a node is UNKNOWN",
  },
  unknownAfterMissed: {
    name: "unknownAfterMissed",
    kind: "count",
    doc: "heartbeats missed in a row after which a node is UNKNOWN, if that comes first; 0 for time alone",
  },
  heartbeatIntervalMs: {
    name: "heartbeatInterval",
    kind: "duration",
    doc: "time between heartbeats",
  },
  infoIntervalMs: {
    name: "infoInterval",
    kind: "duration",
    doc: "time between reports of what a node is, besides on change",
  },
  usageIntervalMs: {
    name: "usageInterval",
    kind: "duration",
    doc: "time between reports of usage while the node is watched",
  },
  flappingHoldMs: {
    name: "flappingHold",
    kind: "hold",
    doc: "for how long a node that flaps takes no new work after its last outage; 0s for never held",
  },
  hardwareHold: {
    name: "hardwareHold",
    kind: "switch",
    doc:
      "whether a node with less hardware than was approved, or with a GPU gone or too hot, takes no new work: on " +
      "or off",
  },
  rebootHoldMs: {
    name: "rebootHold",
    kind: "hold",
    doc: "for how long a node that rebooted unexpectedly takes no new work; 0s for not at all",
  },
  gpuMaxCelsius: {
    name: "gpuMaxCelsius",
    kind: "celsius",
    doc: "temperature in degrees Celsius beyond which a GPU is too hot; 0 for none",
  },
  agentMayShorten: {
    name: "agentMayShorten",
    kind: "switch",
    doc:
      "whether agents whose own configuration asks for shorter intervals get them, down to a heartbeat each " +
      "second and information every 10s: on or off",
  },
} as const satisfies Readonly<Record<keyof HealthPolicy, PolicyField>>;

/** The names of all fields, in the order of the table. */
export const POLICY_FIELD_NAMES: readonly (keyof HealthPolicy)[] = Object.keys(POLICY_FIELDS).filter(isPolicyField);

/** Whether a text names a field of a health policy. */
export function isPolicyField(text: string): text is keyof HealthPolicy {
  return Object.hasOwn(POLICY_FIELDS, text);
}
