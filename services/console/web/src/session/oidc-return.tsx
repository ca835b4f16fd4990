import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { useEffect, useState } from "react";
import { type CallError, toCallError } from "../live/call-error.ts";
import { clientOf } from "../live/clients.ts";
import { Button } from "../ui/button.tsx";
import { Loading } from "../ui/notices.tsx";
import { enterWith } from "./proof.ts";
import { SignInError } from "./sign-in-error.tsx";

/** Where this tab stores the attempt of a sign-in that it started with an issuer. */
export const ATTEMPT_KEY = "rollcall.oidc-attempt";

const NOT_BEGUN: CallError = {
  reason: "NOT_BEGUN_HERE",
  message: "This sign-in was not started in this browser tab. Start again.",
  kind: "other",
};

/**
 * Handles the return from an issuer. It finishes only a sign-in that this tab started.
 */
export function OidcReturn() {
  const [error, setError] = useState<CallError | null>(null);
  useEffect(() => {
    const callbackUrl = window.location.href;
    const attempt = sessionStorage.getItem(ATTEMPT_KEY);
    // Skip the second run of this effect. React runs effects twice in development, and
    // the query and the attempt are gone by then.
    if (!callbackUrl.includes("?")) return;
    window.history.replaceState(null, "", "/sign-in/oidc");
    sessionStorage.removeItem(ATTEMPT_KEY);
    if (attempt === null) return setError(NOT_BEGUN);
    clientOf(ConsoleService)
      .signIn({ credential: { case: "oidc", value: { attempt, callbackUrl } } })
      .then(enterWith)
      .catch((cause) => setError(toCallError(cause)));
  }, []);
  if (error === null) return <Loading lines={2} />;
  return (
    <>
      <SignInError error={error} />
      <Button onClick={() => window.location.replace("/")}>Sign in another way</Button>
    </>
  );
}
