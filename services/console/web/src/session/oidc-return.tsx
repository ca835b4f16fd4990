import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { useEffect, useState } from "react";
import { type CallError, toCallError } from "../live/call-error.ts";
import { clientOf } from "../live/clients.ts";
import { Button } from "../ui/button.tsx";
import { Loading } from "../ui/notices.tsx";
import { enterWith } from "./proof.ts";
import { SignInError } from "./sign-in-error.tsx";

/** Where this tab keeps the sign-in that it began at an issuer. */
export const ATTEMPT_KEY = "rollcall.oidc-attempt";

const NOT_BEGUN: CallError = {
  reason: "NOT_BEGUN_HERE",
  message: "This sign-in was not begun in this browser tab. Begin it again.",
  kind: "other",
};

/** The way back from an issuer: only a sign-in that this tab began is finished. */
export function OidcReturn() {
  const [error, setError] = useState<CallError | null>(null);
  useEffect(() => {
    const callbackUrl = window.location.href;
    const attempt = sessionStorage.getItem(ATTEMPT_KEY);
    // React runs an effect twice in development: the second time has neither.
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
