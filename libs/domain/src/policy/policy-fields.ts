/**
 * When a node is declared UNHEALTHY or UNKNOWN, how often it reports, and which problems keep new work away from it.
 * All times are in milliseconds and, except holds, greater than 0.
 */
export interface HealthPolicy {
  /**
   * Silence after which a node is UNHEALTHY. At least two heartbeat intervals, because otherwise one lost packet would
   * look like a failure.
   */
  readonly unhealthyAfterMs: number;
  /**
   * Consecutive missed heartbeats, three or more, after which a node is UNHEALTHY if `unhealthyAfterMs` has not passed
   * yet. Null to use only the time.
   */
  readonly unhealthyAfterMissed: number | null;
  /** Silence after which a node is UNKNOWN, counted from the same moment as `unhealthyAfterMs` and longer than it. */
  readonly unknownAfterMs: number;
  /**
   * Consecutive missed heartbeats after which a node is UNKNOWN, if `unknownAfterMs` has not passed yet. Null to use
   * only the time.
   */
  readonly unknownAfterMissed: number | null;
  /**
   * Interval between a node's heartbeats. An interval longer than a third of the time to UNHEALTHY is shortened to that
   * third.
   */
  readonly heartbeatIntervalMs: number;
  /** Interval between a node's information reports if nothing changes. */
  readonly infoIntervalMs: number;
  /** Interval between a node's usage reports while it is being watched. */
  readonly usageIntervalMs: number;
  /** How long a flapping node gets no new work after its last outage started or ended; 0 for no hold. */
  readonly flappingHoldMs: number;
  /** Whether a node gets no new work while its hardware is faulty or some approved hardware is missing. */
  readonly hardwareHold: boolean;
  /** How long a node gets no new work after an unexpected reboot; 0 for no hold. */
  readonly rebootHoldMs: number;
  /** Temperature in degrees Celsius above which a GPU is too hot; null for no limit. */
  readonly gpuMaxCelsius: number | null;
  /**
   * Whether agents can send heartbeats and reports more often than this policy requires, if their own configuration
   * requests it.
   */
  readonly agentMayShorten: boolean;
}

/** The documentation of one field of a health policy. */
export interface PolicyField {
  /** The field's name in the API, as in a generated stub. */
  readonly name: string;
  /**
   * The type of the field. Durations are in milliseconds. A "hold" is a duration that can be 0. A count or temperature
   * of 0 in the API is null here.
   */
  readonly kind: "duration" | "hold" | "count" | "celsius" | "switch";
  /** A description for help output and headings. */
  readonly doc: string;
}

/**
 * Every field of a health policy, in display order. The conversion to the API, the stored form and the command line's
 * flags are derived from this table. A field without a row is a compile error.
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
    doc: "heartbeats missed in a row after which a node is UNHEALTHY, if that comes first; 0 to use only the time",
  },
  unknownAfterMs: {
    name: "unknownAfter",
    kind: "duration",
    doc: "silence after which a node is UNKNOWN",
  },
  unknownAfterMissed: {
    name: "unknownAfterMissed",
    kind: "count",
    doc: "heartbeats missed in a row after which a node is UNKNOWN, if that comes first; 0 to use only the time",
  },
  heartbeatIntervalMs: {
    name: "heartbeatInterval",
    kind: "duration",
    doc: "time between heartbeats",
  },
  infoIntervalMs: {
    name: "infoInterval",
    kind: "duration",
    doc: "time between reports of a node's information, in addition to those on change",
  },
  usageIntervalMs: {
    name: "usageInterval",
    kind: "duration",
    doc: "time between reports of usage while the node is watched",
  },
  flappingHoldMs: {
    name: "flappingHold",
    kind: "hold",
    doc: "how long a flapping node gets no new work after its last outage; 0s to never hold it",
  },
  hardwareHold: {
    name: "hardwareHold",
    kind: "switch",
    doc:
      "whether a node gets no new work while it has less hardware than was approved, or a GPU that is missing or too " +
      "hot: on or off",
  },
  rebootHoldMs: {
    name: "rebootHold",
    kind: "hold",
    doc: "how long a node gets no new work after an unexpected reboot; 0s to never hold it",
  },
  gpuMaxCelsius: {
    name: "gpuMaxCelsius",
    kind: "celsius",
    doc: "temperature in degrees Celsius above which a GPU is too hot; 0 for no limit",
  },
  agentMayShorten: {
    name: "agentMayShorten",
    kind: "switch",
    doc:
      "whether agents can use shorter intervals from their own configuration, down to one heartbeat per second " +
      "and information every 10s: on or off",
  },
} as const satisfies Readonly<Record<keyof HealthPolicy, PolicyField>>;

/** The names of all fields, in the order of the table. */
export const POLICY_FIELD_NAMES: readonly (keyof HealthPolicy)[] = Object.keys(POLICY_FIELDS).filter(isPolicyField);

/** Whether a string names a field of a health policy. */
export function isPolicyField(text: string): text is keyof HealthPolicy {
  return Object.hasOwn(POLICY_FIELDS, text);
}
