import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { type FormEvent, useEffect, useState } from "react";
import { type CallError, toCallError } from "../live/call-error.ts";
import { clientOf } from "../live/clients.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";
import { Logo } from "../ui/logo.tsx";
import { Notice } from "../ui/notices.tsx";
import { CodeSignIn } from "./code-sign-in.tsx";
import { ATTEMPT_KEY, OidcReturn } from "./oidc-return.tsx";
import { enterWith } from "./proof.ts";
import { SignInError } from "./sign-in-error.tsx";

const sessions = clientOf(ConsoleService);

/**
 * Sign-in with the code of `rollcall console`, a token, or an issuer. `as` is the user who is already signed in.
 */
export function SignInPage({ why, as }: { readonly why: CallError | null; readonly as?: string }) {
  const [code, setCode] = useState(takeCode);
  const path = window.location.pathname;
  return (
    <div className="sign-in">
      <main className="panel">
        <header>
          <h1 className="row">
            <Logo /> Rollcall
          </h1>
        </header>
        <div className="body stack">
          {why !== null && <Notice tone="warn">You were signed out: {why.message}</Notice>}
          {code !== null ? (
            <CodeSignIn code={code} as={as} onCancel={() => setCode(null)} />
          ) : path === "/sign-in/oidc" ? (
            <OidcReturn />
          ) : (
            <Ways />
          )}
        </div>
      </main>
    </div>
  );
}

/** Read the code from the address, and remove it immediately from the address bar and the history. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (code !== null) window.history.replaceState(null, "", window.location.pathname);
  return code;
}

function Ways() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<CallError | null>(null);
  const [busy, setBusy] = useState(false);
  const [issuers, setIssuers] = useState<readonly string[]>([]);
  useEffect(() => {
    clientOf(AccessService)
      .getLoginOptions({})
      .then(({ issuers: known }) => setIssuers(known.map(({ issuer }) => issuer)))
      .catch(() => {
        // Ignore the error, because a token works without these options, and using an issuer shows the error.
      });
  }, []);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      enterWith(await sessions.signIn({ credential: { case: "accessToken", value: token.trim() } }));
    } catch (cause) {
      setError(toCallError(cause));
      setBusy(false);
    }
  };
  const begin = async (issuer: string) => {
    setError(null);
    try {
      const { authorizationUrl, attempt } = await sessions.beginOidcSignIn({ issuer });
      sessionStorage.setItem(ATTEMPT_KEY, attempt);
      window.location.assign(authorizationUrl);
    } catch (cause) {
      setError(toCallError(cause));
    }
  };
  return (
    <>
      <p className="soft">
        On a machine with the rollcall CLI, <code>rollcall console</code> opens this page and signs you in.
      </p>
      <form className="stack" onSubmit={submit}>
        <Field
          label="Access token"
          hint="rollcall access create NAME --role viewer creates one"
          type="password"
          autoComplete="off"
          value={token}
          onChange={(event) => setToken(event.target.value)}
          autoFocus
        />
        {error !== null && <SignInError error={error} />}
        <Button look="primary" type="submit" disabled={busy || token.trim() === ""}>
          Sign in
        </Button>
      </form>
      {issuers.map((issuer) => (
        <Button key={issuer} onClick={() => begin(issuer)}>
          Sign in with {hostOf(issuer)}
        </Button>
      ))}
    </>
  );
}

function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}
