/** Where a scenario knocks. */
export type HostilePort = "api" | "agents" | "probes";

/** Where everything listens. */
export interface HostileTarget {
  readonly ports: Readonly<Record<HostilePort, number>>;
  /** PEM of the authority of the certificate of the API and the agents' port; clear text when absent. */
  readonly authority?: string;
}

/** What an attacker may know. */
export interface HostileKnowledge {
  /** Of a viewer, for scenarios in which a known caller misbehaves. */
  readonly viewerToken: string;
}

/**
 * One way to misbehave, as data: a bounded number of connections that say something, again and again until its time is
 * over.
 */
export interface Scenario {
  readonly name: string;
  readonly port: HostilePort;
  /** Connections held open at a time; each that ends is replaced, within the bound of the engine. */
  readonly connections: number;
  /** Written as soon as a connection stands. */
  readonly open: Buffer;
  /** Written after that for as long as the server takes it; `round` counts from 0 on each connection. */
  readonly flood?: (round: number) => Buffer;
  /** What a connection does once it has written everything. Default: it stays. */
  readonly then?: "stays" | "closes" | "resets" | "half-closes";
  /** Whether it reads what it is sent. Default true. */
  readonly reads?: boolean;
}
