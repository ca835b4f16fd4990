import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  GoAwayAction,
  HeartbeatResponseSchema,
  type Settings,
  SettingsSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import type { Membership } from "@rollcall/domain";
import { encodeFast, labelsToProto, membershipToProto } from "@rollcall/wire";
import { type Farewell, isCastOut } from "../replica/farewell.ts";
import type { SettingsTerms } from "../replica/node-terms.ts";
import { type WorkFrame, workFrameToProto } from "../replica/work-frames.ts";
import { errorOf } from "../session/farewell-error.ts";
import type { WelcomeFacts } from "../session/session-host.ts";

export function challengeFrame(nonce: Uint8Array, clusterId: string): Buffer {
  return encode({ case: "challenge", value: { nonce: new Uint8Array(nonce), clusterId } });
}

export function welcomeFrame(epoch: number, facts: WelcomeFacts): Buffer {
  return encode({
    case: "welcome",
    value: {
      sessionEpoch: BigInt(epoch),
      serverTime: timestampFromMs(facts.wallMs),
      membership: membershipToProto(facts.membership),
      settings: toSettings(facts.settings),
      clusterId: facts.clusterId,
      nodeInfoWanted: facts.nodeInfoWanted,
      healthEndpoints: [...facts.healthEndpoints],
    },
  });
}

export function membershipFrame(membership: Membership): Buffer {
  return encode({ case: "membership", value: membershipToProto(membership) });
}

export function settingsFrame(terms: SettingsTerms): Buffer {
  return encode({ case: "settings", value: toSettings(terms) });
}

export function authoritiesFrame(certificates: readonly Uint8Array[]): Buffer {
  return encode({ case: "authorities", value: { certificates: [...certificates] } });
}

/** @param logId the id of the store's history. */
export function goAwayFrame(farewell: Farewell, logId: string): Buffer {
  const { reason, action, endpoints = [], retryAfterMs } = farewell;
  // Use the possibly truncated message of the status that follows.
  const { message } = errorOf(farewell);
  return encode({
    case: "goAway",
    value: {
      reason: ErrorReason[reason],
      message,
      action: GoAwayAction[action],
      endpoints: [...endpoints],
      ...(retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) }),
      ...(isCastOut(farewell) ? { logId } : {}),
    },
  });
}

export function workFrame(frame: WorkFrame): Buffer {
  return encode(workFrameToProto(frame));
}

function toSettings(terms: SettingsTerms): Settings {
  const { intervals, unhealthyAfterMs, labels, generation, rotateKeyWithinMs } = terms;
  return create(SettingsSchema, {
    heartbeatInterval: durationFromMs(intervals.heartbeatMs),
    infoInterval: durationFromMs(intervals.infoMs),
    labels: labelsToProto(labels),
    unhealthyAfter: durationFromMs(unhealthyAfterMs),
    generation,
    ...(rotateKeyWithinMs === null ? {} : { rotateKeyWithin: durationFromMs(rotateKeyWithinMs) }),
  });
}

function encode(frame: MessageInitShape<typeof HeartbeatResponseSchema>["frame"] & object): Buffer {
  const bytes = encodeFast(HeartbeatResponseSchema, create(HeartbeatResponseSchema, { frame }));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
