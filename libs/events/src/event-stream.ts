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
 * The JetStream stream that takes the events. All but the name and the prefix matters only when it is created by us.
 */
export interface StreamSettings {
  readonly name: string;
  /** First tokens of the subject of each event. */
  readonly subjectPrefix: string;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  /** How long events are kept; 0 is without end. */
  readonly maxAgeMs: number;
  /** How many bytes of events are kept; 0 is as many as the account may. */
  readonly maxBytes: number;
  /** How long the server remembers ids, and so drops what it is sent twice. */
  readonly duplicateWindowMs: number;
}

/** The stream as it is. */
export interface EventStream {
  /** When it was created: another value is another stream, whatever its name. */
  readonly created: string;
  /** Sequence of the last message that it took; 0 when it never took one. */
  readonly lastSequence: number;
  /** Whether it takes nothing but our events, so that their sequences can be foretold. */
  readonly isExclusive: boolean;
  /** Whether messages stay until a limit is reached, and not until they have been read. */
  readonly keepsMessages: boolean;
  /** Largest message that it takes, headers included. */
  readonly maxMessageBytes: number;
}

/** The newest event in a stream. */
export interface StoredEventPosition extends EventPosition {
  readonly sequence: number;
}

const SUBJECTS_OVERLAP = 10_065;

/**
 * Find the stream, or create it. One that exists is left as it is: it belongs to the operator.
 * Rejects with what to do about it when it cannot take the events.
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

/** The stream as it is now; null when there is none. */
export async function lookAtEventStream(
  manager: JetStreamManager,
  settings: StreamSettings,
): Promise<EventStream | null> {
  const info = await findStream(manager, settings.name);
  return info === null ? null : toEventStream(info, settings);
}

/** The newest event that the stream holds; null when it holds none of ours. */
export async function readLastEvent(
  manager: JetStreamManager,
  { name, subjectPrefix }: StreamSettings,
): Promise<StoredEventPosition | null> {
  const message = await manager.streams.getMessage(name, {
    last_by_subj: subjectsBelow(subjectPrefix),
  });
  const position = message === null ? null : readEventPosition(message.data);
  return message === null || position === null ? null : { ...position, sequence: message.seq };
}

/** Tell whether JetStream answered with this error code. */
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
    description: "What happens in Rollcall",
    subjects: [subjectsBelow(subjectPrefix)],
    retention: RetentionPolicy.Limits,
    storage: settings.storage === "file" ? StorageType.File : StorageType.Memory,
    num_replicas: settings.replicas,
    max_age: nanos(maxAgeMs),
    max_bytes: maxBytes === 0 ? -1 : maxBytes,
    // The server takes no window that is longer than messages are kept.
    duplicate_window: nanos(maxAgeMs === 0 ? duplicateWindowMs : Math.min(duplicateWindowMs, maxAgeMs)),
  };
  try {
    const info = await manager.streams.add(config);
    log.info({ stream: name, subjects: info.config.subjects }, "nats stream created");
    return info;
  } catch (error) {
    // Another process may just have created it, with other settings.
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
  if (config.sealed) return "is sealed: it takes no messages any more";
  // Without acknowledgements nothing would ever count as published.
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
  // The client does not export the class.
  if (!(error instanceof Error) || error.name !== "JetStreamNotEnabled") return error;
  return new Error("JetStream is not enabled on the NATS server, or not for this account", {
    cause: error,
  });
}
