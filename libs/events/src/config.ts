import {
  bacalhauNames,
  bool,
  bytes,
  type ConfigValues,
  defineKeys,
  duration,
  int,
  list,
  oneOf,
  optional,
  readFurther,
  text,
} from "@rollcall/config";
import type { StreamSettings } from "./event-stream.ts";
import type { NatsSettings } from "./nats-settings.ts";
import { readNatsUrl } from "./nats-url.ts";
import { covers, subjectsBelow } from "./subjects.ts";

/** A NATS subject without wildcards. */
const SUBJECT = /^[A-Za-z0-9_/%=-]+(?:\.[A-Za-z0-9_/%=-]+)*$/;
const SUBJECT_RULE = "a NATS subject without wildcards, such as rollcall.events";
const STREAM_NAME = /^[A-Za-z0-9_-]{1,255}$/;

/** The configuration keys for publishing to NATS. */
export const EVENTS_KEYS = defineKeys({
  "Events.Nats.Url": {
    schema: list(natsUrl()),
    default: [],
    flag: "nats",
    doc:
      "Servers of the NATS cluster that receives the events: nats://HOST:PORT, or tls://HOST:PORT to require TLS. " +
      "List all servers: others are not used. When not set, nothing is published. Credentials can be " +
      "part of a URL; the other keys of Events.Nats keep them separate.",
  },
  "Events.Nats.CredentialsFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "A .creds file with the credentials for NATS. It is read again for each connection. Set at most one kind of " +
      "NATS credentials.",
  },
  "Events.Nats.NkeyFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "A file with the seed of a user's nkey, instead of a .creds file.",
  },
  "Events.Nats.Token": {
    schema: optional(text()),
    default: undefined,
    secret: true,
    doc: "A token, instead of a .creds file.",
  },
  "Events.Nats.User": {
    schema: optional(text()),
    default: undefined,
    doc: "A user, instead of a .creds file; requires Events.Nats.Password.",
  },
  "Events.Nats.Password": {
    schema: optional(text()),
    default: undefined,
    secret: true,
    doc: "The password of Events.Nats.User.",
  },
  "Events.Nats.Tls.CaFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "PEM file of the authorities to trust for NATS servers. When not set: those of the system.",
  },
  "Events.Nats.Tls.CertFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "PEM file of the client certificate for NATS servers; requires Events.Nats.Tls.KeyFile.",
  },
  "Events.Nats.Tls.KeyFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "PEM file of the private key for Events.Nats.Tls.CertFile.",
  },
  "Events.Nats.Tls.HandshakeFirst": {
    schema: bool(),
    default: false,
    doc: "Whether to start TLS before the NATS protocol, for servers with handshake_first.",
  },
  "Events.Nats.InboxPrefix": {
    schema: optional(text({ pattern: SUBJECT, expects: SUBJECT_RULE })),
    default: undefined,
    doc: "Subject prefix for replies, for users whose permissions do not include _INBOX.",
  },
  "Events.Nats.SubjectPrefix": {
    schema: text({ maxLength: 255, pattern: SUBJECT, expects: SUBJECT_RULE }),
    default: "rollcall.events",
    doc:
      "Prefix of each event's subject: an event of type node.approved about web-1 goes to " +
      "rollcall.events.node.approved.web-1. Characters of a node id other than letters, digits, _ and - are " +
      "percent-encoded: node.1 becomes node%2E1.",
  },
  "Events.Nats.Stream": {
    schema: text({ pattern: STREAM_NAME, expects: "a stream name of letters, digits, _ and -" }),
    default: "ROLLCALL_EVENTS",
    doc:
      "The JetStream stream that stores the events. It is created with the settings below if it does not exist. " +
      "An existing stream is used unchanged; it must take all subjects below Events.Nats.SubjectPrefix.",
  },
  "Events.Nats.Storage": {
    schema: oneOf(["file", "memory"]),
    default: "file" as StreamSettings["storage"],
    doc: "Where a newly created stream stores events.",
  },
  "Events.Nats.Replicas": {
    schema: int({ min: 1, max: 5 }),
    default: 1,
    doc: "How many servers of the NATS cluster store a newly created stream.",
  },
  "Events.Nats.MaxAge": {
    schema: duration(),
    default: 7 * 86_400_000,
    doc: "How long a newly created stream keeps events; 0 means unlimited.",
  },
  "Events.Nats.MaxBytes": {
    schema: bytes(),
    default: 0,
    doc: "How many bytes of the newest events a newly created stream keeps; 0 means NATS's limit.",
  },
  "Events.Nats.DuplicateWindow": {
    schema: duration({ minMs: 100 }),
    default: 120_000,
    doc:
      "How long a newly created stream remembers event ids to drop duplicates. At most Events.Nats.MaxAge. " +
      "Consumers must deduplicate later events by id.",
  },
  "Events.HeartbeatTopic": {
    schema: optional(text({ maxLength: 255, pattern: SUBJECT, expects: SUBJECT_RULE })),
    default: undefined,
    aliases: [...bacalhauNames("Requester", "HeartbeatTopic"), "HeartbeatTopic"],
    doc:
      "The NATS subject on which each heartbeat is published immediately, without any guarantee. It must not be " +
      "below Events.Nats.SubjectPrefix. When not set, or without Events.Nats.Url, heartbeats are not published.",
  },
});

