import { randomBytes } from "node:crypto";
import {
  CHEAP_FRAMES,
  chunkOf,
  continuationFlood,
  emptyDataFlood,
  FATAL_FRAMES,
  hpackBomb,
  madeReset,
  PREFACE,
  rapidReset,
} from "./frames.ts";
import type { HostilePort, Scenario } from "./scenario.ts";

const EMPTY = Buffer.alloc(0);
const CALLS_A_ROUND = 100;
const CALLS_OF_A_BURST = 2_000;
const MANY_CONNECTIONS = 400;
const A_FEW_CONNECTIONS = 8;

/** Connections that send nothing, little, or garbage. */
export function silence(): readonly Scenario[] {
  const ports: readonly HostilePort[] = ["api", "agents", "probes"];
  const clientHello = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc]);
  return [
    ...ports.map((port) => idle(`idle-${port}`, port, EMPTY)),
    idle("preface-api", "api", PREFACE.subarray(0, 24)),
    idle("preface-agents", "agents", PREFACE.subarray(0, 24)),
    idle("settings-api", "api", PREFACE),
    idle("settings-agents", "agents", PREFACE),
    leaving("connect-close-api", "api", EMPTY, "closes"),
    leaving("connect-reset-agents", "agents", PREFACE, "resets"),
    leaving("half-close-api", "api", PREFACE, "half-closes"),
    leaving("garbage-api", "api", randomBytes(4_096), "closes"),
    leaving("garbage-agents", "agents", randomBytes(4_096), "closes"),
    leaving("tls-hello-api", "api", clientHello, "closes"),
  ];
}

/** Connections that send `open` and then nothing. */
export function idle(name: string, port: HostilePort, open: Buffer): Scenario {
  return { name, port, connections: MANY_CONNECTIONS, open };
}

/** Connections that send `open` and close. */
export function leaving(name: string, port: HostilePort, open: Buffer, then: NonNullable<Scenario["then"]>): Scenario {
  return { name, port, connections: 32, open, then };
}

/**
 * Connections that send a frame that causes a connection error in HTTP/2. The client leaves before the server responds.
 */
export function brokenFrames(port: HostilePort): readonly Scenario[] {
  return Object.entries(FATAL_FRAMES).map(([name, bytes]) =>
    leaving(`${name}-${port}`, port, Buffer.concat([PREFACE, bytes]), "closes"),
  );
}

/** Connections that keep sending a frame that is allowed once but ruinous in large numbers. */
export function floods(port: HostilePort, path: string): readonly Scenario[] {
  const flood = (name: string, open: Buffer, next: (round: number) => Buffer): Scenario => ({
    name: `${name}-${port}`,
    port,
    connections: A_FEW_CONNECTIONS,
    open,
    flood: next,
  });
  const cheap = Object.entries(CHEAP_FRAMES).map(([name, bytes]) => {
    const chunk = chunkOf(() => bytes);
    return flood(`${name}-flood`, PREFACE, () => chunk);
  });
  const empty = emptyDataFlood(path);
  const endless = continuationFlood();
  const pings = chunkOf(() => CHEAP_FRAMES.ping ?? EMPTY);
  return [
    ...cheap,
    { ...flood("unread-pings", PREFACE, () => pings), reads: false },
    flood("empty-data", empty.open, () => empty.chunk),
    flood("continuation", endless.open, () => endless.chunk),
    flood("rapid-reset", PREFACE, (round) => rapidReset(path, round * CALLS_A_ROUND, CALLS_A_ROUND)),
    flood("made-reset", PREFACE, (round) => madeReset(path, round * CALLS_A_ROUND, CALLS_A_ROUND)),
    // Send all calls together, then repeat this on a new connection. The server delays the new connection until its
    // address is within its budget, and then handles everything that was sent in the meantime.
    leaving(`reset-burst-${port}`, port, Buffer.concat([PREFACE, rapidReset(path, 0, CALLS_OF_A_BURST)]), "resets"),
    flood("hpack-bomb", PREFACE, (round) => hpackBomb(round * 4)),
  ];
}
