import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type AccessToken, AccessTokenStateSchema, Role, RoleSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { ROLE_WORDS } from "../choices.ts";
import { formatTime } from "../output/units.ts";

const TEXT = /^rc_([0-9a-f]{12})_/;

const ROLES: Readonly<Record<(typeof ROLE_WORDS)[number], Role>> = {
  viewer: Role.VIEWER,
  operator: Role.OPERATOR,
  admin: Role.ADMIN,
};

/** The role of a word. */
export function roleOf(word: (typeof ROLE_WORDS)[number]): Role {
  return ROLES[word];
}

/** "viewer", "operator" or "admin"; a role of a newer server by its number. */
export function roleWord(role: Role): string {
  return RoleSchema.value[role]?.localName.toLowerCase() ?? String(role);
}

/** "VALID", "EXPIRED" or "REVOKED". */
export function stateWord({ state }: AccessToken): string {
  return AccessTokenStateSchema.value[state]?.localName ?? String(state);
}

/** A time for people, or what stands for none. */
export function timeWord(time: AccessToken["expireTime"], none: string): string {
  return time === undefined ? none : formatTime(timestampMs(time));
}

/** The id of a token that was named by its id or, because that is at hand, by its text. The text goes no further. */
export function accessTokenIdOf(word: string): string {
  return TEXT.exec(word)?.[1] ?? word;
}
