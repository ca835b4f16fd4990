import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type JoinToken, JoinTokenState, JoinTokenStateSchema } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { formatTime } from "../output/units.ts";

const TEXT = /^rcj_[0-9a-f]+_([0-9a-f]{12})_/;

/** The id of a token that was named by its id or, because that is at hand, by its text. The text goes no further. */
export function tokenIdOf(word: string): string {
  return TEXT.exec(word)?.[1] ?? word;
}

/** "ACTIVE", "EXPIRED", "REVOKED" or "USED UP". */
export function stateWord({ state }: JoinToken): string {
  if (state === JoinTokenState.USED_UP) return "USED UP";
  return JoinTokenStateSchema.value[state]?.localName ?? String(state);
}

/** For example "1 of 3" or "1, unlimited". */
export function usesText({ uses, maxUses }: JoinToken): string {
  return maxUses === 0 ? `${uses}, unlimited` : `${uses} of ${maxUses}`;
}

/** A time for people; "-", or what else stands for none. */
export function timeText(time: JoinToken["expireTime"], none = "-"): string {
  return time === undefined ? none : formatTime(timestampMs(time));
}

/** What a token gives to whoever joins with it, for example "preauthorized, zone=a"; empty when nothing. */
export function grantsText({ preauthorized, ephemeral, labels }: JoinToken): string {
  return [
    ...(preauthorized ? ["preauthorized"] : []),
    ...(ephemeral ? ["ephemeral"] : []),
    ...Object.entries(labels)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, value]) => `${key}=${value}`),
  ].join(", ");
}
