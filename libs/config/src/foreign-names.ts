/**
 * The names that a setting of Bacalhau's nodes goes by: in its files before 1.5 it lies in a section of its own, and
 * people leave the words before it out.
 */
export function bacalhauNames(side: "Compute" | "Requester", name: string): readonly string[] {
  return [
    `Node.${side}.ControlPlaneSettings.${name}`,
    `${side}.ControlPlaneSettings.${name}`,
    `Node.${side}.${name}`,
    `${side}.${name}`,
  ];
}

/** Other programs' names for the time between heartbeats. Bare numbers are seconds, as KohakuRiver means them. */
export const HEARTBEAT_INTERVAL_NAMES: readonly string[] = [
  ...bacalhauNames("Compute", "HeartbeatFrequency"),
  "HeartbeatFrequency",
  "HEARTBEAT_INTERVAL",
  "HEARTBEAT_INTERVAL_SECONDS",
];

/** Other programs' names for the time between reports of what a node is. */
export const INFO_INTERVAL_NAMES: readonly string[] = [
  ...bacalhauNames("Compute", "InfoUpdateFrequency"),
  ...bacalhauNames("Requester", "InfoUpdateFrequency"),
  "InfoUpdateFrequency",
];
