import { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { Refusal } from "@rollcall/domain";
import { type ErrorReasonName, refusalError, refuse } from "@rollcall/errors";
import { actorOf, type Caller, isRole, type KnownCaller } from "@rollcall/identity";
import type { AccessToken, TokenOwner } from "@rollcall/store";

/** Who signs in. */
export interface Identity {
  readonly owner: TokenOwner;
  readonly role: string;
  /** What a token is for, or a person's subject; "" where that is not known yet. */
  readonly name: string;
  /** When a person's own token ends, in milliseconds since 1970; null where that does not bound the session. */
  readonly endsAtMs: number | null;
}

/** The identity of a caller of any method. */
export function identityOf(caller: KnownCaller): Identity {
  const { role } = caller;
  if (caller.kind === "token") return { owner: { kind: "token", id: caller.id }, role, name: "", endsAtMs: null };
  const { issuer, subject, expiresAtMs } = caller;
  return { owner: { kind: "person", issuer, subject }, role, name: subject, endsAtMs: expiresAtMs };
}

/** The caller that a session of this owner is. Its end is the session's. */
export function callerFor(owner: TokenOwner, role: string, session: string, expiresAtMs: number): KnownCaller {
  if (!isRole(role)) throw new Error(`a session has the role ${role}, which is none`);
  const common = { role, session, expiresAtMs };
  return { ...owner, ...common };
}

/** How an owner is written in events and in the audit log. */
export function actorFor(owner: TokenOwner): string {
  const role = "viewer";
  const caller: Caller = owner.kind === "token" ? { ...owner, role } : { ...owner, role, expiresAtMs: 0 };
  return actorOf(caller);
}

/** Why a token makes no session: it is gone, was revoked, or has expired meanwhile. */
export function refuseEnded(id: string, token: AccessToken | null): Error {
  const metadata = { token: id };
  if (token === null) return refuse("TOKEN_INVALID", `access token ${id} is gone: use another one`, { metadata });
  return token.revocation === null
    ? refuse("TOKEN_EXPIRED", `access token ${id} has expired: use another one`, { metadata })
    : refuse("TOKEN_REVOKED", `access token ${id} was revoked: use another one`, { metadata });
}

/** What a person does about a refusal: commands and keys, which the domain does not know. */
const NEXT_STEPS: Readonly<Partial<Record<ErrorReasonName, string>>> = {
  CONSOLE_NEEDS_TLS:
    "open it by https (TLS.CertFile, or --tls of up), or on the machine itself by http://localhost, which `ssh -L` " +
    "reaches too",
  SIGN_IN_CODE_INVALID: "run `rollcall console` again",
  SIGN_IN_CODE_USED:
    "run `rollcall console` again, and if it was not you, end your sessions by `rollcall console --sign-out`",
};

/** The error of a refusal, with what to do next. */
export function consoleError(refusal: Refusal<ErrorReasonName>, subject: string): ReturnType<typeof refusalError> {
  const next = NEXT_STEPS[refusal.reason];
  return refusalError(next === undefined ? refusal : { ...refusal, message: `${refusal.message}: ${next}` }, subject);
}

/** A role as the API names it. */
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