export type EventsConfig = ConfigValues<typeof EVENTS_KEYS>;

/** A conflict between individually valid values, with the key of one of the values. */
export interface EventsConfigProblem {
  readonly path: keyof EventsConfig & string;
  readonly message: string;
}

/** Find conflicts between individually valid values. Called as loadConfig's `check`. */
export function checkEventsConfig(values: EventsConfig): readonly EventsConfigProblem[] {
  const problems: EventsConfigProblem[] = [];
  const complain = (path: EventsConfigProblem["path"], message: string) => problems.push({ path, message });
  const isSet = (path: EventsConfigProblem["path"]) => values[path] !== undefined;

  for (const path of WAYS_TO_SAY_WHO.filter(isSet).slice(1)) {
    complain(path, "set at most one kind of NATS credentials");
  }
  if (isSet("Events.Nats.User") !== isSet("Events.Nats.Password")) {
    complain("Events.Nats.Password", "must be set together with Events.Nats.User");
  }
  if (isSet("Events.Nats.Tls.CertFile") !== isSet("Events.Nats.Tls.KeyFile")) {
    complain("Events.Nats.Tls.KeyFile", "must be set together with Events.Nats.Tls.CertFile");
  }
  const maxAgeMs = values["Events.Nats.MaxAge"];
  if (maxAgeMs !== 0 && values["Events.Nats.DuplicateWindow"] > maxAgeMs) {
    complain("Events.Nats.DuplicateWindow", "must not be longer than Events.Nats.MaxAge");
  }
  const topic = values["Events.HeartbeatTopic"];
  if (topic !== undefined && covers(subjectsBelow(values["Events.Nats.SubjectPrefix"]), topic)) {
    complain("Events.HeartbeatTopic", "must not be below Events.Nats.SubjectPrefix");
  }
  return problems;
}

const WAYS_TO_SAY_WHO = [
  "Events.Nats.CredentialsFile",
  "Events.Nats.NkeyFile",
  "Events.Nats.Token",
  "Events.Nats.User",
] as const;

/** The settings for connecting to NATS; null when NATS is not configured. */
export function natsSettings(values: EventsConfig): NatsSettings | null {
  const urls = values["Events.Nats.Url"];
  if (urls.length === 0) return null;
  return {
    urls,
    credentialsFile: values["Events.Nats.CredentialsFile"],
    nkeyFile: values["Events.Nats.NkeyFile"],
    token: values["Events.Nats.Token"],
    user: values["Events.Nats.User"],
    password: values["Events.Nats.Password"],
    inboxPrefix: values["Events.Nats.InboxPrefix"],
    tls: {
      caFile: values["Events.Nats.Tls.CaFile"],
      certFile: values["Events.Nats.Tls.CertFile"],
      keyFile: values["Events.Nats.Tls.KeyFile"],
      handshakeFirst: values["Events.Nats.Tls.HandshakeFirst"],
    },
  };
}

/** The configured stream. */
export function streamSettings(values: EventsConfig): StreamSettings {
  return {
    name: values["Events.Nats.Stream"],
    subjectPrefix: values["Events.Nats.SubjectPrefix"],
    storage: values["Events.Nats.Storage"],
    replicas: values["Events.Nats.Replicas"],
    maxAgeMs: values["Events.Nats.MaxAge"],
    maxBytes: values["Events.Nats.MaxBytes"],
    duplicateWindowMs: values["Events.Nats.DuplicateWindow"],
  };
}

/** The URL of one server. Listings and messages omit its credentials. */
function natsUrl() {
  return readFurther(text(), (written) => {
    const read = readNatsUrl(written);
    if (read.ok) return { value: read.url };
    return { problem: `the value is not the URL of a NATS server such as nats://nats:4222: ${read.reason}` };
  });
}
