import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";

/** The interval that an agent wishes for; null for none, and for one that makes no sense. */
export function wishedHeartbeatMs(hello: Hello): number | null {
  if (hello.wishedHeartbeatInterval === undefined) return null;
  const wishedMs = durationMs(hello.wishedHeartbeatInterval);
  return Number.isSafeInteger(wishedMs) && wishedMs > 0 ? wishedMs : null;
}

/** A text of an agent as the record can keep it: Postgres refuses U+0000, and one row that it refuses fails a whole batch. */
export function toText(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
