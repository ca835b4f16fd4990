/** The port that a scenario attacks. */
export type HostilePort = "api" | "agents" | "probes";

/** The server to attack. */
export interface HostileTarget {
  readonly ports: Readonly<Record<HostilePort, number>>;
  /**
   * The PEM of the authority that signed the certificate of the API and of the agents' port. Absent: plain text.
   */
  readonly authority?: string;
}

/** The information that an attacker can have. */
export interface HostileKnowledge {
  /** A viewer's token, for scenarios where a known caller misbehaves. */
  readonly viewerToken: string;
}

/**
 * One kind of misuse, as data: a limited number of connections that send something repeatedly until the time is
 * up.
 */
export interface Scenario {
  readonly name: string;
  readonly port: HostilePort;
  /**
   * The number of connections held open. Each connection that ends is replaced, within the attacker's rate limit.
   */
  readonly connections: number;
  /** Bytes to write as soon as a connection is open. */
  readonly open: Buffer;
  /** Bytes to write after `open`, as long as the server accepts them. `round` counts from 0 on each connection. */
  readonly flood?: (round: number) => Buffer;
  /** The action of a connection after it has written everything. Default: it stays open. */
  readonly then?: "stays" | "closes" | "resets" | "half-closes";
  /** Whether the connection reads incoming data. Default: true. */
  readonly reads?: boolean;
}
