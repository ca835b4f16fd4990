import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  BeginOidcSignInResponseSchema,
  ConsoleService,
  type SignInRequest,
  SignInResponseSchema,
} from "@rollcall/api/rollcall/console/v1/console_pb";
import {
  accessTokenState,
  fromSessionRefusal,
  type NewEvent,
  SIGN_IN_LIMITS,
  signInCodeRefusal,
} from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { bearerOf } from "@rollcall/identity";
import { auditedCall, callerKey, noteRevision, tokenAttempt } from "@rollcall/rpc";
import {
  AUDIT_OK,
  findAccessToken,
  insertConsoleSession,
  lockAccessToken,
  lockSessions,
  lockSignInCode,
  lockSignIns,
  type Tx,
  useUpSignInCode,
} from "@rollcall/store";
import type { ConsoleServices } from "../console-services.ts";
import type { OidcSignIn } from "../oidc/oidc-sign-in.ts";
import { actorFor, callerFor, consoleError, type Identity, identityOf, refuseEnded, roleToProto } from "./convert.ts";
import { type BrowserCall, browserCallOf, type SessionCookie } from "./session-cookie.ts";
import { hashOf, newSessionSecret, type SessionSecret } from "./session-secret.ts";
import { endSession } from "./sign-out.ts";

/** The objects that sign-in needs in addition to ConsoleServices. */
export interface SignInParts extends ConsoleServices {
  readonly cookie: SessionCookie;
  readonly oidc: OidcSignIn;
}

type Context = Pick<HandlerContext, "values" | "requestHeader" | "responseHeader" | "url" | "signal">;

/** Create a session for a user who proves their identity with a code, a token or an issuer. */
export function signIn(parts: SignInParts): MethodImpl<typeof ConsoleService.method.signIn> {
  const { store, cookie, settings } = parts;
  return async ({ credential }, context) => {
    const browser = browserCallOf(context, settings.isNetworkTrusted);
    const identify = await identifying(parts, credential, browser, context);
    // Never reuse a session that the browser sends, because someone who knew its halves would share the new session.
    const secret = newSessionSecret();
    const { result, revision } = await store.change(async (tx) => {
      const identity = await identify(tx);
      const actor = actorFor(identity.owner);
      await lockSignIns(tx, actor);
      const previousId = await previousOf(tx, context.requestHeader.get("authorization"));
      const { kept, ended } = await keepSession(tx, parts, { identity, secret, browser, previousId });
      const caller = callerFor(identity.owner, kept.role, kept.id, kept.expiresAtMs ?? 0);
      context.values.set(callerKey, caller);
      const audit = { ...auditedCall(context, ConsoleService.method.signIn), target: kept.id };
      const entry = { ...audit, reason: "", outcome: AUDIT_OK };
      return { result: { kept, actor }, events: ended, audit: [entry] };
    });
    const { kept, actor } = result;
    noteRevision(context, revision);
    context.responseHeader.append("set-cookie", cookie.set(secret.cookie, browser.isSecure, settings.longestMs));
    return create(SignInResponseSchema, {
      proof: secret.proof,
      actor,
      role: roleToProto(kept.role),
      sessionId: kept.id,
      expireTime: timestampFromMs(kept.expiresAtMs ?? 0),
    });
  };
}

/**
 * Identify the user. Everything that needs no transaction runs first, and the returned function runs the rest in the
 * transaction that creates the session. Failures count against the client's address, as for any token.
 */
async function identifying(
  parts: SignInParts,
  credential: SignInRequest["credential"],
  browser: BrowserCall,
  context: Context,
): Promise<(tx: Tx) => Promise<Identity>> {
  const { failures } = parts;
  const attempt = tokenAttempt(browser.peer, credentialText(credential));
  failures?.check(attempt);
  const counted = async <T>(work: () => Promise<T>) => {
    try {
      const result = await work();
      failures?.passed(attempt);
      return result;
    } catch (error) {
      failures?.ended(attempt, error);
      throw error;
    }
  };
  switch (credential.case) {
    case "code": {
      const { value } = credential;
      return (tx) => counted(() => useCode(tx, value));
    }
    case "accessToken": {
      const { value } = credential;
      const identity = await counted(() => identityOfToken(parts, value));
      return async () => identity;
    }
    case "oidc": {
      const { value } = credential;
      const identity = await counted(async () => {
        const caller = await parts.oidc.finish(value, browser.origin, context.signal);
        // Do not limit the session by the token's lifetime, because the issuer has authenticated the user for this
        // session only.
        return { ...identityOf(caller), endsAtMs: null };
      });
      return async () => identity;
    }
    case undefined:
      throw new Error("a request without a credential passed its rules");
  }
}

