import { createLogger, type Logger } from "@rollcall/process";
import { connectNats, type NatsLink, type NatsLinkOptions } from "../connect-nats.ts";
import type { StreamSettings } from "../event-stream.ts";
import type { NatsSettings } from "../nats-settings.ts";

/** The stream for tests: the default settings, but stored in a file so that it survives its server. */
export const STREAM: StreamSettings = {
  name: "ROLLCALL_EVENTS",
  subjectPrefix: "rollcall.events",
  storage: "file",
  replicas: 1,
  maxAgeMs: 3_600_000,
  maxBytes: 0,
  duplicateWindowMs: 120_000,
};

/** Create a link with short reconnect delays. */
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

/** Create a log that records its lines. text() returns them. */
export function recordingLog(): { readonly log: Logger; text(): string } {
  const lines: string[] = [];
  const log = createLogger({ level: "trace", destination: { write: (line) => lines.push(line) } });
  return { log, text: () => lines.join("") };
}
