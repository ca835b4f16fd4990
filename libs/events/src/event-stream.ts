import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import type { Logger } from "@rollcall/process";
import { type EventPosition, readEventPosition } from "./cloud-event.ts";
import { covers, subjectsBelow } from "./subjects.ts";

/**
 * The JetStream stream that stores the events. Except for the name and the prefix, the settings apply only when
 * Rollcall creates the stream.
 */
export interface StreamSettings {
  readonly name: string;
  /** Leading tokens of each event's subject. */
  readonly subjectPrefix: string;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  /** Maximum age of events; 0 means unlimited. */
  readonly maxAgeMs: number;
  /** Maximum total size of events in bytes; 0 means the account's limit. */
  readonly maxBytes: number;
  /** How long the server remembers message ids to drop duplicates. */
  readonly duplicateWindowMs: number;
}

/** The current state of the stream. */
export interface EventStream {
  /** When the stream was created. A different value means a different stream, even under the same name. */
  readonly created: string;
  /** Sequence of the last message ever stored in the stream; 0 when there was none. */
  readonly lastSequence: number;
  /** Whether the stream takes only Rollcall's events, so that their sequences are predictable. */
  readonly isExclusive: boolean;
  /** Whether messages are kept until a limit is reached, instead of being removed when consumers read them. */
  readonly keepsMessages: boolean;
  /** Maximum message size, including headers. */
  readonly maxMessageBytes: number;
}

export interface EventRowPosition extends EventPosition {
  readonly sequence: number;
}

const SUBJECTS_OVERLAP = 10_065;

/**
 * Find the stream or create it. An existing stream is not changed, because it belongs to the operator. If it cannot
 * take the events, the error says what to do.
 */
export async function ensureEventStream(
  manager: JetStreamManager,
  settings: StreamSettings,
  log: Logger,
): Promise<EventStream> {
  const found = await findStream(manager, settings.name);
  const info = found ?? (await createStream(manager, settings, log));
  const problem = findProblem(info, settings);
  if (problem !== null) throw new Error(`the NATS stream ${settings.name} ${problem}`);
  return toEventStream(info, settings);
}

/** The current state of the stream; null when the stream does not exist. */
export async function checkEventStream(
  manager: JetStreamManager,
  settings: StreamSettings,
): Promise<EventStream | null> {
  const info = await findStream(manager, settings.name);
  return info === null ? null : toEventStream(info, settings);
}

/** Rollcall's newest event in the stream; null when the stream has none. */
export async function readLastEvent(
  manager: JetStreamManager,
  { name, subjectPrefix }: StreamSettings,
): Promise<EventRowPosition | null> {
  const message = await manager.streams.getMessage(name, {
    last_by_subj: subjectsBelow(subjectPrefix),
  });
  const position = message === null ? null : readEventPosition(message.data);
  return message === null || position === null ? null : { ...position, sequence: message.seq };
}

/** Whether an error is a JetStream error with one of these codes. */
export function isApiError(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof JetStreamApiError && codes.includes(error.code);
}

async function findStream(manager: JetStreamManager, name: string): Promise<StreamInfo | null> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (isApiError(error, JetStreamApiCodes.StreamNotFound)) return null;
    throw explained(error);
  }
}

async function createStream(manager: JetStreamManager, settings: StreamSettings, log: Logger): Promise<StreamInfo> {
  const { name, subjectPrefix, maxAgeMs, maxBytes, duplicateWindowMs } = settings;
  const config: Partial<StreamConfig> & { name: string } = {
    name,
    description: "Events of Rollcall",
    subjects: [subjectsBelow(subjectPrefix)],
    retention: RetentionPolicy.Limits,
    storage: settings.storage === "file" ? StorageType.File : StorageType.Memory,
    num_replicas: settings.replicas,
    max_age: nanos(maxAgeMs),
    max_bytes: maxBytes === 0 ? -1 : maxBytes,
    // Shorten the window to the maximum age, because the server rejects a longer window.
    duplicate_window: nanos(maxAgeMs === 0 ? duplicateWindowMs : Math.min(duplicateWindowMs, maxAgeMs)),
  };
  try {
    const info = await manager.streams.add(config);
    log.info({ stream: name, subjects: info.config.subjects }, "nats stream created");
    return info;
  } catch (error) {
    // Look for the stream again, because another process may have just created it with different settings.
    const existing = await findStream(manager, name);
    if (existing !== null) return existing;
    const overlaps = isApiError(error, SUBJECTS_OVERLAP);
    const hint = overlaps ? "; name that stream in Events.Nats.Stream, or choose another prefix" : "";
    const cause = error instanceof Error ? error.message : String(error);
    throw new Error(`the NATS stream ${name} cannot be created: ${cause}${hint}`, { cause: error });
  }
}

function findProblem({ config }: StreamInfo, { subjectPrefix }: StreamSettings): string | null {
  const wanted = subjectsBelow(subjectPrefix);
  const subjects = config.subjects ?? [];
  if (!subjects.some((subject) => covers(subject, wanted))) {
    return (
      `takes ${subjects.join(", ") || "no subjects"} but not ${wanted}: add it to the stream's subjects, or name ` +
      "another stream in Events.Nats.Stream"
    );
  }
  if (config.sealed) return "is sealed: it accepts no new messages";
  // Refuse a stream that acknowledges nothing, because no event would ever count as published.
  if (config.no_ack === true) return "acknowledges nothing (no_ack): events cannot be published reliably";
  return null;
}

function toEventStream({ config, created, state }: StreamInfo, settings: StreamSettings): EventStream {
  const ours = subjectsBelow(settings.subjectPrefix);
  const isFed = (config.sources ?? []).length > 0;
  const limit = config.max_msg_size ?? -1;
  return {
    created,
    lastSequence: state.last_seq,
    isExclusive: !isFed && (config.subjects ?? []).every((subject) => covers(ours, subject)),
    keepsMessages: config.retention === RetentionPolicy.Limits,
    maxMessageBytes: limit > 0 ? limit : Number.POSITIVE_INFINITY,
  };
}

function explained(error: unknown): unknown {
  // Check the name, because the client does not export the error class.
  if (!(error instanceof Error) || error.name !== "JetStreamNotEnabled") return error;
  return new Error("JetStream is not enabled on the NATS server, or not for this account", {
    cause: error,
  });
}