/** A text that identifies an attempt. Only its digest is stored, so that it reveals nothing. */
function credentialText(credential: SignInRequest["credential"]): string {
  switch (credential.case) {
    case "code":
      return `code ${credential.value}`;
    case "accessToken":
      return `Bearer ${credential.value}`;
    case "oidc":
      return `oidc ${credential.value.attempt}`;
    case undefined:
      return "";
  }
}

async function useCode(tx: Tx, text: string): Promise<Identity> {
  const hash = hashOf(text);
  // Lock the code. If two callers use one code at the same time, the second one waits for this lock, and then finds
  // the code used.
  const code = await lockSignInCode(tx, hash);
  const refusal = signInCodeRefusal(code);
  if (refusal !== null || code === null) {
    throw refusal === null ? new Error("a code is missing and not refused") : consoleError(refusal, "code");
  }
  await useUpSignInCode(tx, hash);
  return code;
}

async function identityOfToken({ authenticate }: SignInParts, text: string): Promise<Identity> {
  const bearer = bearerOf(`Bearer ${text.trim()}`);
  const caller = bearer === null ? null : await authenticate(bearer);
  if (caller === null || caller.kind === "anonymous") {
    throw refuse("TOKEN_INVALID", "the access token is unknown or malformed; check that it was copied completely");
  }
  const refusal = fromSessionRefusal(caller.session ?? null);
  if (refusal !== null) throw refusalError(refusal, caller.session ?? "");
  return identityOf(caller);
}

async function keepSession(
  tx: Tx,
  { settings }: SignInParts,
  {
    identity,
    secret,
    browser,
    previousId,
  }: {
    readonly identity: Identity;
    readonly secret: SessionSecret;
    readonly browser: BrowserCall;
    readonly previousId: string | null;
  },
) {
  const { owner } = identity;
  const actor = actorFor(owner);
  let { role } = identity;
  if (owner.kind === "token") {
    // Lock the token, so that a later revocation finds the session, and this call sees an earlier revocation. Lock it
    // before any session, in the same order as a revocation.
    const token = await lockAccessToken(tx, owner.id);
    if (token === null || accessTokenState(token) !== "VALID") throw refuseEnded(owner.id, token);
    role = token.role;
  }
  const ended: NewEvent[] = [];
  const locked = await lockSessions(tx, owner, previousId);
  for (const session of locked.filter((one) => one.id === previousId)) {
    ended.push(...(await endSession(tx, session, { actor, message: "signed in again" })));
  }
  const others = locked.filter((one) => one.id !== previousId);
  for (const session of others.slice(SIGN_IN_LIMITS.sessions - 1)) {
    ended.push(...(await endSession(tx, session, { actor, message: "replaced by another session" })));
  }
  const name = `console from ${browser.peer.replace(/:\d+$/, "")}`;
  const { id, hash } = secret;
  const { idleMs, longestMs } = settings;
  const { endsAtMs } = identity;
  const kept = await insertConsoleSession(tx, { id, name, role, hash, owner, actor, idleMs, longestMs, endsAtMs });
  return { kept, ended };
}

/**
 * The id of the browser's current session; null for none. A browser has one cookie, so the new session makes the old
 * one unusable.
 */
async function previousOf(tx: Tx, authorization: string | null): Promise<string | null> {
  const bearer = bearerOf(authorization);
  const found = bearer === null ? null : await findAccessToken(tx, hashOf(bearer));
  return found?.session == null ? null : found.id;
}

/** Start a sign-in with an issuer. */
export function beginOidcSignIn({
  oidc,
  failures,
  settings,
}: SignInParts): MethodImpl<typeof ConsoleService.method.beginOidcSignIn> {
  return async ({ issuer }, context) => {
    const { origin, peer } = browserCallOf(context, settings.isNetworkTrusted);
    const attempt = tokenAttempt(peer, `issuer ${issuer}`);
    failures?.check(attempt);
    try {
      const { url, attempt: sealed } = await oidc.begin(issuer, origin, context.signal);
      return create(BeginOidcSignInResponseSchema, { authorizationUrl: url, attempt: sealed });
    } catch (error) {
      failures?.ended(attempt, error);
      throw error;
    }
  };
}
