import { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { Refusal } from "@rollcall/domain";
import { type ErrorReasonName, refusalError, refuse } from "@rollcall/errors";
import { actorOf, type Caller, type IdentifiedCaller, isRole } from "@rollcall/identity";
import type { AccessToken, TokenOwner } from "@rollcall/store";

/** The identity of the user who signs in. */
export interface Identity {
  readonly owner: TokenOwner;
  readonly role: string;
  /** The name of a token, or a user's subject; "" when unknown. */
  readonly name: string;
  /** When the user's own token expires, in milliseconds since 1970; null when it does not limit the session. */
  readonly endsAtMs: number | null;
}

/** The identity of an authenticated caller. */
export function identityOf(caller: IdentifiedCaller): Identity {
  const { role } = caller;
  if (caller.kind === "token") return { owner: { kind: "token", id: caller.id }, role, name: "", endsAtMs: null };
  const { issuer, subject, expiresAtMs, groupsLeftOut } = caller;
  const leftOut = groupsLeftOut === undefined ? {} : { groupsLeftOut };
  return { owner: { kind: "person", issuer, subject, ...leftOut }, role, name: subject, endsAtMs: expiresAtMs };
}

/** The caller that a session of this owner represents. The caller expires with the session. */
export function callerFor(owner: TokenOwner, role: string, session: string, expiresAtMs: number): IdentifiedCaller {
  if (!isRole(role)) throw new Error(`session has unknown role ${role}`);
  const common = { role, session, expiresAtMs };
  return { ...owner, ...common };
}

/** The owner's name in events and in the audit log. */
export function actorFor(owner: TokenOwner): string {
  const role = "viewer";
  const caller: Caller = owner.kind === "token" ? { ...owner, role } : { ...owner, role, expiresAtMs: 0 };
  return actorOf(caller);
}

/** The error for a token that cannot create a session: it was deleted or revoked, or has expired. */
export function refuseEnded(id: string, token: AccessToken | null): Error {
  const metadata = { token: id };
  if (token === null) return refuse("TOKEN_INVALID", `access token ${id} was deleted; use another one`, { metadata });
  return token.revocation === null
    ? refuse("TOKEN_EXPIRED", `access token ${id} has expired; use another one`, { metadata })
    : refuse("TOKEN_REVOKED", `access token ${id} was revoked; use another one`, { metadata });
}

/** The next step after each refusal. It names commands and configuration keys, which the domain does not know. */
const NEXT_STEPS: Readonly<Partial<Record<ErrorReasonName, string>>> = {
  CONSOLE_NEEDS_TLS:
    "open it with https (TLS.CertFile, or `up --tls`), or at http://localhost, on the machine itself or " +
    "through `ssh -L`",
  SIGN_IN_CODE_INVALID: "run `rollcall console` again",
  SIGN_IN_CODE_USED:
    "run `rollcall console` again; if it was not you, end your sessions with `rollcall console --sign-out`",
};

/** Convert a refusal to an error that says what to do next. */
export function consoleError(refusal: Refusal<ErrorReasonName>, subject: string): ReturnType<typeof refusalError> {
  const next = NEXT_STEPS[refusal.reason];
  return refusalError(next === undefined ? refusal : { ...refusal, message: `${refusal.message}: ${next}` }, subject);
}

/** The API's enum value of a role. */
export function roleToProto(role: string): Role {
  switch (role) {
    case "viewer":
      return Role.VIEWER;
    case "operator":
      return Role.OPERATOR;
    case "submitter":
      return Role.SUBMITTER;
    case "admin":
      return Role.ADMIN;
    default:
      return Role.UNSPECIFIED;
  }
}
