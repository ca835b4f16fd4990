import { createLogger, type Logger } from "@rollcall/process";
import { connectNats, type NatsLink, type NatsLinkOptions } from "../connect-nats.ts";
import type { StreamSettings } from "../event-stream.ts";
import type { NatsSettings } from "../nats-settings.ts";

/** The stream of tests: the defaults, in memory's stead a file, so that it outlives its server. */
export const STREAM: StreamSettings = {
  name: "ROLLCALL_EVENTS",
  subjectPrefix: "rollcall.events",
  storage: "file",
  replicas: 1,
  maxAgeMs: 3_600_000,
  maxBytes: 0,
  duplicateWindowMs: 120_000,
};

/** A link that tries again quickly. */
export function testLink(settings: NatsSettings, log: Logger, changes: Partial<NatsLinkOptions> = {}): NatsLink {
  return connectNats({
    settings,
    name: "rollcall test",
    log,
    connectTimeoutMs: 1_000,
    backoffBaseMs: 10,
    backoffMaxMs: 100,
    ...changes,
  });
}

/** A log whose lines can be read. */
export function recordingLog(): { readonly log: Logger; text(): string } {
  const lines: string[] = [];
  const log = createLogger({ level: "trace", destination: { write: (line) => lines.push(line) } });
  return { log, text: () => lines.join("") };
}
