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

/** Tokens of a subject, without wildcards. */
const SUBJECT = /^[A-Za-z0-9_/%=-]+(?:\.[A-Za-z0-9_/%=-]+)*$/;
const SUBJECT_RULE = "a NATS subject without wildcards, such as rollcall.events";
const STREAM_NAME = /^[A-Za-z0-9_-]{1,255}$/;

/** What can be configured of the way outward. */
export const EVENTS_KEYS = defineKeys({
  "Events.Nats.Url": {
    schema: list(natsUrl()),
    default: [],
    flag: "nats",
    doc:
      "Servers of the NATS cluster that receives the events: nats://HOST:PORT, or tls://HOST:PORT where TLS must " +
      "be offered. Name each that may be the only one alive. Without any, nothing is published. Credentials in a " +
      "URL work; the keys below keep them out of sight.",
  },
  "Events.Nats.CredentialsFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "A .creds file that says who connects to NATS. It is read for each connection. Of the ways to say who " +
      "connects, at most one may be set.",
  },
  "Events.Nats.NkeyFile": {
    schema: optional(text()),
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
    doc: "A user, instead of a .creds file; together with Events.Nats.Password.",
  },
  "Events.Nats.Password": {
    schema: optional(text()),
    default: undefined,
    secret: true,
    doc: "The password of Events.Nats.User.",
  },
  "Events.Nats.Tls.CaFile": {
    schema: optional(text()),
    default: undefined,
    doc: "PEM file of the authorities that may vouch for NATS servers. When not set: those of the system.",
  },
  "Events.Nats.Tls.CertFile": {
    schema: optional(text()),
    default: undefined,
    doc: "PEM file of the certificate to show to NATS servers; together with Events.Nats.Tls.KeyFile.",
  },
  "Events.Nats.Tls.KeyFile": {
    schema: optional(text()),
    default: undefined,
    doc: "PEM file of the key of Events.Nats.Tls.CertFile.",
  },
  "Events.Nats.Tls.HandshakeFirst": {
    schema: bool(),
    default: false,
    doc: "Whether to speak TLS from the first byte on, as a server with handshake_first asks for.",
  },
  "Events.Nats.InboxPrefix": {
    schema: optional(text({ pattern: SUBJECT, expects: SUBJECT_RULE })),
    default: undefined,
    doc: "First tokens of the subjects on which NATS answers, for users whose permissions do not include _INBOX.",
  },
  "Events.Nats.SubjectPrefix": {
    schema: text({ maxLength: 255, pattern: SUBJECT, expects: SUBJECT_RULE }),
    default: "rollcall.events",
    doc:
      "First tokens of the subject of each event: an event of type node.approved about web-1 goes to " +
      "rollcall.events.node.approved.web-1. Characters of a node's id that are not letters, digits, _ or - are " +
      "written as in URLs: node.1 is node%2E1.",
  },
  "Events.Nats.Stream": {
    schema: text({ pattern: STREAM_NAME, expects: "a stream's name: letters, digits, _ and -" }),
    default: "ROLLCALL_EVENTS",
    doc:
      "The JetStream stream that keeps the events. When there is none of this name, it is created, with the " +
      "settings below. One that exists is used as it is; it must take all subjects below " +
      "Events.Nats.SubjectPrefix.",
  },
  "Events.Nats.Storage": {
    schema: oneOf(["file", "memory"]),
    default: "file" as StreamSettings["storage"],
    doc: "Where a stream that is created keeps events.",
  },
  "Events.Nats.Replicas": {
    schema: int({ min: 1, max: 5 }),
    default: 1,
    doc: "How many servers of the NATS cluster hold a stream that is created.",
  },
  "Events.Nats.MaxAge": {
    schema: duration(),
    default: 7 * 86_400_000,
    doc: "How long a stream that is created keeps events; 0 is without end.",
  },
  "Events.Nats.MaxBytes": {
    schema: bytes(),
    default: 0,
    doc: "How many bytes of events a stream that is created keeps, the newest; 0 is as many as NATS lets it.",
  },
  "Events.Nats.DuplicateWindow": {
    schema: duration({ minMs: 100 }),
    default: 120_000,
    doc:
      "How long a stream that is created remembers the ids of events, to drop those that it is sent twice. Not " +
      "longer than Events.Nats.MaxAge. Consumers deduplicate by id for what comes later.",
  },
  "Events.HeartbeatTopic": {
    schema: optional(text({ maxLength: 255, pattern: SUBJECT, expects: SUBJECT_RULE })),
    default: undefined,
    aliases: [...bacalhauNames("Requester", "HeartbeatTopic"), "HeartbeatTopic"],
    doc:
      "The NATS subject on which each heartbeat is published, as it comes, without any guarantee; it must not " +
      "lie below Events.Nats.SubjectPrefix. When not set, or without Events.Nats.Url: none.",
  },
});

/** The values of these keys. */
export type EventsConfig = ConfigValues<typeof EVENTS_KEYS>;

/** What is wrong between values that are each right, by the key to blame. */
export interface EventsConfigProblem {
  readonly path: keyof EventsConfig & string;
  readonly message: string;
}

/** What is wrong with values that are each right; for loadConfig's `check`. */
export function checkEventsConfig(values: EventsConfig): readonly EventsConfigProblem[] {
  const problems: EventsConfigProblem[] = [];
  const complain = (path: EventsConfigProblem["path"], message: string) => problems.push({ path, message });
  const isSet = (path: EventsConfigProblem["path"]) => values[path] !== undefined;

  for (const path of WAYS_TO_SAY_WHO.filter(isSet).slice(1)) {
    complain(path, "at most one way to say who connects to NATS may be set");
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
    complain("Events.HeartbeatTopic", "must not lie below Events.Nats.SubjectPrefix");
  }
  return problems;
}

const WAYS_TO_SAY_WHO = [
  "Events.Nats.CredentialsFile",
  "Events.Nats.NkeyFile",
  "Events.Nats.Token",
  "Events.Nats.User",
] as const;

/** How to reach NATS as configured; null when it is not. */
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

/** The stream as configured. */
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

/** One server. It is written back without its credentials, and they are in no message either. */
function natsUrl() {
  return readFurther(text(), (written) => {
    const read = readNatsUrl(written);
    if (read.ok) return { value: read.url };
    return { problem: `the value is not the URL of a NATS server such as nats://nats:4222: ${read.reason}` };
  });
}
