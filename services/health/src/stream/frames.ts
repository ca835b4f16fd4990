import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  GoAwayAction,
  HeartbeatResponseSchema,
  type Settings,
  SettingsSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Intervals, Label, Membership } from "@rollcall/domain";
import { describeError, reasonOf } from "@rollcall/errors";
import { labelsToProto, membershipToProto } from "@rollcall/wire";
import type { Farewell } from "../replica/farewell.ts";

/** What an agent is told when it is taken in. */
export interface WelcomeFacts {
  readonly epoch: number;
  /** Wall time, for the agent to measure its skew. */
  readonly wallMs: number;
  readonly membership: Membership;
  readonly settings: Settings;
  readonly clusterId: string;
  readonly nodeInfoWanted: boolean;
  /** Empty: as the agent knows them. */
  readonly healthEndpoints: readonly string[];
}

export function challengeFrame(nonce: Uint8Array, clusterId: string): Buffer {
  return encode({ case: "challenge", value: { nonce: new Uint8Array(nonce), clusterId } });
}

export function welcomeFrame(facts: WelcomeFacts): Buffer {
  return encode({
    case: "welcome",
    value: {
      sessionEpoch: BigInt(facts.epoch),
      serverTime: timestampFromMs(facts.wallMs),
      membership: membershipToProto(facts.membership),
      settings: facts.settings,
      clusterId: facts.clusterId,
      nodeInfoWanted: facts.nodeInfoWanted,
      healthEndpoints: [...facts.healthEndpoints],
    },
  });
}

export function membershipFrame(membership: Membership): Buffer {
  return encode({ case: "membership", value: membershipToProto(membership) });
}

export function settingsFrame(settings: Settings): Buffer {
  return encode({ case: "settings", value: settings });
}

/** What an agent should keep to. */
export function toSettings(terms: {
  readonly intervals: Intervals;
  readonly unhealthyAfterMs: number;
  readonly labels: readonly Label[];
  readonly generation: number;
}): Settings {
  const { intervals, unhealthyAfterMs, labels, generation } = terms;
  return create(SettingsSchema, {
    heartbeatInterval: durationFromMs(intervals.heartbeatMs),
    infoInterval: durationFromMs(intervals.infoMs),
    labels: labelsToProto(labels),
    unhealthyAfter: durationFromMs(unhealthyAfterMs),
    generation,
  });
}

/** Have the agent rotate its key within a time; null when nobody wants it to. */
export function withRotation(settings: Settings, withinMs: number | null): Settings {
  if (withinMs !== null) settings.rotateKeyWithin = durationFromMs(withinMs);
  return settings;
}

/**
 * The time over which so many agents spread their rotations: each takes the record's attention for some milliseconds.
 */
export function rotationSpreadMs(agents: number): number {
  return Math.max(0, agents - 1) * ROTATION_GAP_MS;
}

const ROTATION_GAP_MS = 10;

export function goAwayFrame({ error, action, endpoints = [] }: Farewell): Buffer {
  const { message, retryAfterMs } = describeError(error);
  const reason = reasonOf(error) ?? "INTERNAL";
  return encode({
    case: "goAway",
    value: {
      reason: ErrorReason[reason],
      message,
      action: GoAwayAction[action],
      endpoints: [...endpoints],
      ...(retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) }),
    },
  });
}

function encode(frame: MessageInitShape<typeof HeartbeatResponseSchema>["frame"] & object): Buffer {
  const bytes = toBinary(HeartbeatResponseSchema, create(HeartbeatResponseSchema, { frame }));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
