/**
 * The names of a setting of Bacalhau's nodes. Files from before version 1.5 nest the setting in its own section, and
 * people leave out leading sections.
 */
export function bacalhauNames(side: "Compute" | "Requester", name: string): readonly string[] {
  return [
    `Node.${side}.ControlPlaneSettings.${name}`,
    `${side}.ControlPlaneSettings.${name}`,
    `Node.${side}.${name}`,
    `${side}.${name}`,
  ];
}

/** Other programs' names for the heartbeat interval. Bare numbers are seconds, as in KohakuRiver. */
export const HEARTBEAT_INTERVAL_NAMES: readonly string[] = [
  ...bacalhauNames("Compute", "HeartbeatFrequency"),
  "HeartbeatFrequency",
  "HEARTBEAT_INTERVAL",
  "HEARTBEAT_INTERVAL_SECONDS",
];

/** Other programs' names for the interval of node info reports. */
export const INFO_INTERVAL_NAMES: readonly string[] = [
  ...bacalhauNames("Compute", "InfoUpdateFrequency"),
  ...bacalhauNames("Requester", "InfoUpdateFrequency"),
  "InfoUpdateFrequency",
];
